"""Reward models: tokens of segments, losses by hand, learning, and equality after loading or
resuming.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tests.helpers.offline_run as run
from tests.helpers.errors import raises_error
from tests.helpers.grpo_run import trainee_of
from tests.helpers.tiny_model import byte_tokenizer, random_model
from workbench.runs.checkpoints import metrics_rows
from workbench.training.actor import Actor
from workbench.training.reward_model import check_rows, losses, train_reward_model
from workbench.training.scorer import Judged, Scorer, Segment, load_reward_model, passes
from workbench.training.settings import check_trainer
from workbench.types import Question
from workbench.util.config import scaled

CONFIG = scaled(run.MODELLED, steps=30, batch=8, micro_batch=None, max_length=2048, save_every=4)
ASKED, ROWS, judged = run.ASKED, run.JUDGED, run.judged


def scorer_of(policy: str, level: str = "sequence") -> Scorer:
    import torch

    actor = Actor(trainee_of(policy))
    torch.manual_seed(0)
    torch.nn.init.normal_(actor.head.weight)
    return Scorer(actor, level)


@pytest.mark.parametrize("kind", ["gpt_neox", "gpt2"])
def test_models_with_other_module_names_than_llama_are_scored(kind: str, tmp_path: Path) -> None:
    """The layers of a Llama are in `model`, those of GPT-NeoX in `gpt_neox`, of GPT-2 in
    `transformer`.
    """
    import torch

    tokenizer = byte_tokenizer()
    for part in (random_model(tokenizer, kind), tokenizer):
        part.save_pretrained(tmp_path)
    scorer = scorer_of(str(tmp_path))
    scorer.model.eval()
    row = scorer.encode(ROWS[1])
    with torch.no_grad():
        output = scorer.model(torch.tensor([row.ids]), output_hidden_states=True)
        expected = [
            scorer.head(output.hidden_states[-1][0, places[-1]]).sigmoid().item()
            for places in row.places
        ]
    assert scorer.score([ROWS[0], ROWS[1]])[1] == pytest.approx(expected, abs=1e-5)


def test_a_segment_has_the_tokens_of_its_characters(policy: str) -> None:
    scorer = scorer_of(policy)
    read = scorer.encode(ROWS[1])
    spans = [
        scorer.tokenizer.decode([read.ids[place] for place in places]).strip()
        for places in read.places
    ]
    assert spans == ["Ada is good.", "Bo is bad."] and read.targets == [1.0, 0.0]
    assert (
        not set(read.places[0]) & set(read.places[1]) and max(read.places[1]) < len(read.ids) - 1
    )  # the end token is in no segment


def test_segments_have_the_same_scores_in_one_pass_and_alone(policy: str) -> None:
    """The model is causal: later text, other rows and their padding do not change a segment's
    value.
    """
    import torch

    for level in ("sequence", "token"):
        scorer = scorer_of(policy, level)
        scorer.model.eval()
        both = [
            scorer.encode(row)
            for row in (ROWS[0], judged(("Somebody quite else is not good at all.", 0.0)))
        ]
        with torch.no_grad():
            together = scorer.logits(both)
            alone = torch.cat([scorer.logits([read]) for read in both])
            first = scorer.logits([scorer.encode(judged(("Ada is good.", 1.0)))])
        assert torch.allclose(together, alone, atol=1e-5) and torch.allclose(
            together[:1], first, atol=1e-5
        )
        assert len(together) == 3


def test_a_token_level_value_is_the_mean_of_its_tokens(policy: str) -> None:
    import torch

    token, sequence = scorer_of(policy, "token"), scorer_of(policy, "sequence")
    read = token.encode(ROWS[0])
    by_token = [replace_places(read, [[place]]) for place in read.places[0]]
    with torch.no_grad():
        values = torch.cat([token.logits([one]) for one in by_token])
        assert torch.allclose(token.logits([read])[0], values.mean(), atol=1e-5)
        assert torch.allclose(sequence.logits([read])[0], values[-1], atol=1e-5)


def replace_places(read, places):
    return read._replace(places=places, targets=[0.0] * len(places))


def test_the_losses_by_hand() -> None:
    """Logits 0 and ln 3: probabilities .5 and .75. −ln .5 − ln .25 for labels 1 and 0; .25² + 0
    for .25 and .75.
    """
    import torch

    logits = torch.tensor([0.0, 3.0]).log1p().mul(torch.tensor([1.0, 0.0])) + torch.tensor(
        [0.0, 1.0986123]
    )
    log, hits = losses(logits, [1.0, 0.0], "log")
    assert log.item() == pytest.approx(0.6931472 + 1.3862944, abs=1e-5) and hits == 0
    mse, hits = losses(logits, [0.25, 0.75], "mse")
    assert mse.item() == pytest.approx(0.0625, abs=1e-5) and hits == 2


@pytest.mark.slow
@pytest.mark.parametrize(("level", "loss"), [("sequence", "log"), ("token", "mse")])
def test_a_reward_model_learns_its_rows_and_loads_unchanged(
    policy: str, level: Any, loss: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = scaled(CONFIG, level=level, loss=loss, micro_batch=4)
    assert train_reward_model(config, ROWS, policy, tmp_path, seed=1) == "done"
    rows = metrics_rows(tmp_path)
    assert len(rows) == 30
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]
    assert rows[-1]["accuracy"] == 1.0
    loaded = load_reward_model(tmp_path / "model")
    scores = loaded.score(ROWS)
    with monkeypatch.context() as small:  # passes of one row each
        one_row = lambda lengths, *_: [[row] for row in range(len(lengths))]  # noqa: E731
        small.setattr("workbench.training.scorer.passes", one_row)
        alone = loaded.score(ROWS)
    for found, other in zip(scores, alone, strict=True):
        assert found == pytest.approx(other, abs=1e-4)
    loaded.model.unmerge_adapter()  # as in training
    assert [value for values in loaded.score(ROWS) for value in values] == pytest.approx(
        [v for vs in scores for v in vs], abs=1e-4
    )
    for row, values in zip(ROWS, scores, strict=True):
        assert [value > 0.5 for value in values] == [
            segment.target > 0.5 for segment in row.segments
        ]
    assert all(0 <= value <= 1 for values in scores for value in values)


def test_a_pass_has_rows_of_similar_length_and_more_short_rows() -> None:
    """4,096 tokens: two rows of 2,000 or 204 of 20; at least the requested number; rows that are
    too long are left out.
    """
    lengths = [20] * 300 + [2000] * 3 + [3000]
    found = passes(lengths, 2048, 2)
    assert [[lengths[number] for number in part] for part in found] == [
        [2000] * 2,
        [2000, 20],
        [20] * 204,
        [20] * 95,
    ]
    assert sorted(number for part in found for number in part) == list(range(303))
    assert [len(part) for part in passes(lengths, 2048, 200)] == [200, 103] and passes(
        [], 10, 2
    ) == passes([11], 10, 2) == []


def test_the_prompt_belongs_to_the_question_of_the_row(policy: str) -> None:
    """The ids of the last prompt are cached; a row with another question does not get them."""
    scorer, other = (
        scorer_of(policy),
        replace(ROWS[1], question=Question("o", "Where was Bo born?")),
    )
    alone = [scorer_of(policy).encode(row) for row in (ROWS[0], other, ROWS[1])]
    assert [scorer.encode(row) for row in (ROWS[0], other, ROWS[1])] == alone and alone[1] != alone[
        2
    ]


def test_micro_batches_change_nothing(policy: str, tmp_path: Path) -> None:
    for micro in (None, 2):
        train_reward_model(
            scaled(CONFIG, steps=3, micro_batch=micro), ROWS, policy, tmp_path / str(micro), seed=1
        )
    logs = [[row["loss"] for row in metrics_rows(tmp_path / str(m))] for m in (None, 2)]
    assert logs[0] == pytest.approx(logs[1], abs=1e-5)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no rows"),
        ([Judged(ASKED, "Ada.", ())], "no segments: remove the row"),
        ([Judged(ASKED, "Ada.", (Segment(0, 9),))], "outside the response"),
        ([Judged(ASKED, "Ada.", (Segment(0, 4, 1.5),))], "not between 0 and 1"),
        ([Judged(ASKED, "Ada.", (Segment(0, 4, 0.5),))], "use loss=mse"),
    ],
)
def test_rows_that_cannot_be_trained_on_are_refused(rows: list[Judged], message: str) -> None:
    with raises_error(message):
        check_rows(CONFIG, rows)


def test_several_processes_are_refused(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with raises_error("one process"):
        train_reward_model(scaled(CONFIG, steps=1), ROWS, policy, tmp_path / "run", seed=1)
    assert not (tmp_path / "run").exists()


def test_invalid_settings_and_folders_are_refused(policy: str, tmp_path: Path) -> None:
    with raises_error("micro_batch is 3"):
        check_trainer(scaled(CONFIG, micro_batch=3), trl=False)
    with raises_error("is not a reward model"):
        load_reward_model(tmp_path)
    train_reward_model(scaled(CONFIG, steps=1), ROWS, policy, tmp_path, seed=1)
    with raises_error("other rows or steps"):
        train_reward_model(scaled(CONFIG, steps=1), ROWS[:2], policy, tmp_path, seed=1)
