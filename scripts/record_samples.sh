#!/usr/bin/env bash
# Records every sample run anew into its own folder, and writes what triage says of it to expected.json beside it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
for script in sample_runs/*/record.py; do
    folder=$(dirname "$script")
    rm -rf "$folder"/run.json "$folder"/events.jsonl "$folder"/steps "$folder"/layers "$folder"/captures
    "$python" -m "sample_runs.$(basename "$folder").record"
    echo "recorded $folder"
done
for script in sample_runs/*/record.py; do
    folder=$(dirname "$script")
    # Status 1 says that something was found, as it should be in most of them.
    "$python" -m spikeview triage "$folder" --json >"$folder/expected.json" || [ $? = 1 ]
done
