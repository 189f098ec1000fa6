#!/usr/bin/env bash
# Checks an environment that holds nothing but the wheel: neither torch nor Qt, and triage finds the drift in a run.
# usage: check_wheel.sh VENV RUN      (absolute paths)
set -euo pipefail
venv=$1
run=$2
cd "$venv" # away from the checkout, so that the installed packages are the ones imported

for module in torch PySide6; do
    if bin/python -c "import $module" 2>/dev/null; then
        echo "check_wheel: $module can be imported in an environment without extras" >&2
        exit 1
    fi
done

status=0
bin/spikeview triage --json "$run" >triage.json || status=$?
if [ "$status" != 1 ]; then
    echo "check_wheel: spikeview triage exited with $status where 1, something found, is right" >&2
    exit 1
fi
bin/python - <<'PYTHON'
import json
from pathlib import Path

checks = {check["id"]: check["verdict"] for check in json.loads(Path("triage.json").read_text(encoding="utf-8"))["checks"]}
assert checks["schedule_drift"] == "failed", checks
PYTHON
echo "The wheel works without torch and Qt: schedule_drift failed, as it should."
