"""Segments for the reward model: rows by hand, held-out rows, measures, and its verdicts as a
check.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import read_json, write_json
from tests.helpers.errors import raises_error
from tests.helpers.reward_rows import row
from tests.helpers.tiny_model import make_policy
from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import aggregate, reward
from workbench.methods.forag.segments import (
    baseline,
    factuality,
    judged_rows,
    reference_values,
    segments,
)
from workbench.methods.held_out import calibration, held_out, split_held_out
from workbench.pipeline import assemble
from workbench.runs.checkpoints import MARKER
from workbench.training.reward_model import RewardModel, train_reward_model
from workbench.training.scorer import CARD, MODEL, Judged, Segment, load_reward_model
from workbench.types import (
    Checks,
    Claim,
    Claims,
    Failure,
    Feedback,
    Question,
    Response,
    Reward,
    Verdict,
)
from workbench.util.config import scaled
from workbench.verdicts.checks import rule_checks

# "c0 c1 c2. c3. nothing.": one sentence with labels 1, 1, 0, one with 0 (vague), one without
# claims.
MIXED = row("correct:5 hedged_correct:3 wrong:2", "vague:3", "")


@pytest.mark.parametrize(
    ("config", "expected", "loss"),
    [
        (FoRAG(), [(0, 9, 2 / 3), (10, 13, 0.0)], "mse"),
        (FoRAG(aggregate="min"), [(0, 9, 0.0), (10, 13, 0.0)], "log"),
        (FoRAG(aggregate="max"), [(0, 9, 1.0), (10, 13, 0.0)], "log"),
        (FoRAG(evaluation="sentence"), [(0, 9, 0.0), (10, 13, 0.0)], "log"),
        (FoRAG(evaluation="holistic"), [(0, 13, 0.0)], "log"),
    ],
)
def test_judged_samples_as_rows_by_hand(
    config: FoRAG, expected: list[tuple[int, int, float]], loss: str
) -> None:
    assert MIXED.response.text == "c0 c1 c2. c3. nothing."
    [made], card = judged_rows([MIXED], config.evaluation, aggregate(config))
    assert list(made.segments) == [Segment(*segment) for segment in expected]
    assert config.model_loss == loss
    assert scaled(config, reward_model=scaled(RewardModel(), loss="mse")).model_loss == "mse"
    assert card.samples == 1 and sum(card.rows.values()) == len(expected)


def test_rows_have_the_segments_that_training_rewards() -> None:
    """The judge found no claim in sentence 2 and one in a table row, which the rules skip."""
    text = "Ada is a baker. Bo was born in Oslo.\n| Cy is a king. |\nDi works in Rome."
    response = Response("r", Question("q", "Who?"), text)
    [read] = rule_checks().extract([response])
    assert {claim.sentence for claim in read.claims} == {0, 1, 3}
    said = tuple(
        Claim(n, text[slice(*read.sentences[at])], "body", at) for n, at in enumerate((0, 2, 3))
    )
    labels = tuple(
        Verdict(f"claim:{n}", "fact", label)
        for n, label in enumerate(("correct", "wrong", "vague"))
    )
    feedback = Feedback(response, read.sentences, said, labels)
    for evaluation, spans in (
        ("subclaim", [(0, 15, 1.0), (*read.sentences[3], 0.0)]),
        ("holistic", [(0, len(text), 0.0)]),
    ):
        [made], _ = judged_rows([feedback], evaluation, min, [read])  # type: ignore[arg-type]
        assert list(made.segments) == [Segment(*span) for span in spans]
    failed = replace(feedback, error=Failure("parse", "empty", "x"))
    nothing = replace(feedback, claims=(), verdicts=())
    rows, card = judged_rows([nothing, failed], "subclaim", min, [read, read])
    assert not rows and card.dropped_samples == {"failed": 1, "no claims": 1}


def test_the_plan_is_not_a_segment() -> None:
    text = "[Structure] comparison [Outline] 1. Ada is a king. [1] [Answer] Bo is a baker."
    [read] = rule_checks().extract([Response("r", Question("q", "Who?"), text)])
    response = Response("r", Question("q", "Who?"), text)
    spans = [text[slice(*span)] for span, _ in segments(response, read, "sentence").values()]
    assert spans == ["Bo is a baker."]
    placed = Claims(
        ((0, 5), (70, 80)),
        (Claim(0, "Ada is a king.", "plan", 0), Claim(1, "Bo is a baker.", "answer", 1)),
    )
    assert list(segments(response, placed, "sentence")) == ["segment:1"]


def test_measures_of_a_model_by_hand() -> None:
    """Pairs of a supported and an unsupported segment: .9 > .6, .9 > .2, .4 < .6, .4 > .2: AUC 3/4.
    Correct at .5: .9 and .2. Bins of one: ECE (.1 + .6 + .6 + .2)/4; squared error (.01 + .36 + .36
    + .04)/4.
    """
    found = calibration([(0.9, 1.0), (0.4, 1.0), (0.6, 0.0), (0.2, 0.0)])
    assert found == pytest.approx(
        {"supported": 0.5, "auc": 0.75, "accuracy": 0.5, "ece": 0.375, "squared_error": 0.1925}
    )
    assert calibration([(0.9, 1.0)])["auc"] is None and calibration([])["accuracy"] is None
    assert calibration([(0.5, 1.0), (0.5, 0.0)])["auc"] == 0.5


def test_the_reference_is_the_mean_of_its_segments() -> None:
    def scored(name: str, value: float | None, count: float) -> Feedback:
        error = Failure("reward", "no_verdict", "x") if value is None else None
        reward = Reward(value, {"segments": count}, error=error)
        return Feedback(Response(name, Question(name, "?"), "x"), rewards={"forag": reward})

    given = [
        scored("a", 2.0, 2.0),
        scored("a", 0.25, 1.0),
        scored("a", 0.0, 0.0),
        scored("a", None, 9.0),
    ]
    others = [scored("b", 0.0, 0.0), scored("c", None, 1.0), scored("d", 0.5, 2.0)]
    values = reference_values([*given, *others])
    # b has no claims: the overall mean
    assert values["a"] == 0.75 and values["b"] == pytest.approx(2.75 / 5) and values["d"] == 0.25
    # no baseline without any segments
    silent = reference_values([scored("b", 0.0, 0.0)])["b"]
    assert isinstance(silent, Failure) and silent.kind == "no_verdict"
    batch = [(Response("r", Question(q, "?"), ""), Claims()) for q in "ace"]
    known, failed, unknown = (checked.verdicts[0] for checked in baseline(values)(batch))
    assert (known.target, known.aspect, known.p) == ("response", "baseline", 0.75)
    assert (failed.p, failed.error) == (None, Failure("reward", "no_verdict", "x"))
    assert unknown.p is None and unknown.error and unknown.error.kind == "not_probed"


def test_no_person_is_in_training_and_held_out_rows() -> None:
    """Questions with shared people form a group; a group larger than the share is trained on."""
    pairs = ["A;B", "B;C", "C; D", *(f"{n};{n + 1}" for n in range(0, 20, 2)), ""]
    rows = [
        Judged(Question(f"q{n}", "?", title=title), "a b", (Segment(0, 3),))
        for n, title in enumerate(pairs)
    ]
    for seed in range(20):
        learnt, held = split_held_out(rows, 0.15, seed)
        assert len(held) == 2 and len(learnt) == len(rows) - 2
        names = [
            {name.strip() for row in side for name in row.question.title.split(";") if name}
            for side in (learnt, held)
        ]
        assert names[0].isdisjoint(names[1]) and "A" in names[0]
    assert split_held_out(rows, 0.15, 1) == split_held_out(rows, 0.15, 1)
    assert split_held_out(rows, 0.0, 1)[1] == []


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reward model of two steps, in a run's folder with its initial policy."""
    run = tmp_path_factory.mktemp("run")
    (run / "config.json").write_text("{}")
    policy = make_policy(run / "stages" / "cold_start" / "policy")
    rows = [
        Judged(Question("q", "Who?"), f"Ada is {word}.", (Segment(0, 8 + len(word), target),))
        for word, target in (("good", 1.0), ("bad", 0.0))
    ]
    out = run / "stages" / "reward_model"
    config = scaled(
        RewardModel(), steps=2, batch=2, lora_r=4, lora_alpha=8, learning_rate=1e-2, max_length=120
    )
    train_reward_model(config, rows, str(policy), out, seed=1)
    return out / MODEL


SENTENCES = ["segment:0", "segment:1"]


def test_a_reward_model_is_a_check_whose_verdicts_give_rewards(model: Path) -> None:
    checks = rule_checks()
    scorer = load_reward_model(model)
    asked = Question("q", "Who is Ada?")
    text = "Ada is a baker. Bo was born in Oslo."
    for evaluation, targets in (("subclaim", SENTENCES), ("holistic", ["response"])):
        config = replace(FoRAG(), evaluation=evaluation)  # type: ignore[arg-type]
        own = Checks(checks.extract, {"factuality": factuality(scorer, config.evaluation)})
        texts = ("I don't know.", text, text + " Bo works in Rome." * 40)
        refusal, answer, long = assemble(own, ["factuality"], {"forag": reward(config)})(
            [Response(str(number), asked, one) for number, one in enumerate(texts)]
        )
        paid = answer.rewards["forag"]
        assert [v.target for v in answer.verdicts] == targets and paid.parts["stood_in"] == 0.0
        assert paid.value == pytest.approx(sum(v.p or 0 for v in answer.verdicts))
        assert refusal.rewards["forag"].value == 0.0 and not refusal.verdicts
        assert long.rewards["forag"].value is None  # too long to read: no reward, not 0
        assert (error := long.rewards["forag"].error) and error.kind == "too_long"


def test_a_reward_model_is_measured_on_unknown_people(model: Path) -> None:
    rows = [
        Judged(Question(title, "Who?", title=title), "Ada is good.", (Segment(0, 12, 1.0),))
        for title in ("A;B", "B;C", "D;E")
    ]
    long = replace(rows[2], text="Ada is good. " * 40)
    found = held_out(load_reward_model(model), rows[:1], [*rows[1:], long])
    assert (found["rows"], found["strangers"], found["too_long"]) == (2, 1, 1)


def test_a_reward_model_moves_with_its_run_and_requires_its_own_policy(
    model: Path, tmp_path: Path
) -> None:
    run, moved = model.parents[2], tmp_path / "moved"
    rows = [Judged(Question("q", "Who?"), "Ada is good.", (Segment(0, 12),))]
    shutil.copytree(run, moved)
    copied = moved / "stages" / "reward_model" / MODEL
    assert load_reward_model(copied).score(rows) == load_reward_model(model).score(rows)
    card = read_json(copied / CARD)
    write_json(copied / CARD, card | {"policy": str(make_policy(tmp_path / "other", seed=7))})
    (copied / MARKER).unlink()  # the digest of the card
    with raises_error("differs from the model that the reward model"):
        load_reward_model(copied)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("reward_model.json", b'{"level": "word"}', "is damaged"),
        ("head.safetensors", b"PK not safetensors", "is missing or changed since its training"),
        ("adapter_model.safetensors", None, "is not a reward model"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    model: Path, tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    folder = tmp_path / "stages" / "reward_model" / MODEL
    shutil.copytree(model, folder)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with raises_error(message):
        load_reward_model(folder)
