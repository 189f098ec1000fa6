"""Text logs: a program's own lines among others, and what they do not say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from spikeview.rules.diagnosis import diagnose
from spikeview.rules.triage import triage
from tests.importers.written import column, opened, written


def megatron(step: int, skipped: int, *further: str, prefix: str = "") -> str:
    counts = [f"number of skipped iterations: {skipped:3d}", "number of nan iterations:   0"]
    fields = [f"iteration {step:8d}/    1000", "learning rate: 1.000E-04", *further, *counts]
    return f"{prefix} {' | '.join(fields)} |"


def test_megatron_rows_stand_for_their_iterations_and_count_their_skips(tmp_path: Path) -> None:
    lines = [
        "> building train, validation, and test datasets ...",
        megatron(10, 10, "loss scale: 8388608.0"),
        "(after 10 iterations) memory (MB) | allocated: 21633.0859375 | max allocated: 24432.009765625",
        megatron(20, 8, "lm loss: 1.203115E+01", "loss scale: 32768.0"),
        " validation loss at iteration 20 | lm loss value: 7.4E+00 | lm loss PPL: 1.7E+03 | ",
        megatron(30, 0, "lm loss: 2.247505E+01", "loss scale: 32768.0", "grad norm: 16.999"),
    ]
    run = opened(written(tmp_path / "job.out", lines))
    assert column(run, "step") == [10, 20, 30]
    assert column(run, "loss") == [None, 12.03115, 22.47505]
    assert column(run, "grad_norm") == [None, None, 16.999]
    assert column(run, "executed") == [False, True, True]
    assert (column(run, "attempted_n"), column(run, "executed_n")) == ([10, 20, 30], [0, 2, 12])
    # read after the update, and the row after is not the step after: they stay where they are
    assert column(run, "loss_scale") == [8388608.0, 32768.0, 32768.0]
    assert run.events[0] == {"step": 20, "loss": 7.4, "kind": "validation", "row": 1}
    told = triage(diagnose(run))
    assert told["incidents"] == []
    assert told["executed"] == 12
    assert next(check for check in told["checks"] if check["id"] == "skip_rate")["evidence"].startswith("18 of 30")


def test_megatron_leaves_a_nan_loss_out_and_the_row_says_so(tmp_path: Path) -> None:
    lines = [megatron(step, 0, "lm loss: 2.0E+00", "grad norm: 1.0") for step in range(1, 9)]
    lines += [megatron(9, 0, "grad norm: nan"), megatron(10, 0, "grad norm: nan")]
    run = opened(written(tmp_path / "log", lines))
    assert [math.isnan(value) for value in run.values("loss")] == [False] * 8 + [True] * 2
    [incident] = triage(diagnose(run))["incidents"]
    assert (incident["first_bad"]["step"], incident["first_bad"]["signal"]) == (9, "loss")


def test_what_was_read_after_the_update_stands_with_the_step_it_holds_for(tmp_path: Path) -> None:
    rates = [1e-4, 1e-4, 3e-3, 3e-3]
    lines = [
        megatron(step, 0, "lm loss: 2.0E+00").replace("1.000E-04", f"{rate:.3E}") for step, rate in enumerate(rates, 5)
    ]
    lines.append(megatron(20, 0, "lm loss: 2.0E+00"))
    run = opened(written(tmp_path / "log", lines))
    # the first row's own rate stands before the log, and before step 20 lies a gap
    assert column(run, "lr") == [None, 1e-4, 1e-4, 3e-3, None]


def test_of_several_processes_one_is_read(tmp_path: Path) -> None:
    lines = [
        megatron(step, 0, f"lm loss: {2 + rank / 10:.6E}", prefix=f"[default{rank}]:")
        for step in range(1, 4)
        for rank in (7, 3)
    ]
    run = opened(written(tmp_path / "log", lines))
    assert column(run, "step") == [1, 2, 3]
    assert set(column(run, "loss")) == {2.7}
    assert any("3 lines of other processes left out ([default3])" in note for note in run.notes)


def test_deepspeed_skips_are_the_steps_that_it_names(tmp_path: Path) -> None:
    def overflow(step: int, scale: float) -> list[str]:
        ranks = [f"Grad overflow on iteration {step}", f"Reducing dynamic loss scale from {scale} to {scale / 2}"] * 2
        return [
            *ranks,
            f"[Rank 0] Overflow detected. Skipping step. Attempted loss scale: {scale}, reducing to {scale / 2}",
        ]

    counter = "[2023-04-18 03:36:02] [INFO] [Rank 0] step={}, skipped={}, lr=[{}, {}], mom=[(0.9, 0.95)]"
    lines = [
        *overflow(0, 1024.0),
        *overflow(1, 512.0),
        counter.format(10, 2, 1e-5, 1e-5),
        *["[_update_scale] No Grad overflow for 5 iterations", "Increasing dynamic loss scale from 256.0 to 512.0"] * 2,
        *[counter.format(step, 2, step * 1e-6, step * 1e-6) for step in (20, 30, 40)],
        *overflow(43, 512.0),
        counter.format(50, 3, 5e-5, 5e-5),
    ]
    run = opened(written(tmp_path / "ds.log", lines))
    assert column(run, "step") == list(range(50))
    assert [step for step, ran in enumerate(column(run, "executed")) if not ran] == [0, 1, 43]
    # grown after the fifth calm step, which is 7; the rate of a counter is that of the step after it
    assert column(run, "loss_scale") == [1024, 512, *[256] * 6, *[512] * 36, *[256] * 6]
    rates = {step: rate for step, rate in enumerate(column(run, "lr")) if rate}
    assert rates == {step: pytest.approx(step * 1e-6) for step in (10, 20, 30, 40)}
    [incident] = triage(diagnose(run))["incidents"]
    assert (incident["first_bad"]["step"], incident["first_bad"]["reason"]) == (43, "skipped")
    assert incident["findings"][0]["id"] == "attempted_not_executed"


def test_deepspeed_counters_tell_how_many_where_messages_tell_no_step(tmp_path: Path) -> None:
    skip = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, {}"
    lines = [
        skip.format(4096, "but hysteresis is 2. Reducing hysteresis to 1"),
        skip.format(4096, "reducing to 2048"),
        "[Rank 0] step=10, skipped=2, lr=[1e-05], mom=[(0.9, 0.95)]",
        "[Rank 0] step=20, skipped=2, lr=[1e-05], mom=[(0.9, 0.95)]",
        skip.format(4096, "but hysteresis is 2. Reducing hysteresis to 1"),
        "[Rank 0] step=30, skipped=4, lr=[1e-05], mom=[(0.9, 0.95)]",
    ]
    run = opened(written(tmp_path / "ds.log", lines))
    assert column(run, "step") == [10, 20, 30]
    assert (column(run, "attempted_n"), column(run, "executed_n")) == ([10, 20, 30], [8, 18, 26])
    assert column(run, "loss_scale") == [4096, 2048, 4096]
    assert any("4 skips by the counter, 3 by messages" in note for note in run.notes)
    assert triage(diagnose(run))["incidents"] == []


FAIRSEQ = (
    '2021-03-08 12:31:36 | INFO | train_inner | {{"epoch": 1, "loss": "{}", "num_updates": "{}", "lr": "{}", '
    '"gnorm": "1.5", "loss_scale": "{}"}}'
)
NOTE = (
    "2021-03-08 12:33:12 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, "
    "setting loss scale to: {}"
)


def test_fairseq_overflows_are_attempts_before_the_update_that_followed(tmp_path: Path) -> None:
    lines = [
        FAIRSEQ.format(16.4, 1, 1e-5, 4),
        NOTE.format(2.0),
        NOTE.format(1.0),
        FAIRSEQ.format(16.2, 2, 2e-5, 1),
        FAIRSEQ.format(16.1, 3, 3e-5, 1),
        '2021-03-08 12:43:15 | INFO | valid | {"epoch": 1, "valid_loss": "17.953", "valid_num_updates": "3"}',
    ]
    run = opened(written(tmp_path / "train.log", lines))
    assert column(run, "step") == [1, 2, 2, 2, 3]
    assert column(run, "micro_step") == [0, 0, 1, 2, 0]
    assert column(run, "executed") == [True, False, False, True, True]
    assert column(run, "loss") == [16.4, None, None, 16.2, 16.1]
    # what is logged was set by the update: each attempt ran under what the one before it left
    assert column(run, "loss_scale") == [None, 4, 2, 1, 1]
    assert column(run, "lr") == [None, 1e-5, 1e-5, 1e-5, 2e-5]
    assert (column(run, "attempted_n")[-1], column(run, "executed_n")[-1]) == (5, 3)
    assert run.events[-1]["loss"] == 17.953


def test_fairseq_lines_in_its_other_format(tmp_path: Path) -> None:
    line = (
        "2022-01-01 | INFO | train_inner | epoch 001:    {} / 9 loss=9.5, ppl=724, num_updates={}, lr=1e-05, gnorm=3.4"
    )
    run = opened(written(tmp_path / "train.log", [line.format(step, step) for step in (10, 20, 30)]))
    assert column(run, "step") == [10, 20, 30]
    assert column(run, "grad_norm") == [3.4] * 3


def test_nanogpt_estimates_are_no_rows_and_an_unmeasured_utilisation_is_none(tmp_path: Path) -> None:
    lines = [
        "number of parameters: 10.65M",
        "step 0: train loss 4.4501, val loss 4.4402",
        "iter 0: loss 4.4512, time 23218.37ms, mfu -100.00%",
        "iter 1: loss 4.4586, time 193.77ms, mfu 12.50%",
        "iter 2: loss nan, time 193.77ms, mfu 12.50%",
        "[rank0]: KeyboardInterrupt",
    ]
    run = opened(written(tmp_path / "out.txt", lines))
    assert column(run, "step") == [0, 1, 2]
    assert column(run, "loss")[:2] == [4.4512, 4.4586]
    assert math.isnan(column(run, "loss")[2])  # type: ignore[arg-type]
    assert column(run, "user_mfu_percent") == [None, 12.5, 12.5]
    assert run.events[0] == {"step": 0, "loss": 4.4402, "train_loss": 4.4501, "kind": "validation", "row": 0}


def test_a_script_before_the_log_is_no_log_and_a_missing_time_no_nan(tmp_path: Path) -> None:
    lines = [
        "x = 'step:0 train_loss:nan is text, not a log line'",
        "print(f'step:{step+1}/{n} train_loss:{loss:.4f} train_time:{t:.0f}ms step_avg:{t/k:.2f}ms')",
        "=" * 100,
        "step:0/5100 val_loss:16.0058 train_time:278ms step_avg:nanms",
        "step:1/5100 train_loss:16.0026 train_time:42703ms step_avg:nanms",
        "step:2/5100 train_loss:9.4947 train_time:53466ms step_avg:176.69ms",
    ]
    run = opened(written(tmp_path / "log.txt", lines))
    assert column(run, "loss") == [16.0026, 9.4947]
    assert "nan" not in str(run.events)


@pytest.mark.parametrize(
    "lines",
    [
        ["s:0 tel:10.96", "s:0 trl:10.9656 lr:0.000100 norm:15.50",
         "s:1 trl:10.8140 lr:0.000200 norm:14.25", "s:1 eval:0.25"],
        ["step    0/9 | loss 10.965600 (+nanz)| norm 15.5000 (+nanz)| lr 1.00e-04 | 20 ms",
         "step    1/9 | loss 10.814000 (+0.10z)| norm 14.2500 (-0.10z)| lr 2.00e-04 | 20 ms"],
    ],
    ids=["main.log", "printed"],
)  # fmt: skip
def test_llm_c_in_its_file_and_on_the_terminal(lines: list[str], tmp_path: Path) -> None:
    run = opened(written(tmp_path / "log", lines))
    assert [column(run, name) for name in ("step", "loss", "lr", "grad_norm")] == [
        [0, 1],
        [10.9656, 10.814],
        [1e-4, 2e-4],
        [15.5, 14.25],
    ]


def test_printed_dicts_take_their_steps_from_the_bar_below_them(tmp_path: Path) -> None:
    text = "loading\r\n"
    for step in (10, 20, 30):
        text += f" 9%|#   | {step - 3}/40 [00:01<00:02, 5.00it/s]\r   {{'loss': {step / 10}, "
        text += "'grad_norm': tensor(2.5, device='cuda:0'), "
        text += f"'learning_rate': 5e-05, 'epoch': {step / 40}}}\n 10%|#   | {step}/40 [00:01<00:02, 5.00it/s]\r"
        text += "  0%|    | 0/5 [00:00<?, ?it/s]"
    text += "\n{'eval_loss': '0.8859', 'epoch': '0.75'}\n{'train_runtime': 0.35, 'train_loss': 1.08, 'epoch': 0.75}\n"
    path = tmp_path / "slurm.out"
    path.write_bytes(text.encode())
    run = opened(path)
    assert column(run, "step") == [10, 20, 30]
    assert column(run, "loss") == [1.0, 2.0, 3.0]
    assert column(run, "grad_norm") == [2.5] * 3
    assert [event["kind"] for event in run.events] == ["validation", "metrics"]
    without = opened(written(tmp_path / "o", [line for line in text.split("\n") if "'loss'" in line]))
    assert not without.recorded("step").any()
    assert any("no step is printed" in note for note in without.notes)


def test_a_text_in_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes("".join(f"iter {k}: loss 2.5, time 1.00ms, mfu 1.00%\r\n" for k in range(3)).encode("utf-16"))
    assert column(opened(path), "loss") == [2.5] * 3
