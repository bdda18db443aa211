"""Recipes and benches: settings, question files, the run folder's life from start to summary."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

import workbench.bench as benches
from tests.helpers.tiny_model import make_policy
from workbench.bench import Bench, rule_checks
from workbench.config import override
from workbench.data import split_of
from workbench.recipes import configure, train_recipe
from workbench.recipes.truthrl import TruthRL, grader, questions
from workbench.types import Question, Response, WorkbenchError

NAMES = "Ada Bo Cy Di Ed Flo Gus Hal Ina Jo".split()
SMALL: dict[str, Any] = {"steps": 2, "prompts_per_step": 4, "group_size": 4, "micro_batch": None, "generation_batch": None}
SMALL |= {"max_new_tokens": 4, "lora_r": 4, "eval_samples": 1, "save_every": 1, "learning_rate": 1e-2}


@dataclass(frozen=True)
class Settings:
    reward: Literal["ternary", "binary"] = "ternary"
    steps: int = 10
    rate: float = 0.5
    batch: int | None = None
    fast: bool = False


def all_questions(split: str, kinds: Any = None, lang: str = "en") -> list[Question]:
    if lang == "l2":
        return [Question(f"{split}-{name}-l2", f" Ubi est {name}", (" Roma",), meta={"tier": "known"}) for name in NAMES[:3]]
    asked = [Question(f"{split}-{name}", f" Where is {name}", (" Rome",), meta={"tier": "known"}) for name in NAMES]
    unanswered = Question(f"{split}-open", " Who is Ada", kind="biography")
    return [question for question in [*asked, unanswered] if not kinds or question.kind in kinds]


def make_bench(folder: Path) -> Bench:
    """A bench of a random policy and ten questions, so that a run takes seconds. It goes under the name of the tiny one."""
    policy = str(make_policy(folder))
    return Bench(
        "tiny", "sft", all_questions, 4, "hash", rule_checks, checkpoints={"sft": policy}, overrides={"truthrl": SMALL}
    )


@pytest.fixture
def small_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = make_bench(tmp_path / "policy")
    monkeypatch.setattr(benches, "bench", lambda name, questions=None: bench)
    return bench


def test_override_by_declared_types() -> None:
    changed = override(Settings(), "m", ["m.reward=binary", "m.steps=3", "m.rate=1e-3", "m.batch=4", "m.fast=true"])
    assert changed == Settings("binary", 3, 1e-3, 4, True)
    assert override(changed, "m", ["m.batch=none", "m.steps=5"]) == Settings("binary", 5, 1e-3, None, True)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("m.stesp=3", "has no field 'stesp'; its fields are reward, steps, rate, batch, fast"),
        ("m.steps=3.5", "'3.5' is not an int"),
        ("m.rate=x", "'x' is not a float"),
        ("m.reward=both", "choose one of ternary, binary"),
        ("m.fast=perhaps", "write true or false"),
        ("m.steps", "write m.FIELD=VALUE"),
        ("other.steps=3", "write m.FIELD=VALUE"),
    ],
)
def test_override_says_what_is_wrong(setting: str, message: str) -> None:
    with pytest.raises(WorkbenchError, match=message):
        override(Settings(), "m", [setting])


def test_defaults_are_the_papers_and_a_bench_replaces_them(small_bench: Bench) -> None:
    paper = TruthRL()
    assert (paper.schedule, paper.prompts_per_step, paper.beta) == ("constant", 64, 0.001)
    assert (paper.clip, paper.temperature, paper.top_p, paper.max_new_tokens) == (0.2, 1.0, 1.0, 2048)
    config = configure("truthrl", small_bench, 7, ["truthrl.reward=binary"])
    assert config == replace(paper, **{**SMALL, "steps": 7, "reward": "binary"})
    with pytest.raises(WorkbenchError, match="no recipe 'truthlr': choose one of truthrl"):
        configure("truthlr", small_bench)


def test_an_adapter_is_trained_at_a_rate_that_moves_it(tmp_path: Path) -> None:
    """Adam moves a weight by at most the rate a step: the paper's 1e-6 leaves lora_B, which starts at 0, below 1e-4."""
    file = tmp_path / "questions.jsonl"
    file.write_text('{"id": "1", "question": "?", "answers": ["!"]}\n')
    for name in benches.NAMES:
        config = configure("truthrl", benches.bench(name, questions=file))
        assert config.learning_rate * config.steps >= 1e-3


def test_settings_of_every_bench_can_work(tmp_path: Path) -> None:
    from workbench.train.grpo import check

    file = tmp_path / "questions.jsonl"
    file.write_text('{"id": "1", "question": "?", "answers": ["!"]}\n')
    for name in benches.NAMES:
        check(configure("truthrl", benches.bench(name, questions=file)))


def test_reward_pays_abstentions_as_chosen(small_bench: Bench) -> None:
    asked = Question("q", "Capital of France?", ("Paris",))
    responses = [Response(text, asked, text) for text in ("Paris", "I don't know", "Lyon")]
    paid = {
        reward: [f.rewards["truthrl"].value for f in grader(TruthRL(reward=reward), small_bench)(responses)]
        for reward in ("ternary", "binary")
    }
    assert paid == {"ternary": [1.0, 0.0, -1.0], "binary": [1.0, -1.0, -1.0]}


def test_only_questions_with_answers_are_trained_on(small_bench: Bench) -> None:
    assert len(questions(TruthRL(), small_bench)) == len(NAMES)
    for kinds in ("biography", "single,nonsense"):
        missing = kinds.rpartition(",")[2]
        with pytest.raises(WorkbenchError, match=f"no training questions with answers of kinds {missing}: choose among single"):
            questions(TruthRL(kinds=kinds), small_bench)


def test_run_from_start_to_summary_and_again(small_bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    summary = train_recipe("truthrl", "tiny", 3, out, threads=1)
    assert summary == json.loads((out / "summary.json").read_text())
    assert list(summary)[:4] == ["method", "config", "seed", "threads"]
    assert {"versions", "world_hash", "policy_hash", "before", "after", "seconds", "cost", "status"} < set(summary)
    assert (summary["method"], summary["seed"], summary["threads"], summary["status"]) == ("truthrl", 3, 1, "done")
    assert summary["before"]["split"] == summary["after"]["split"] == "validation"
    assert summary["before"]["n"] == len(NAMES)  # not the one without answers
    assert summary["cost"]["calls"] == 0 and summary["failed"] == 0
    assert json.loads((out / "config.json").read_text())["versions"] == summary["versions"]
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 2
    assert not capsys.readouterr().out  # stdout belongs to the command line

    modified = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert train_recipe("truthrl", "tiny", 3, out) == summary
    assert "is finished" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == modified
    with pytest.raises(WorkbenchError, match=r"another run \(seed is 3, not 4\)"):
        train_recipe("truthrl", "tiny", 4, out)


def test_equal_runs_have_equal_summaries(small_bench: Bench, tmp_path: Path) -> None:
    one, two = (train_recipe("truthrl", "tiny", 3, tmp_path / name, threads=1) for name in "ab")
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_evaluating_a_run_folder_uses_its_adapter(small_bench: Bench, tmp_path: Path) -> None:
    from workbench.evaluate import evaluate_policy

    summary = train_recipe("truthrl", "tiny", 3, tmp_path / "run", threads=1)
    again = evaluate_policy(str(tmp_path / "run"), "validation", "tiny", samples=1, seed=3, threads=1)
    assert {**again, "policy": ""} == {**summary["after"], "policy": ""}
    assert evaluate_policy("sft", "validation", "tiny", samples=1, seed=3, threads=1) == summary["before"]


def test_nothing_is_written_for_what_cannot_start(small_bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    broken = "steps=0 nope=1 kinds=biography kinds=single,nonsense eval_split=foo eval_split=rl report_to=foo eval_samples=-3"
    broken += " learning_rate=nan temperature=nan top_p=7 clip=-1 beta=-1 lora_alpha=0 micro_batch=0"
    for setting in broken.split():
        with pytest.raises(WorkbenchError, match=setting.partition("=")[0]):
            train_recipe("truthrl", "tiny", 3, out, overrides=[f"truthrl.{setting}"])
    with pytest.raises(WorkbenchError, match="the seed is -1"):
        train_recipe("truthrl", "tiny", -1, out)
    assert not out.exists()


def test_a_bench_without_questions_to_evaluate_on_is_refused(
    small_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_rl = replace(small_bench, questions=lambda split, kinds=None: all_questions(split) if split == "rl" else [])
    monkeypatch.setattr(benches, "bench", lambda name, questions=None: only_rl)
    with pytest.raises(WorkbenchError, match="no questions with answers in split 'validation'"):
        train_recipe("truthrl", "tiny", 3, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_threads_do_not_depend_on_the_machine(small_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert train_recipe("truthrl", "tiny", 3, tmp_path / "run", steps=1)["threads"] == 2


def test_a_folder_in_use_is_left_alone(small_bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    from workbench.train.run import lock

    with lock(tmp_path / "run"), pytest.raises(WorkbenchError, match="another process is using"):
        train_recipe("truthrl", "tiny", 3, tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_rollouts_without_reward_are_counted(tmp_path: Path) -> None:
    from workbench.recipes import totals
    from workbench.store import append_feedback
    from workbench.types import Cost, Failure, Feedback, Reward

    asked, failure = Question("q", "?"), Failure("judge", "unreadable", "garbled")
    rewards = [{"m": Reward(1.0)}, {"m": Reward(None, error=failure)}, {"other": Reward(1.0)}]
    rows = [Feedback(Response(str(n), asked, ""), rewards=reward, cost=Cost(calls=2)) for n, reward in enumerate(rewards)]
    rows.append(Feedback(Response("3", asked, ""), rewards={"m": Reward(1.0)}, error=failure))
    append_feedback(tmp_path, rows)
    found = totals(tmp_path / "rollouts.jsonl", "m")
    assert found["failed"] == 3 and found["cost"]["calls"] == 6


def test_seconds_survive_a_kill(small_bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train_recipe("truthrl", "tiny", 3, out, threads=1)
    (out / "summary.json").unlink()  # as after a kill in the last evaluation
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    (out / "metrics.jsonl").write_text("".join(json.dumps({**row, "seconds": 100.0}) + "\n" for row in rows))
    assert 200 < train_recipe("truthrl", "tiny", 3, out)["seconds"] < 300


def test_interrupted_evaluation_is_an_interrupted_run(
    small_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("workbench.recipes._evaluate", interrupt)
        assert train_recipe("truthrl", "tiny", 3, tmp_path / "run", threads=1)["status"] == "interrupted"
    assert train_recipe("truthrl", "tiny", 3, tmp_path / "run")["status"] == "done"


@pytest.mark.parametrize("name", ["small", "paper"])
def test_hub_benches_need_questions(name: str) -> None:
    with pytest.raises(WorkbenchError, match=r"give --questions NAME\|FILE"):
        benches.bench(name)


def test_unknown_bench_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="no bench 'huge': choose one of tiny, small, paper"):
        benches.bench("huge")


def test_questions_of_a_file_are_split_by_their_ids(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(f'{{"id": {n}, "question": "Q{n}?", "answers": ["A{n}"]}}\n' for n in range(1000)))
    bench = benches.bench("paper", questions=file)
    splits = {split: bench.questions(split) for split in ("rl", "validation", "test")}
    assert sum(map(len, splits.values())) == 1000
    assert 750 < len(splits["rl"]) < 850 and 70 < len(splits["test"]) < 130
    assert all(split_of(q.id) == split for split, found in splits.items() for q in found)
    assert (bench.require_box, bench.max_new_tokens) == (True, 2048)
    assert "boxed" in splits["rl"][0].system and splits["rl"][0].answers[0].startswith("A")
    assert bench.questions("rl", ["yes_no"]) == []


@pytest.mark.parametrize("line", ["[1]", "{", '{"id": "1", "question": "?", "answers": []}'])
def test_bad_lines_of_a_question_file_are_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(f'{{"id": "1", "question": "?", "answers": ["!"]}}\n{line}\n')
    with pytest.raises(WorkbenchError, match=r"questions\.jsonl:2: "):
        benches.bench("paper", questions=file)


def test_missing_question_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match=r"no such file .*none\.jsonl"):
        benches.bench("small", questions=tmp_path / "none.jsonl")


def test_missing_shipped_policy_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(benches, "TINY_POLICY", tmp_path)
    with pytest.raises(WorkbenchError, match=r"policy 'sft' is missing: run `workbench world build --out"):
        benches.check_policy("sft", str(tmp_path / "sft"))
