"""The newest values from the end of the output, at a cost that does not depend on how much there was."""
from __future__ import annotations

from trainwatch_launcher.progress.latest import TAIL, Watcher, latest

MEGATRON = " iteration {:8d}/ 500 | elapsed time per iteration (ms): 1000.0 | lm loss: {:.6E} | grad norm: 1.5 |\n"


def test_the_newest_value_of_every_key_counts():
    tail = "cut off\n{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 0.1, 'epoch': 0.5}\n" + (
        " 10%|#         | 10/100 [00:20<03:00,  2.00s/it]\r 11%|#1        | 11/100 [00:22<02:58,  2.00s/it]\n"
    )
    progress = latest(tail.encode())
    assert progress is not None
    assert progress.format == "hf-trainer"
    assert progress.values == {
        "step": 11, "total": 100, "loss": 2.5, "grad_norm": 1.0, "lr": 0.1, "epoch": 0.5, "ms_per_iter": 2000.0,
        "eta_s": 178,
    }  # fmt: skip


def test_what_says_nothing_gives_nothing():
    assert latest(b"") is None
    assert latest(b"hello\nworld\n") is None


def test_a_first_line_that_is_cut_is_not_misread():
    assert latest(b"34 loss 2.5\nnothing\n") is None
    assert latest(b"step 34 loss 2.5\nnothing\n") is None
    whole = Watcher().look(b"step 34 loss 2.5\nnothing\n", whole=True)
    assert whole is not None
    assert whole.values["step"] == 34


def test_a_last_line_that_is_still_being_written_is_not_misread():
    progress = latest(b"\nstep 34 loss 2.5\nstep 35 loss 2.")
    assert progress is not None
    assert progress.values == {"step": 34, "loss": 2.5}
    bars = b"\n\rEpoch 1:  1%|  | 10/1000 [00:20<03:00,  2.00s/it]\rEpoch 1:  1%|  | 11/1000 [00:22<02:58,  2.0"
    progress = latest(bars)
    assert progress is not None
    assert progress.values["step"] == 10


def test_a_complete_bar_needs_no_line_end():
    progress = latest(b"\n\rEpoch 1:  1%|  | 10/1000 [00:20<03:00,  2.00s/it]")
    assert progress is not None
    assert progress.values["step"] == 10


def test_only_the_end_of_a_dense_log_is_looked_at_and_of_a_sparse_one_all_of_the_tail():
    dense = "".join(MEGATRON.format(step, 2.5) for step in range(2000)).encode()
    progress = latest(dense)
    assert progress is not None
    assert progress.values["step"] == 1999
    assert progress.points < 200
    sparse = (MEGATRON.format(7, 2.5) + "noise\n" * 8000).encode()
    progress = latest(b"\n" + sparse)
    assert progress is not None
    assert progress.values["step"] == 7
    assert latest(b"\n" + MEGATRON.format(7, 2.5).encode() + b"noise\n" * TAIL) is None


def test_a_watcher_remembers_which_bar_is_the_training():
    watcher = Watcher()
    train = b"\n  1%|          | 10/1000 [00:20<03:00,  2.00s/it]\n"
    first = watcher.look(train)
    assert first is not None
    assert first.values["step"] == 10
    assert watcher.look(b"\n 50%|#####     | 20/40 [00:40<00:40,  2.00s/it]\n" * 100) is None
    again = watcher.look(b"\n  2%|          | 20/1000 [00:40<03:00,  2.00s/it]\n")
    assert again is not None
    assert again.values["step"] == 20


def test_an_unchanged_tail_is_not_read_again():
    watcher = Watcher()
    assert watcher.look(b"\nstep 34 loss 2.5\n") is watcher.look(b"\nstep 34 loss 2.5\n")


def test_values_become_fields_of_a_status_that_json_can_hold():
    progress = latest(b"\nstep 34 loss nan lr 0.1\n")
    assert progress is not None
    fields = progress.as_fields()
    assert (fields["step"], fields["total"], fields["loss"], fields["lr"]) == (34, None, None, 0.1)
    assert (fields["loss_text"], fields["progress_format"]) == ("nan", "generic")
