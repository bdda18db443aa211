"""The `Method` type: settings, a bench's changes to them, and a new method defined here."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import workbench.methods.bench as benches
from tests.helpers import ROOT, Cli, examples, read_json, run_python
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from tests.helpers.short_runs import weights_moved
from tests.helpers.small_bench import NAMES, make_bench
from workbench.experiments.evaluate import evaluate_policy
from workbench.experiments.experiment import run_experiment
from workbench.methods import METHODS, TRAINED, configure_method, method, method_configs
from workbench.methods.bench import Bench
from workbench.methods.lookup import Table, find, label, scored
from workbench.methods.method import (
    Method,
    Prompts,
    Training,
    reward_settings,
    scaled,
    training_questions,
)
from workbench.methods.truthrl.config import TruthRL
from workbench.runs.store import read_questions
from workbench.training.grpo import grpo_stage
from workbench.training.grpo_config import GRPO, check
from workbench.training.settings import Sampling
from workbench.training.stage import Stage
from workbench.types import (
    Checked,
    Checks,
    Event,
    Feedback,
    JsonObject,
    Question,
    Response,
    Reward,
    RewardFn,
    Verdict,
)
from workbench.util.config import setting
from workbench.util.config import settings as settings_of
from workbench.verdicts.checks import rule_checks


# A new method, from here to BRIEF: short correct answers earn more.
@dataclass(frozen=True)
class Brief:
    """A correct answer earns 1 / (1 + weight · characters), any other answer 0."""

    weight: float = setting(0.1, "how much a character costs")
    prompts: Prompts = field(default=Prompts(eval_samples=0))
    grpo: GRPO = field(
        default=scaled(
            GRPO(), steps=1, prompts_per_step=4, group_size=4, max_new_tokens=4, lora_r=4
        )
    )


def reward(config: Brief) -> RewardFn:
    @scored
    def pay(feedback: Feedback, verdicts: Table) -> Reward:
        right = (
            label(find(verdicts, "outcome", None), ("correct", "uncertain", "incorrect"))
            == "correct"
        )
        value = right / (1 + config.weight * len(feedback.response.text))
        return Reward(value, {"brief": value}, (Event("brief", value),))

    return pay


def stages(config: Brief, bench: Bench) -> Sequence[Stage]:
    questions = training_questions(config.prompts, bench)
    grade = BRIEF.grader(config, bench.checks)
    return [grpo_stage(config.grpo, lambda job: (questions, grade), BRIEF.name)]


BRIEF = Method(
    "brief",
    "Brief",
    Brief,
    reward,
    lambda config: ("outcome",),
    sections=lambda config: frozenset(),
    stages=stages,
)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for listed in (METHODS, TRAINED):
        monkeypatch.setitem(listed, "brief", BRIEF)
    yield


def test_a_new_method_computes_rewards_and_takes_settings(brief: None) -> None:
    config = method_configs(["brief"], ["brief.weight=1", "brief.steps=3"])["brief"]
    assert (config.weight, config.grpo.steps) == (1.0, 3)
    [feedback] = method("brief").grader(config, rule_checks())(
        [Response("r", Question("q", "?", ("Rome",)), "Rome")]
    )
    assert feedback.rewards["brief"].value == 1 / 5
    assert configure_method(config) == ("brief", config)


def test_a_new_method_is_scored_listed_and_inspected(brief: None, tmp_path: Path, cli: Cli) -> None:
    from workbench.inspector.opened import open_row
    from workbench.inspector.runs import Runs

    row = {"id": "1", "question": "Where?", "response": "Rome", "answers": ["Rome"]}
    source = write(tmp_path / "answers.jsonl", [row])
    out = tmp_path / "runs" / "mine" / "rollouts.jsonl"
    assert cli(f"score --in {source} --out {out} --method brief --judge world")[0] == 0
    assert read_json(out)["rewards"]["brief"]["value"] == pytest.approx(1 / 1.4)
    assert "Brief" in cli("methods")[1]
    assert "how much a character costs" in cli("methods brief")[1]
    opened = open_row(Runs(tmp_path / "runs"), "mine", "1")
    assert opened.feedback.rewards["brief"].value == pytest.approx(1 / 1.4)


def test_the_command_says_whose_settings_it_shows(cli: Cli) -> None:
    paper, tiny = (cli(f"methods truthrl{bench}")[1] for bench in ("", " --bench tiny"))
    assert "settings of truthrl of the paper; --bench tiny has others:" in paper
    assert "settings of truthrl on the bench tiny:" in tiny and "0.0008" in tiny
    assert "settings of" not in cli("methods truthrl --json")[1]


def test_defaults_are_from_the_paper_and_a_bench_replaces_them() -> None:
    grpo = TruthRL().grpo
    assert (grpo.optim.schedule, grpo.prompts_per_step, grpo.kl.beta) == ("constant", 64, 0.001)
    assert (grpo.clip, grpo.sampling) == (0.2, Sampling(1.0, 1.0, 2048))
    tiny = METHODS["truthrl"].configure("tiny", ["truthrl.reward=binary", "truthrl.steps=7"])
    assert (tiny.reward, tiny.grpo.steps, tiny.grpo.optim.learning_rate, tiny.grpo.clip) == (
        "binary",
        7,
        8e-4,
        0.2,
    )
    assert METHODS["truthrl"].configure("paper") == TruthRL() == METHODS["truthrl"].configure()
    with raises_error("no method 'truthlr': choose one of rlfh, truthrl"):
        method("truthlr")


def test_settings_of_every_method_and_bench_are_valid() -> None:
    for name in benches.NAMES:
        for one in METHODS.values():
            config = one.configure(name)
            assert type(config) is one.config
            one.reward(config)
            check(config.grpo)
            # Adam moves a weight by at most the rate per step; lora_B starts at 0
            if one.name == "truthrl":
                assert config.grpo.optim.learning_rate * config.grpo.steps >= 1e-3
            assert all(help for _, _, help in settings_of(config))


def test_settings_apply_to_the_selected_trainer() -> None:
    rlfh = METHODS["rlfh"]
    assert "trainer" not in reward_settings(rlfh.config())
    assert rlfh.configure("tiny", ["rlfh.trainer=grpo", "rlfh.grpo.steps=7"]).grpo.steps == 7
    assert rlfh.configure("tiny", ["rlfh.steps=7"]).ppo.steps == 7


@pytest.mark.slow
def test_a_system_prompt_applies_to_training_and_evaluation(tmp_path: Path) -> None:
    """In training, in both evaluations, and when the run is evaluated again."""
    bench, out = make_bench(tmp_path / "policy"), tmp_path / "run"
    config = scaled(
        TruthRL(), grpo=vars(Brief().grpo), prompts={"eval_samples": 0, "system": " Be Flo"}
    )
    summary = run_experiment(METHODS["truthrl"], config, bench, out, seed=1, threads=1)
    asked = read_questions(out).values()
    assert {question.system for question in asked} == {" Be Flo"}
    again = evaluate_policy(str(out), "validation", bench, samples=0, seed=1, threads=1)
    assert again["greedy"] == summary["after"]["greedy"]
    assert bench.with_system_prompt("x").questions("rl")[0].system == "x"
    assert bench.with_system_prompt(None) is bench


def test_outcome_training_uses_only_questions_with_answers(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    assert len(training_questions(Prompts(), bench)) == len(NAMES)
    assert len(training_questions(Prompts(), bench, answered=False)) == len(NAMES) + 1


@pytest.mark.parametrize(
    ("settings", "target", "aspect", "value"),
    examples("verdicts_of_models"),
)
def test_a_reward_reads_the_verdicts_of_models_and_probes(
    settings: list[str], target: str, aspect: str, value: float
) -> None:
    verdict = (
        Verdict(target, aspect, "unknown", 1.0)
        if aspect == "out_of_knowledge"
        else Verdict(target, aspect, p=0.25)
    )
    name, rules = settings[0].partition(".")[0], rule_checks()
    checks = Checks(
        rules.extract, {**rules.verify, aspect: lambda batch: [Checked((verdict,)) for _ in batch]}
    )
    text = "I do not know." if aspect == "out_of_knowledge" else "Ada was born in Rome."
    response = Response("r", Question("q", "Where?", ("Rome",)), text, offsets=((0, len(text)),))
    [feedback] = METHODS[name].grader(METHODS[name].configure(settings=settings), checks)(
        [response]
    )
    assert feedback.rewards[name].value == value, feedback.rewards[name]
    with raises_error(f"no check {aspect}"):
        METHODS[name].grader(METHODS[name].configure(settings=settings), rules)


@dataclass(frozen=True)
class Untrainable:
    weight: float = setting(0.1, "how much a character costs")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"checks": lambda config: "outcome"}, "'brief': checks .* not 'outcome'"),
        ({"checks": lambda config: (1,)}, "'brief': checks .* names"),
        ({"sections": lambda config: "body"}, "'brief': sections .* not 'body'"),
        ({"sections": lambda config: ["body"]}, "'brief': sections .* set"),
        ({"sections": lambda config: {"answers"}}, "'brief': there is no section 'answers'"),
        ({"config": Untrainable}, "'brief' has stages, but its config has no 'prompts'"),
        ({"training": lambda config: Training("ppo")}, "config has no 'ppo'"),
    ],
)
def test_an_invalid_method_is_refused_at_its_definition(changes: JsonObject, message: str) -> None:
    with raises_error(message):
        replace(BRIEF, **changes)
    assert replace(BRIEF, config=Untrainable, stages=None).stages is None  # for scoring only


@pytest.mark.slow
def test_a_method_of_another_package_is_scored_and_trained(tmp_path: Path) -> None:
    """The examples of CONTRIBUTING.md, installed as a package with an entry point."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    code = "".join(re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M))
    info = tmp_path / "brief-0.1.dist-info"
    info.mkdir()
    (tmp_path / "brief.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brief\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[workbench.methods]\nbrief = brief:METHOD\n")
    script = (
        "from workbench import score\n"
        "row = score('Rome', 'Capital of Italy?', answers=['Rome'], method='brief')\n"
        "print(row.rewards['brief'].value)"
    )
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = run_python("-c", script, env=env)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1 / 1.4)
    how = "train brief --steps 1 --set brief.eval_samples=0 --set brief.save_every=1 --out"
    run = run_python("-m", "workbench.cli", *how.split(), tmp_path / "run", env=env)
    assert run.returncode == 0, run.stderr
    assert weights_moved(tmp_path / "run")
    (tmp_path / "brief.py").write_text(code.replace('name="brief"', 'name="rlfh"'))
    script = "from workbench import METHODS; print(METHODS['rlfh'].title)"
    taken = run_python("-c", script, env=env)
    assert taken.stdout == "RLFH\n" and "the name 'rlfh' is taken" in taken.stderr
    (tmp_path / "brief.py").write_text("METHOD = 1 / 0")
    broken = run_python("-m", "workbench.cli", "methods", env=env)
    assert broken.returncode == 0 and "method 'brief'" in broken.stderr
