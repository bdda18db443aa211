"""GRPO on a random two-layer model: records, failures, checkpoints and resuming."""

import gc
import os
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import tests.helpers.grpo_run as run
from tests.helpers import contents, examples
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import read as rows
from tests.helpers.score_helpers import write
from workbench.runs.checkpoints import mark_complete, rewind
from workbench.runs.folder import lock, open_run
from workbench.training.grpo_config import GRPO, batches, check
from workbench.training.recorder import RolloutRecorder
from workbench.training.sampling import grouped
from workbench.training.stage import order
from workbench.types import Failure, Feedback, Response, Reward
from workbench.util.config import scaled
from workbench.util.failures import TooManyFailures

SMALL = run.SHORT


def test_without_a_gpu_the_plain_path_is_taken(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert run.trainee_of(policy).path == "plain"
    with pytest.raises(RuntimeError, match="needs a CUDA device"):
        run.trainee_of(policy, unsloth=True)


def test_the_compile_folder_of_unsloth_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.training.loading import compile_folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = Path(compile_folder())
    assert folder.is_relative_to(tmp_path) and folder.stat().st_mode & 0o777 == 0o700
    assert Path(compile_folder()) == folder  # compiled files are reused


@pytest.mark.parametrize(
    ("name", "value", "shown_value"),
    [("weight_decay", 0.001, "0.001, not 0.0"), ("epsilon_high", 0.28, "0.28, not 0.2")],
)
def test_an_argument_that_the_trainer_changed_silently_is_an_error(
    policy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: float,
    shown_value: str,
) -> None:
    import trl

    class Knowing(trl.GRPOConfig):  # as Unsloth's config does
        def __post_init__(self) -> None:
            super().__post_init__()
            setattr(self, name, value)

    monkeypatch.setattr("trl.GRPOConfig", Knowing)
    with raises_error(rf"changed its arguments \({name} is {shown_value}\)"):
        run.grpo(SMALL, policy, tmp_path)


def test_unsloth_gets_at_most_the_positions_of_the_policy(policy: str) -> None:
    from transformers import AutoConfig

    from workbench.training.loading import positions

    has = AutoConfig.from_pretrained(policy).max_position_embeddings
    assert positions(policy, has + 1) == has
    assert positions(policy, has - 1) == has - 1


def test_every_rollout_and_step_is_recorded(grpo_run: Path) -> None:
    metrics, rollouts = rows(grpo_run / "metrics.jsonl"), rows(grpo_run / "rollouts.jsonl")
    assert [row["step"] for row in metrics] == [1, 2]
    assert [row["learning_rate"] for row in metrics] == [0.01, 0.005]  # linear decay
    assert [row["step"] for row in rollouts] == [1] * 16 + [2] * 16
    assert len({row["id"] for row in rollouts}) == 32
    assert len({row["group"] for row in rollouts}) == 8
    for row in metrics:
        values = [r["rewards"]["m"]["value"] for r in rollouts if r["step"] == row["step"]]
        scored = [value for value in values if value is not None]
        assert row["failed"] == 16 - len(scored)
        assert row["reward"] == pytest.approx(statistics.mean(scored))
        # this reward is the truthfulness
        assert row["truthfulness"] == pytest.approx(statistics.mean(scored))
        assert row["accuracy"] == pytest.approx(scored.count(1.0) / len(scored))


def test_files_of_a_checkpoint_are_synced_before_it_is_marked_complete(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def noting(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr("os.fsync", noting)
    run.grpo(scaled(SMALL, steps=1), policy, tmp_path)
    checkpoint = tmp_path / "checkpoints" / "checkpoint-1"
    # a rename keeps the inode
    before = synced[: synced.index((checkpoint / "complete.json").stat().st_ino)]
    wanted = [tmp_path / name for name in ("metrics.jsonl", "rollouts.jsonl", "questions.jsonl")]
    wanted += [path for path in checkpoint.rglob("*") if path.name != "complete.json"]
    assert [path.name for path in wanted if path.stat().st_ino not in before] == []
    assert [
        path.name for path in (tmp_path / "policy").iterdir() if path.stat().st_ino not in synced
    ] == []


def test_unscored_responses_are_left_out_of_the_baseline_and_get_advantage_zero(
    policy: str, tmp_path: Path
) -> None:
    trainer = run.trainer_of(scaled(SMALL, prompts_per_step=8), policy, tmp_path, run.grade)
    batch = run.batch_of(trainer)
    values = [feedback.rewards["m"].value for feedback in trainer.recorder.step_feedbacks]
    assert None in values
    expected = []
    for start in range(0, len(values), 4):
        group = values[start : start + 4]
        scored = [value for value in group if value is not None]
        mean, std = statistics.mean(scored), statistics.stdev(scored) if len(scored) > 1 else 0.0
        expected += [0.0 if value is None else (value - mean) / (std + 1e-4) for value in group]
    assert batch["advantages"].tolist() == pytest.approx(expected, abs=1e-5)
    assert batch["advantages"].dim() == 1


def test_too_many_failures_stop_the_run_and_are_recorded(policy: str, tmp_path: Path) -> None:
    frozen: list[int] = []

    def failing(responses: Sequence[Response]) -> list[Feedback]:
        frozen.append(gc.get_freeze_count())
        failure = Failure("judge", "unreadable", "garbled reply")
        return [
            Feedback(r, error=failure, rewards={"m": Reward(None, error=failure)})
            for r in responses
        ]

    with pytest.raises(
        TooManyFailures, match=r"16 of 16 responses of step 1 .*judge: garbled reply"
    ) as raised:
        run.grpo(SMALL, policy, tmp_path, failing)
    assert raised.value.code == 4
    assert len(rows(tmp_path / "rollouts.jsonl")) == 16
    # loaded objects are excluded from garbage collection during a run
    assert frozen[0] and not gc.get_freeze_count()


def test_a_value_that_is_not_among_the_choices_is_refused() -> None:
    with raises_error("report_to is 'foo': choose one of none, trackio"):
        check(scaled(GRPO(), report_to="foo"))


def test_batches_are_at_most_a_step() -> None:
    config = scaled(GRPO(), prompts_per_step=2, group_size=4, generation_batch=128, micro_batch=32)
    check(config)
    assert batches(config) == (8, 8, 8)
    assert batches(config, processes=2) == (8, 8, 4)


def test_order_visits_every_question_once_a_pass() -> None:
    numbers = order(5, 12, seed=3)
    assert sorted(numbers[:5]) == sorted(numbers[5:10]) == [0, 1, 2, 3, 4]
    assert len(numbers) == 12 and numbers == order(5, 12, seed=3) != order(5, 12, seed=4)


def test_a_question_asked_twice_in_a_step_makes_two_groups() -> None:
    asked, (first, second) = Counter[str](), run.QUESTIONS[:2]
    names = [
        *grouped([first, first, second, second], 7, 2, asked),
        *grouped([first, first], 7, 2, asked),
    ]
    groups = [(f"{group}/7", n) for group in ("q0", "q1") for n in (0, 1)]
    assert names == [*groups, ("q0/7.2", 0), ("q0/7.2", 1)]


def test_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    assert open_run(tmp_path, {"seed": 1, "config": {"steps": 2}}) is None
    assert open_run(tmp_path, {"seed": 1, "config": {"steps": 2}}) is None  # the same run continues
    with raises_error(r"another run \(seed is 1, not 2; config.steps is 2, not 3\).*--out"):
        open_run(tmp_path, {"seed": 2, "config": {"steps": 3}})


def test_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises_error(r"cannot write to .*choose another --out"), lock(tmp_path / "file" / "run"):
        pass


def test_resuming_with_other_versions_prints_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert open_run(tmp_path, {"seed": 1}, {"torch": "1"}) is None
    assert open_run(tmp_path, {"seed": 1}, {"torch": "1"}) is None
    assert capsys.readouterr().err == ""
    assert open_run(tmp_path, {"seed": 1}, {"torch": "2"}) is None
    errors = capsys.readouterr().err
    assert "started with other versions" in errors and 'torch is "1", not "2"' in errors


def test_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.runs.folder.FREE_MB", 10**12)
    with raises_error("MB free"):
        open_run(tmp_path, {})
    assert not (tmp_path / "config.json").exists()


def test_folder_with_results_but_no_config_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("")
    with raises_error(r"metrics.jsonl but no config.json"):
        open_run(tmp_path, {})


def test_only_complete_checkpoints_count(tmp_path: Path) -> None:
    record_steps(tmp_path, [2, 4, 6], [0] * 3)
    # same size, another content
    (tmp_path / "checkpoints" / "checkpoint-4" / "weights").write_text("x")
    (tmp_path / "checkpoints" / "checkpoint-6" / "complete.json").unlink()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"st')
    with pytest.warns(UserWarning, match="unfinished last line"):
        assert rewind(tmp_path) == (tmp_path / "checkpoints" / "checkpoint-2", 2)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["checkpoint-2"]
    assert [row["step"] for row in rows(tmp_path / "metrics.jsonl")] == [1, 2]


@pytest.mark.parametrize(("logged", "last"), examples("logged_steps"))
def test_a_checkpoint_counts_only_with_the_metrics_of_all_its_steps(
    tmp_path: Path, logged: list[int], last: int
) -> None:
    record_steps(tmp_path, [2, 4], [])
    write(tmp_path / "metrics.jsonl", ({"step": step} for step in logged))
    assert rewind(tmp_path)[1] == last
    assert [row["step"] for row in rows(tmp_path / "metrics.jsonl")] == list(range(1, last + 1))


def record_steps(out: Path, checkpoints: Sequence[int], counts: Sequence[int]) -> None:
    """Write a run's folder with complete checkpoints and `counts` rollouts per step."""
    for step in checkpoints:
        folder = out / "checkpoints" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "weights").write_text("w")
        mark_complete(folder)
    write(out / "metrics.jsonl", ({"step": step} for step in range(1, len(counts) + 1)))
    lines = [
        {"id": f"{step}/{n}", "step": step}
        for step, count in enumerate(counts, start=1)
        for n in range(count)
    ]
    write(out / "rollouts.jsonl", lines)


def test_a_run_with_lost_rollouts_resumes_from_an_earlier_checkpoint(tmp_path: Path) -> None:
    record_steps(tmp_path, [2, 4], [3, 3, 3, 1])
    assert rewind(tmp_path, 3) == (tmp_path / "checkpoints" / "checkpoint-2", 2)
    assert [row["step"] for row in rows(tmp_path / "rollouts.jsonl")] == [1] * 3 + [2] * 3
    assert rewind(tmp_path, 3)[1] == 2


@pytest.mark.parametrize("counts", [[3, 2, 3, 3], [3, 4, 3, 3]])
def test_a_run_without_rollouts_from_before_its_checkpoints_is_refused_and_unchanged(
    tmp_path: Path, counts: list[int]
) -> None:
    record_steps(tmp_path, [2, 4], counts)
    before = contents(tmp_path)
    step = next(step for step, count in enumerate(counts, start=1) if count != 3)
    message = f"must have 3 rows with distinct ids for step {step}: restore"
    with raises_error(message):
        rewind(tmp_path, 3)
    assert contents(tmp_path) == before


def test_a_duplicate_row_makes_a_step_incomplete(tmp_path: Path) -> None:
    record_steps(tmp_path, [1], [3])
    lines = (tmp_path / "rollouts.jsonl").read_text().splitlines()
    write(tmp_path / "rollouts.jsonl", [lines[0], lines[0], lines[2]])
    with raises_error("3 rows with distinct ids for step 1"):
        rewind(tmp_path, 3)


def test_a_run_is_not_done_without_all_its_rollouts(policy: str, tmp_path: Path) -> None:
    def losing(responses: Sequence[Response]) -> list[Feedback]:
        if responses[0].step == 2:  # as another program may do during the run
            (tmp_path / "rollouts.jsonl").write_text("")
        return run.grade(responses)

    with raises_error("must have 16 rows with distinct ids for step 1"):
        run.grpo(SMALL, policy, tmp_path, losing)
    assert not (tmp_path / "policy").exists()
    with raises_error("must have 16 rows with distinct ids for step 1"):
        run.grpo(SMALL, policy, tmp_path)


def test_unsloth_imported_after_trl_is_refused(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsloth replaces `trl.GRPOTrainer`; a class defined earlier has plain TRL's loss."""
    from workbench.training.grpo_step import RolloutTrainer

    trainee = replace(run.trainee_of(policy), path="unsloth")
    with RolloutRecorder(tmp_path, "m", run.grade, steps=2, done=0, max_failed=0.9) as recorder:
        monkeypatch.setattr("trl.GRPOTrainer", type("Patched", (), {}))
        with raises_error("train in a new process"):
            RolloutTrainer(SMALL, trainee, recorder, run.QUESTIONS, tmp_path, 1)
