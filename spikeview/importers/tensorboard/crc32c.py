"""The checksum of event files, CRC-32C, of many records of one length at once.

`zlib.crc32` has another polynomial. Numpy takes one byte of all records per step, which costs less than reading them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
MASK_DELTA = 0xA282EAD8

Bytes = NDArray[np.uint8]
Sums = NDArray[np.uint32]


def _table() -> Sums:
    sums = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        sums = np.where(sums & 1, (sums >> 1) ^ np.uint32(POLYNOMIAL), sums >> 1)
    return sums


_TABLE = _table()


def masked(records: Bytes) -> Sums:
    """The masked checksum, as event files hold it, of each row of [records, length]."""
    sums = np.full(len(records), 0xFFFFFFFF, dtype=np.uint32)
    for column in np.ascontiguousarray(records.T):
        sums = _TABLE[(sums ^ column) & np.uint32(0xFF)] ^ (sums >> np.uint32(8))
    sums = ~sums
    return ((sums >> np.uint32(15)) | (sums << np.uint32(17))) + np.uint32(MASK_DELTA)
