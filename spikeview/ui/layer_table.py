"""The lines of a run's layers table, found by row: what each parameter's gradient and update were there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spikeview.run import Floats, Run

MEASURES = ("grad_norm", "update_ratio")


@dataclass(frozen=True, eq=False)
class Layers:
    """One line a parameter and deep row, [lines]: the number of the row, rising; which of the names; the measures.

    A measure that was not recorded is NaN, and absent where it was recorded nowhere.
    """

    rows: NDArray[np.int64]
    name: NDArray[np.int64]
    names: tuple[str, ...]
    measures: dict[str, Floats]

    def carried(self, row: int) -> list[tuple[str, float]]:
        """The parameters of a row with their shares of the squared gradient norm, the largest first."""
        lines = slice(*np.searchsorted(self.rows, [row, row + 1]).tolist())
        if "grad_norm" not in self.measures:
            return []
        shares = shares_of(self.measures["grad_norm"][lines])
        order = np.argsort(-np.nan_to_num(shares, nan=np.inf), kind="stable")
        return [(self.names[self.name[lines][at]], float(shares[at])) for at in order.tolist()]


def layers_of(run: Run) -> Layers | None:
    """Those of the optimizer of these rows; None where no deep row was recorded."""
    table = run.layers
    if table is None or not {"row", "name"} <= set(table.column_names):
        return None
    if "optimizer" in table.column_names and len(run.optimizers) == 1:
        table = table.filter(pc.equal(table["optimizer"], pa.scalar(run.optimizers[0], pa.string())))
    if not table.num_rows:
        return None
    rows = table["row"].to_numpy().astype(np.int64, copy=False)
    order = np.argsort(rows, kind="stable")
    encoded = table["name"].combine_chunks().dictionary_encode()
    names = tuple(str(name) for name in encoded.dictionary.to_pylist())
    recorded = [each for each in MEASURES if each in table.column_names and table[each].null_count < table.num_rows]
    measures = {each: table[each].to_numpy().astype(np.float64, copy=False)[order] for each in recorded}
    return Layers(rows[order], encoded.indices.to_numpy().astype(np.int64)[order], names, measures)


def shares_of(norms: Floats) -> Floats:
    """Each norm's share of the squared norm of all of them, along the first axis."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        squares = norms**2
        shares: Floats = squares / np.nansum(squares, axis=0)
    return shares
