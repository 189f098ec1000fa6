"""The file system behind a URL: pyarrow's own for S3 and Google Cloud Storage, fsspec's for everything else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from spikeview.format import shown
from spikeview.importers.errors import RunError

if TYPE_CHECKING:  # pyarrow.fs and fsspec are imported where a URL is opened: a path on this disk needs neither
    from pyarrow.fs import FileSystem

CONNECT_S = 5.0
SILENT_S = 10.0
ATTEMPTS = 3
RETRY = timedelta(seconds=20)

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?::|//)")  # a single letter is a drive of Windows
_BUCKET = re.compile(r"[A-Za-z0-9]+://([^/?]*)/*([^?]*?)/*(?:\?(.*))?", re.DOTALL)
_PASSWORD = re.compile(r"(://[^/@:]*):[^/@]*@")
_OPTIONS = {
    "s3": ("endpoint_override", "scheme", "region", "anonymous"),
    "gs": ("endpoint_override", "scheme", "anonymous"),
}


def scheme_of(path: object) -> str | None:
    """The scheme of a URL, in lower case; None for a path of this machine."""
    found = _URL.match(path) if isinstance(path, str) else None
    return found[1].lower() if found else None


def is_elsewhere(path: object) -> bool:
    """Whether a path is a URL."""
    return scheme_of(path) is not None


def without_password(url: str) -> str:
    """A URL as it may be shown to anyone."""
    return _PASSWORD.sub(r"\1:***@", url)


def system_of(url: str) -> tuple[FileSystem, str]:
    """A file system and the path in it that a URL names.

    Raises RunError where nothing serves the URL, and whatever a file system of somebody else's raises.
    """
    scheme = scheme_of(url) or ""
    if scheme not in ("s3", "gs", "gcs"):
        return _fsspec(url, scheme)
    kind = "s3" if scheme == "s3" else "gs"
    path, options = _bucket(url, _OPTIONS[kind])
    try:
        return (_s3(options) if kind == "s3" else _gs(options)), path
    except ImportError as error:  # pyarrow's words on a part that it was built without
        raise RunError(f"{url}: {error}; install one that was, or copy the run to this machine") from error


def _s3(options: Mapping[str, str]) -> FileSystem:
    from pyarrow import fs

    # What pyarrow does for a URL, with an end to its patience: its own retries last 100 s where a server is silent.
    environment = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return fs.S3FileSystem(
        scheme=options.get("scheme"),  # type: ignore[arg-type]  # pyarrow itself says what it takes
        anonymous=_yes(options.get("anonymous")),
        region=options.get("region"),
        endpoint_override=options.get("endpoint_override") or environment,
        connect_timeout=CONNECT_S,
        request_timeout=SILENT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def _gs(options: Mapping[str, str]) -> FileSystem:
    from pyarrow import fs

    return fs.GcsFileSystem(
        anonymous=_yes(options.get("anonymous")),
        scheme=options.get("scheme", "https"),
        endpoint_override=options.get("endpoint_override"),
        retry_time_limit=RETRY,
    )


def _bucket(url: str, known: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """`bucket/path` as it stands, not unquoted, as the stores' own tools take it, and the options after `?`."""
    found = _BUCKET.fullmatch(url)
    bucket, path, query = found.groups() if found else ("", "", None)
    if not bucket:
        raise RunError(f"{url}: names no bucket; give it as scheme://BUCKET/RUN")
    if "@" in bucket:
        raise RunError(f"{url}: holds a user or a key, which does not belong in a URL; give it in the environment")
    options = dict(parse_qsl(query or "", keep_blank_values=True))
    for name in options:
        if name not in known:
            raise RunError(f"{url}: has no option {shown(name, 60)}; those it has are {', '.join(known)}")
    return f"{bucket}/{path}".rstrip("/"), options


def _yes(text: str | None) -> bool:
    return text is not None and text.lower() not in ("false", "0", "no")


def _fsspec(url: str, scheme: str) -> tuple[FileSystem, str]:
    try:
        from fsspec import get_filesystem_class  # type: ignore[import-untyped]
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        what = f"{scheme}: is served through fsspec, which is not installed"
        raise RunError(f"{url}: {what}; run: pip install fsspec, or copy the run to this machine") from error
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    system: Any
    try:
        get_filesystem_class(scheme)
    except ValueError as error:
        what = f"{scheme}: is a scheme that nothing here serves"
        raise RunError(f"{url}: {what}; give a path, s3://, gs://, or what fsspec serves") from error
    except ImportError as error:
        raise RunError(f"{url}: {str(error).rstrip('.')}; or copy the run to this machine") from error
    system, path = url_to_fs(url)
    system.invalidate_cache()  # a live run has other files by now than when it was last listed
    handler = FSSpecHandler(system)  # type: ignore[abstract]  # only to the stubs
    return PyFileSystem(handler), str(path).rstrip("/")
