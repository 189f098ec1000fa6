#!/usr/bin/env bash
# Makes .venv with a Python of at least 3.11: the one named by PYTHON, else the first suitable one on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

suitable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if [ -x .venv/bin/python ]; then
    suitable .venv/bin/python && exit 0
    echo "spikeview: .venv holds a Python older than 3.11, or a broken one; remove it (make distclean) and try again." >&2
    exit 1
fi

for python in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if suitable "$python"; then
        echo "Making .venv with $("$python" --version)"
        exec "$python" -m venv .venv
    fi
done
found=$("${PYTHON:-python3}" --version 2>/dev/null || echo "none")
echo "spikeview: needs Python 3.11 or newer, found: $found; name one, for example: make run PYTHON=python3.12" >&2
exit 1
