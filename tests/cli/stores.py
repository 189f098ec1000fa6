"""Object stores on this machine: real servers, each in a process of its own."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Thread

from pyarrow.fs import FileSystem, GcsFileSystem, LocalFileSystem, S3FileSystem, copy_files

BUCKET = "bucket"


@contextmanager
def s3_server() -> Iterator[str]:
    """The `host:port` of an S3 server without a bucket."""
    with _started(["moto.server", "-H", "127.0.0.1", "-p", "0"], r"Running on http://(\S+)") as found:
        yield found


@contextmanager
def gs_server() -> Iterator[str]:
    """The `host:port` of a Google Cloud Storage server with one bucket."""
    place = f"127.0.0.1:{free_port()}"
    port = place.rpartition(":")[2]
    options = ["--host", "127.0.0.1", "--port", port, "--in-memory", "--default-bucket", BUCKET]
    with _started(["gcp_storage_emulator", "start", *options], "All services started()"):
        yield place


def s3(place: str) -> FileSystem:
    return S3FileSystem(
        access_key="any",
        secret_key="any",
        endpoint_override=place,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
        background_writes=False,
    )


def gs(place: str) -> FileSystem:
    return GcsFileSystem(endpoint_override=place, scheme="http", anonymous=True, retry_time_limit=timedelta(seconds=10))


def upload(source: Path, system: FileSystem, path: str) -> None:
    copy_files(str(source), path, LocalFileSystem(), system, use_threads=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _started(module: Sequence[str], says: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", *module], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        found = next(match[1] for line in lines if (match := re.search(says, line)))
        drain = Thread(target=process.stderr.read, daemon=True)  # a full pipe would stop the server
        drain.start()
        yield found
    finally:
        process.terminate()
        process.wait()
        drain.join()
        process.stderr.close()
