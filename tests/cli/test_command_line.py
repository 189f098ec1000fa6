"""The command line as a shell sees it: what is printed where, and the exit status."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spikeview.cli import main

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_runs"
DRIFT, HEALTHY, FP16, EXPLOSION, CLIPPED = (
    str(SAMPLES / name) for name in ("amp_clock_drift", "healthy", "fp16_overflow", "bf16_explosion", "bf16_clipped")
)
RECORDED = sorted(path.parent.name for path in SAMPLES.glob("*/record.py"))

Captured = pytest.CaptureFixture[str]


def test_triage_reads_at_a_glance_in_80_columns(capsys: Captured) -> None:
    assert main(["triage", DRIFT]) == 1
    out = capsys.readouterr().out
    assert out.startswith("amp_clock_drift  6 rows, 4 executed, 1 incident, 1 check failed\n")
    assert "Incident 1  step 2, row 2, batch 2  warning, transient" in out
    assert "look at: AMP skipping on non-finite gradients" in out
    assert "drift 2 (scheduled 6, executed 4)" in out
    assert "\x1b" not in out, "colour is for terminals"
    assert (
        out.index("Attempted, never executed")
        < out.index("cannot tell:")
        < out.index("ruled out:")
        < out.index("Checks")
    )


@pytest.mark.parametrize("name", RECORDED)
def test_no_line_is_wider_than_80_columns_and_no_word_is_cut(
    name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for width in ("80", "100"):
        monkeypatch.setenv("COLUMNS", width)
        main(["triage", str(SAMPLES / name)])
        told.append(capsys.readouterr().out)
    assert max(map(len, told[0].splitlines())) <= 80
    assert told[0].split() == told[1].split()


def test_a_word_longer_than_a_line_stays_whole_and_the_rest_keeps_to_80_columns(
    capsys: Captured, tmp_path: Path
) -> None:
    run = tmp_path / f"{'a-rather-long-name-of-a-run-' * 4}end"
    shutil.copytree(DRIFT, run)
    main(["triage", str(run)])
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == run.name
    assert second == "6 rows, 4 executed, 1 incident, 1 check failed"


@pytest.mark.parametrize("name", RECORDED)
def test_triage_of_a_sample_run_is_its_expected_json(
    name: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    main(["triage", f"sample_runs/{name}", "--json"])
    expected = (SAMPLES / name / "expected.json").read_text(encoding="utf-8")
    assert json.loads(capsys.readouterr().out, parse_float=nearly) == json.loads(expected, parse_float=nearly)


def nearly(digits: str) -> float:
    """A number as far as every machine computes it alike."""
    return float(f"{float(digits):.9g}")


def test_nothing_found_is_status_0(capsys: Captured) -> None:
    assert main(["triage", HEALTHY]) == 0
    assert "no incident" in capsys.readouterr().out


def test_json_has_the_promised_keys_and_no_bare_infinity(capsys: Captured) -> None:
    assert main(["triage", FP16, "--json"]) == 1
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert set(told) >= {"run", "rows", "incidents", "checks"}
    [incident] = told["incidents"]
    assert set(incident) >= {"first_bad", "last_healthy_row", "last_row", "severity", "persistence", "lead", "findings"}
    wanted = {"row": 6, "step": 6, "rank": 0, "optimizer": "optimizer", "signal": "loss", "value": "inf", "range": None}
    assert incident["first_bad"] == incident["first_bad"] | wanted
    for finding in incident["findings"]:
        assert set(finding) >= {"id", "verdict", "evidence", "look", "rows", "missing"}
    for check in told["checks"]:
        assert set(check) >= {"id", "verdict", "evidence", "rows"}


def test_several_runs_are_one_object_and_the_worst_status_counts(capsys: Captured) -> None:
    assert main(["triage", HEALTHY, DRIFT, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["runs", "between"]
    alone = []
    for run in (HEALTHY, DRIFT):
        main(["triage", run, "--json"])
        alone.append(json.loads(capsys.readouterr().out))
    assert told["runs"] == alone


def test_several_runs_stand_apart_by_a_blank_line(capsys: Captured, tmp_path: Path) -> None:
    assert main(["triage", str(tmp_path / "gone"), HEALTHY, DRIFT]) == 2
    out = capsys.readouterr().out
    assert out.startswith("healthy  600 rows")
    assert "\n\namp_clock_drift  6 rows" in out


@pytest.mark.parametrize(("severity", "drift", "explosion"), [("warning", 1, 1), ("critical", 0, 1), ("never", 0, 0)])
def test_the_severity_that_fails_is_chosen(severity: str, drift: int, explosion: int, capsys: Captured) -> None:
    assert main(["triage", DRIFT, "--fail-on", severity]) == drift
    assert main(["triage", EXPLOSION, "--fail-on", severity]) == explosion
    assert "1 incident" in capsys.readouterr().out, "what is found is told all the same"


def test_a_directory_of_runs_is_each_run_in_it(capsys: Captured, tmp_path: Path) -> None:
    shutil.copytree(DRIFT, tmp_path / "b" / "drift")
    shutil.copytree(HEALTHY, tmp_path / "a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("nothing of a run")
    assert main(["triage", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [each["run"] for each in told["runs"]] == [str(tmp_path / "a"), str(tmp_path / "b" / "drift")]
    assert main(["triage", str(tmp_path / "empty")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_spikes_in_both_runs_and_what_in_one_alone(capsys: Captured) -> None:
    assert main(["triage", EXPLOSION, CLIPPED, DRIFT, "--json"]) == 1
    between = json.loads(capsys.readouterr().out)["between"]
    [shared] = between["shared"]
    assert (shared["by"], [each["run"] for each in shared["onsets"]]) == ("batch", [EXPLOSION, CLIPPED])
    assert shared["look"].endswith("suspect the data")
    [alone] = between["alone"]
    assert (alone["run"], alone["step"], alone["ordinary_in"]) == (DRIFT, 2, [EXPLOSION, CLIPPED])
    main(["triage", EXPLOSION, DRIFT])
    out = capsys.readouterr().out
    assert "\n\nBetween the runs\n  - step 2, batch 2, in " in out
    assert "only; no other has that step" in " ".join(out.split())
    main(["triage", EXPLOSION, CLIPPED, "--markdown"])
    out = capsys.readouterr().out
    assert "\n# Between the runs\n\n- batch 6 in " in out


def test_the_checklist_has_each_mistake_and_each_thing_to_verify(capsys: Captured) -> None:
    main(["triage", FP16, "--json"])
    items = {each["id"]: each for each in json.loads(capsys.readouterr().out)["checklist"]}
    assert [each["section"] for each in items.values()] == ["mistake"] * 10 + ["launch"] * 13
    overflow = items["scaler_for_forward_overflow"]
    assert (overflow["answer"], overflow["evidence"]) == (
        "present",
        "the loss of 1 of 1 skipped row was not finite, at row 6: no loss scale prevents that",
    )
    assert items["autocast_used"]["answer"] == "yes"
    assert items["stability_against_convergence"]["answer"] == "cannot tell"
    main(["triage", FP16])
    assert "Common mistakes" not in capsys.readouterr().out
    main(["triage", FP16, "--checklist"])
    out = capsys.readouterr().out
    assert "\nCommon mistakes\n" in out and "\nBefore a launch\n" in out
    assert "x Using only GradScaler to handle forward overflow: present (the loss of 1" in out


def test_markdown_holds_what_the_card_does(capsys: Captured) -> None:
    assert main(["triage", DRIFT, "--markdown", "--checklist"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("# amp_clock_drift 6 rows, 4 executed, 1 incident, 1 check failed\n")
    assert "## Incident 1: step 2, row 2, batch 2 (warning, transient)" in text
    assert "- **Attempted, never executed.** rows 2, 3 attempted" in text
    assert "Next: run batch 2 with a loss scale of 1 and the parameters of row 1: " in text
    assert "| Scheduler keeps to executed steps | **failed** | drift 2" in text
    assert "## Before a launch" in text


def test_every_finding_that_is_not_ruled_out_says_what_could_prove_it_wrong(capsys: Captured) -> None:
    for run in (DRIFT, EXPLOSION, CLIPPED, FP16, str(SAMPLES / "update_against_gradient")):
        main(["triage", run, "--json"])
        told = json.loads(capsys.readouterr().out)
        findings = [finding for incident in told["incidents"] for finding in incident["findings"]]
        assert all(bool(each["next"]) == (each["verdict"] != "ruled_out") for each in findings)
        assert all(bool(each["next"]) == (each["verdict"] == "failed") for each in told["checks"])
        assert not [each["next"] for each in findings if "{" in each["next"]]


def test_json_is_text_that_people_can_read(capsys: Captured) -> None:
    main(["triage", str(SAMPLES / "update_against_gradient"), "--json"])
    assert "±" in capsys.readouterr().out


def test_the_rank_is_the_one_that_was_read(capsys: Captured, tmp_path: Path) -> None:
    from spikeview.importers.run_directory import read
    from spikeview.rules.diagnosis import diagnose
    from spikeview.rules.triage import triage

    run = tmp_path / "run"
    shutil.copytree(DRIFT, run)
    (run / "steps" / "rank=0").rename(run / "steps" / "rank=3")
    assert triage(diagnose(read(run, rank=3)))["incidents"][0]["first_bad"]["rank"] == 3


@pytest.mark.parametrize(
    "arguments", [["nope"], ["view", "nope"], ["triage", "nope"], ["report", "nope", "-o", "x.md"]]
)
def test_a_path_that_is_not_there_is_named_before_anything_else_is(
    arguments: list[str], capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main(arguments) == 2
    assert capsys.readouterr().err == "spikeview: nope: no such file or directory; check the path\n"


@pytest.mark.parametrize("arguments", [["traige"], ["traige", DRIFT], ["traige", "--json", DRIFT]])
def test_a_misspelt_command_is_told_the_nearest_one(
    arguments: list[str], capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("spikeview: traige is no run here and no command; the nearest one is triage; see")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["bundle", "-o", "x.zip"], ["compare", HEALTHY], ["import", "-o", "x"]], ids=lambda each: each[0]
)
def test_a_directory_of_runs_where_one_is_asked_for_names_them(
    arguments: list[str], capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        shutil.copytree(DRIFT, tmp_path / "runs" / name)
    assert main([*arguments, "runs"]) == 2
    assert capsys.readouterr().err == "spikeview: runs: holds 2 runs, and one is asked for: a, b\n"


def test_a_bundle_of_a_directory_with_one_run_is_of_that_run(capsys: Captured, tmp_path: Path) -> None:
    shutil.copytree(DRIFT, tmp_path / "runs" / "only")
    assert main(["bundle", str(tmp_path / "runs"), "-o", str(tmp_path / "x.zip")]) == 0


def test_what_a_log_lacks_is_named_once_and_not_line_by_line(capsys: Captured, tmp_path: Path) -> None:
    losses = [2.0 + 0.01 * (n % 7) for n in range(200)]
    losses[150] = 9.0
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["step,loss", *(f"{n},{loss}" for n, loss in enumerate(losses))]))
    assert main(["triage", str(log)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "cannot tell without executed, pre-clip norm, attempted: loss spike, no abnormal transition;" in out
    assert out.count("not recorded") == 2  # of the head, and of the transition
    assert "checks; --markdown and --json name them" in out


def test_one_run_that_cannot_be_read_does_not_hide_the_others(capsys: Captured, tmp_path: Path) -> None:
    assert main(["triage", str(tmp_path / "gone"), DRIFT]) == 2
    captured = capsys.readouterr()
    assert "amp_clock_drift" in captured.out
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("case", ["missing", "empty", "a file", "no rows", "newer", "torn"])
@pytest.mark.parametrize("command", ["triage", "report"])
def test_bad_input_is_one_line_on_stderr_and_status_2(
    command: str, case: str, capsys: Captured, tmp_path: Path
) -> None:
    path = bad_input(case, tmp_path / "run")
    output = ["-o", str(tmp_path / "out.html")] if command == "report" else []
    assert main([command, str(path), *output]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith(f"spikeview: {path}")
    assert not (tmp_path / "out.html").exists()


def bad_input(case: str, path: Path) -> Path:
    if case == "empty":
        path.mkdir()
    elif case == "a file":
        path.write_text("epoch,quality\n0,1.0\n")
    elif case != "missing":
        shutil.copytree(DRIFT, path)
        if case == "no rows":
            shutil.rmtree(path / "steps")
        elif case == "newer":
            manifest = json.loads((path / "run.json").read_text())
            (path / "run.json").write_text(json.dumps(manifest | {"schema_version": 999}))
        else:
            part = next((path / "steps").rglob("part-*.parquet"))
            part.write_bytes(part.read_bytes()[:200])
    return path


def test_report_writes_the_file_and_says_where(capsys: Captured, tmp_path: Path) -> None:
    destination = tmp_path / "incident.md"
    assert main(["report", DRIFT, "--incident", "1", "-o", str(destination)]) == 0
    assert capsys.readouterr().out == f"{destination}\n"
    assert "schedule_drift" in destination.read_text() or "Scheduler" in destination.read_text()


def test_an_incident_the_run_does_not_have_is_refused_in_one_line(capsys: Captured, tmp_path: Path) -> None:
    assert main(["report", DRIFT, "--incident", "9", "-o", str(tmp_path / "incident.md")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_bare_run_opens_the_window_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str | None] = []
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setattr("spikeview.ui.app.view", lambda path, **asked: opened.append(path) or 0)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DRIFT, tmp_path / "triage")  # a run that is named like a command
    for arguments in ([HEALTHY], ["./triage"], ["view", HEALTHY], []):
        assert main(arguments) == 0
    assert opened == [HEALTHY, "./triage", HEALTHY, None]


@pytest.mark.skipif(sys.platform != "linux", reason="there is always a display elsewhere")
@pytest.mark.parametrize("display", [{}, {"DISPLAY": ":4321"}], ids=["none", "one that does not answer"])
def test_without_a_display_one_line_says_what_to_use(display: dict[str, str]) -> None:
    given = {name: value for name, value in os.environ.items() if not name.endswith("DISPLAY")}
    given.pop("QT_QPA_PLATFORM", None)
    command = [sys.executable, "-m", "spikeview", HEALTHY]
    done = subprocess.run(command, env={**given, **display}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "spikeview: there is no display here; use `spikeview triage RUN` or `spikeview report RUN -o incident.html`\n"
    )


def test_without_the_window_libraries_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for name in [name for name in sys.modules if name.split(".")[:2] == ["spikeview", "ui"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("spikeview.ui", raising=False)
    for name in ("PySide6", "PySide6.QtCore", "PySide6.QtGui", "PySide6.QtWidgets"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main([HEALTHY]) == 2
    assert 'pip install "spikeview[view]"' in capsys.readouterr().err


def test_a_fault_of_our_own_is_status_3_with_the_traceback_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def broken(run: object) -> None:
        raise ZeroDivisionError("a bug\nin two lines")

    monkeypatch.setattr("spikeview.rules.diagnosis.diagnose", broken)
    assert main(["triage", DRIFT]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "ZeroDivisionError" in err
    assert "--debug" in err
    assert main(["--debug", "triage", DRIFT]) == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["triage"], "Missing argument 'RUN...'; see `spikeview triage --help`"),
        (["report", DRIFT], "Missing option '-o' / '--output'; see `spikeview report --help`"),
        (["report", DRIFT, "--incident", "0", "-o", "x.md"], "0 is not in the range x>=1"),
        (["triage", DRIFT, "--rank", "x"], "'x' is no rank"),
        (["triage", DRIFT, "--fail-on", "x"], "'x' is not one of 'warning', 'critical', 'never'"),
        (["triage", DRIFT, "--json", "--markdown"], "--json and --markdown exclude each other"),
        (["--no-such-option"], "No such option"),
        ([HEALTHY, "another"], "Got unexpected extra argument (another); see `spikeview view --help`"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments: list[str], says: str, capsys: Captured) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("spikeview: ")
    assert says in captured.err


def test_triage_imports_neither_qt_nor_torch_nor_the_reports_libraries() -> None:
    code = (
        "import sys; from spikeview.cli import main; main(['triage', sys.argv[1]]);"
        "print(sorted({'torch', 'PySide6', 'jinja2', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, HEALTHY], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe that closes early is signalled otherwise there")
def test_a_closed_pipe_is_quiet() -> None:
    command = [sys.executable, "-m", "spikeview", "triage", *[DRIFT] * 3]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141
    process.stderr.close()


def test_ctrl_c_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    def interrupted(run: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("spikeview.rules.diagnosis.diagnose", interrupted)
    assert main(["triage", DRIFT]) == 130
    assert capsys.readouterr().err == ""


def test_text_from_a_run_cannot_drive_the_terminal(capsys: Captured, tmp_path: Path) -> None:
    run = tmp_path / "run\x1b[31m"
    shutil.copytree(DRIFT, run)
    assert main(["triage", str(run)]) == 1
    assert capsys.readouterr().out.startswith("run\\x1b[31m  6 rows")
