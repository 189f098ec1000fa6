"""What a store or a network says of a URL that it does not serve, in one line with what to do."""

from __future__ import annotations

import errno
import re

from spikeview.format import shown

# Both clients wrap what happened in words about themselves, of which the reader needs one.
_ABOUT = (
    re.compile(r"Details: (.*)", re.DOTALL),
    re.compile(r"with a last message of (?:PerformWork\(\) - )?(.*?)(?: error_info=|$)", re.DOTALL),
    re.compile(r"AWS Error (.*)", re.DOTALL),
    re.compile(r"google::cloud::Status\((.*?)(?: error_info=|$)", re.DOTALL),
)
_REQUEST = re.compile(r"\s*\(Request ID: [^)]*\)")
_SENTENCE = re.compile(r"[.!] .*")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ADVICE = (
    (
        r"access.?denied|forbidden|unauthorized|\b40[13]\b|credential|access.?token|invalid.?access.?key|signature",
        "may not be read with the credentials found here",
        "set them in the environment or in the store's own configuration",
    ),
    (
        r"no.?such.?bucket|not.?found|\b404\b|does not exist|no such file",
        "is not there",
        "check every name in the URL",
    ),
    (
        r"network|curl|connect|resolve|name or service|timeout|timed out|unreachable|unavailable",
        "cannot be reached",
        "check the network, and the endpoint if you set one",
    ),
)


def because(error: BaseException) -> str:
    """What is wrong and what to do, to follow a URL and a colon."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return "cannot be copied: the disk of this machine is full; free space, or set TMPDIR to a larger disk"
    said = " ".join(str(error).split()) or type(error).__name__
    short = next((found[1] for about in _ABOUT if (found := about.search(said))), said)
    short = _SENTENCE.sub("", _REQUEST.sub("", short)).rstrip(" .:")
    for pattern, what, advice in () if isinstance(error, ValueError) else _ADVICE:
        if re.search(pattern, said, re.IGNORECASE):
            return f"{what} ({shown(short)}); {advice}"
    return f"cannot be read ({shown(short)}); check the URL, or copy the run to this machine"
