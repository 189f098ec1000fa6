"""Refuse to go on where installing torch would bring a CUDA build: the tests run on a CPU.

Asks pip what it would install, from package metadata alone, before anything is fetched.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"


def pinned() -> str:
    """Return the torch version that constraints.txt names."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("torch==") for line in lines if line.startswith("torch=="))


def installed() -> str | None:
    """Return the torch version in this environment without its build label, or None."""
    try:
        return version("torch").split("+")[0]
    except PackageNotFoundError:
        return None


def resolution(requirement: str) -> dict[str, Any]:
    """Return pip's report of what it would install for a requirement."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--report", "-"]
    command += ["--constraint", str(CONSTRAINTS), requirement]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode:
        sys.exit(f"spikeview: pip found no way to install {requirement}; its own message is above.")
    report: dict[str, Any] = json.loads(answer.stdout)
    return report


def accelerator_packages(report: dict[str, Any]) -> list[str]:
    """Return what in a resolution belongs to a GPU build, as name==version."""
    packages = [(item["metadata"]["name"], item["metadata"]["version"]) for item in report["install"]]
    return [
        f"{name}=={number}"
        for name, number in packages
        if name.lower().startswith(("nvidia", "cuda")) or "+cu" in number or "+rocm" in number
    ]


def main() -> None:
    """Exit with one line where the resolution is not a CPU build."""
    wanted = pinned()
    if sys.platform != "linux" or installed() == wanted:
        return
    gpu = accelerator_packages(resolution(f"torch=={wanted}"))
    if gpu:
        sys.exit(
            f"spikeview: pip would fetch a GPU build of torch {wanted} ({gpu[0]} and {len(gpu) - 1} more). Point pip "
            "at PyTorch's CPU build and try again: see pytorch.org, choose CPU, and put the address it shows into "
            "PIP_EXTRA_INDEX_URL; or install torch into .venv yourself."
        )


if __name__ == "__main__":
    main()
