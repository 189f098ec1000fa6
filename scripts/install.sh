#!/usr/bin/env bash
# Installs this checkout into .venv with the extras given, at the exact versions of constraints.txt.
# usage: install.sh view | all,test
set -euo pipefail
cd "$(dirname "$0")/.."
extras=$1

scripts/venv.sh
pip=(.venv/bin/python -m pip --disable-pip-version-check --no-input)
"${pip[@]}" install --quiet --constraint constraints.txt pip
case "$extras" in
    *all*) .venv/bin/python scripts/torch_build.py ;;
esac
echo "Installing spikeview[$extras] into .venv; the first time takes a few minutes"
"${pip[@]}" install --quiet --constraint constraints.txt --build-constraint constraints.txt --editable ".[$extras]"
