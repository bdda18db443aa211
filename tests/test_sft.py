"""SFT: prompts as in generation, the loss by hand, refusals, and row counts."""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import tests.helpers.offline_run as run
from tests.helpers import contents, read_json
from tests.helpers.errors import raises_error
from tests.helpers.grpo_run import QUESTIONS
from tests.helpers.tiny_model import byte_tokenizer, make_policy
from tests.test_formats import names
from workbench.methods.bench import TINY_POLICY
from workbench.policies.generate import generate, prompt_ids
from workbench.policies.load import load_policy
from workbench.runs.checkpoints import metrics_rows
from workbench.training.offline import offline_stage, steps_of, train_offline, weighted_loss
from workbench.training.rows import Card, Example, encode_example
from workbench.training.settings import LoRA, Optim, Passes, Saving
from workbench.training.stage import Job
from workbench.training.trl_common import trainer_arguments
from workbench.types import JsonObject, Question
from workbench.util.config import scaled
from workbench.world import schema

GOOD = [replace(row, weight=1.0) for row in run.EXAMPLES]


def tuned(rows: list[Example], policy: str, out: Path, **changes: Any) -> str:
    return train_offline(scaled(run.TUNED, **changes), rows, policy, out, seed=1)


def test_prompts_and_answers_have_the_ids_of_the_tiny_policys_template() -> None:
    tokenizer = load_policy(TINY_POLICY / "sft", device="cpu").tokenizer
    questions = [
        Question("a", "Where was Ada born?", ("Oslo",)),
        Question("b", "Where was Ada born?", system=schema.BOX),
        Question("c", "Where was Ada born?", system=schema.OUTLINE),
    ]
    texts = [
        "I do not know.",
        "<think> I do not know.</think>\\boxed{ yes}",
        "[Structure] comparison [Outline] 1. no [Answer] yes",
    ]
    for question, text in zip(questions, texts, strict=True):
        prompt, said = encode_example(tokenizer, question, text)
        assert [prompt] == prompt_ids(tokenizer, [question])
        conversation = [*question.messages(), {"role": "assistant", "content": text}]
        assert (
            prompt + said
            == tokenizer.apply_chat_template(conversation, tokenize=True, return_dict=True)[
                "input_ids"
            ]
        )
        assert said[-1] == tokenizer.eos_token_id and tokenizer.unk_token_id not in said
        # as sampled, with the template's space before it
        assert encode_example(tokenizer, question, text if text[0] in "<[" else f" {text}") == (
            prompt,
            said,
        )


def test_an_answer_is_never_changed_by_the_template() -> None:
    tokenizer, question = byte_tokenizer(), Question("q", " Where is Ada")
    text = "<think>a</think> Rome "
    plain = [*tokenizer(text)["input_ids"], tokenizer.eos_token_id]
    assert encode_example(tokenizer, question, text)[1] == plain
    role = "{% for m in messages %}{{ '<|' + m['role'] + '|>' }}"
    end = "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    dropping = role + "{{ (m['content'].split('</think>')[-1] | trim) + eos_token + '\\n' }}" + end
    tokenizer.chat_template = dropping
    assert encode_example(tokenizer, question, text)[1] == plain
    # without the line end
    assert encode_example(tokenizer, question, "Rome")[1] == [
        *tokenizer("Rome")["input_ids"],
        tokenizer.eos_token_id,
    ]
    tokenizer.chat_template = dropping.replace(
        "'<|assistant|>' }}{% endif", "'<|assistant|><think>\\n' }}{% endif"
    )
    prompt, said = encode_example(tokenizer, question, "<think>\na</think> Rome")
    assert tokenizer.decode(prompt + said).endswith("<|assistant|><think>\na</think> Rome<|end|>")
    assert (
        encode_example(tokenizer, question, "<think>\na")[1]
        == encode_example(tokenizer, question, "a")[1]
    )


def test_likelihood_and_unlikelihood_by_hand() -> None:
    """Two tokens each: p = .5, .25 in a good row, .5, .9 in a bad row; others have no loss."""
    import torch

    def logits(*probabilities: float) -> Any:
        return torch.tensor([[[math.log(p), math.log(1 - p)] for p in (*probabilities, 0.5)]])

    labels = torch.tensor([[-100, 0, 0]])
    good, bad = logits(0.5, 0.25), logits(0.5, 0.9)
    assert weighted_loss(good, labels, torch.tensor([1.0]), 2).item() == pytest.approx(
        (math.log(2) + math.log(4)) / 2
    )
    assert weighted_loss(bad, labels, torch.tensor([-1.0]), 2).item() == pytest.approx(
        (math.log(2) + math.log(10)) / 2
    )
    both = weighted_loss(torch.cat([good, bad]), labels.repeat(2, 1), torch.tensor([1.0, -0.5]), 4)
    assert both.item() == pytest.approx(
        (math.log(2) + math.log(4) + 0.5 * (math.log(2) + math.log(10))) / 4
    )
    masked = torch.tensor([[-100, 0, -100]])
    assert weighted_loss(bad, masked, torch.tensor([-1.0]), 1).item() == pytest.approx(math.log(2))
    sure = torch.tensor([[[200.0, 0.0], [0.0, 0.0]]], requires_grad=True)
    # p = 1: a bounded loss and finite gradients
    loss = weighted_loss(sure, labels[:, :2], torch.tensor([-1.0]), 1)
    loss.backward()
    assert loss.item() == pytest.approx(-math.log(1e-5))
    assert sure.grad is not None
    assert torch.isfinite(sure.grad).all()


def test_a_step_learns_good_rows_and_unlearns_bad_ones(tmp_path: Path) -> None:
    """The loss equals a plain recomputation, in which the end tokens of bad rows do not count."""
    from workbench.policies import hf

    policy, out = str(make_policy(tmp_path / "policy", sharp=7.5)), tmp_path / "run"
    config = scaled(run.TUNED, steps=2, batch=10, micro_batch=5, schedule="constant", warmup=0.0)
    assert train_offline(config, run.EXAMPLES, policy, out, seed=1) == "done"
    start, end = load_policy(policy), load_policy(out, base=policy)
    pairs = [encode_example(start.tokenizer, row.question, row.text) for row in run.EXAMPLES]
    before, after = (
        hf.token_logprobs(one.model, one.tokenizer.pad_token_id, pairs) for one in (start, end)
    )
    good = [row.weight > 0 for row in run.EXAMPLES]
    moved = [sum(new) - sum(old) for old, new in zip(before, after, strict=True)]
    assert all(one > 0 for one, kept in zip(moved, good, strict=True) if kept)
    terms = [
        -p if kept else -math.log1p(-math.exp(p))
        for logprobs, kept in zip(before, good, strict=True)
        for p in (logprobs if kept else logprobs[:-1])
    ]
    metrics = metrics_rows(out)
    assert metrics[0]["loss"] == pytest.approx(sum(terms) / len(terms), rel=1e-3)
    assert metrics[0]["tokens"] == len(terms) and metrics[0]["learning_rate"] == 1e-2
    assert metrics[0].keys() == names("metrics of sft")
    assert read_json(out / "data.json").keys() == names("data")


@pytest.mark.slow
def test_the_loss_does_not_depend_on_how_a_step_is_split(policy: str, tmp_path: Path) -> None:
    for micro in (1, 4):
        tuned(run.EXAMPLES, policy, tmp_path / str(micro), steps=2, micro_batch=micro)
    one, four = (metrics_rows(tmp_path / name) for name in ("1", "4"))
    assert [row["loss"] for row in one] == pytest.approx([row["loss"] for row in four], rel=1e-4)
    assert [row["tokens"] for row in one] == [row["tokens"] for row in four]


@pytest.mark.slow
def test_a_cold_start_writes_a_policy_for_the_next_stage(policy: str, tmp_path: Path) -> None:
    """Its answers equal those of the adapter on its base."""
    card = Card("made here", 10, 0, {"gold": 10})
    config, out = scaled(run.TUNED, steps=3), tmp_path / "whole"
    out.mkdir()
    stage = offline_stage(config, lambda job: (GOOD, card), merged=True, name="cold_start")
    assert stage.name == "cold_start" and stage.run(Job(policy, out, 1)) == "done"
    assert read_json(out / "card.json") == asdict(card)
    assert not (out / "policy" / "adapter_config.json").exists()
    train_offline(config, GOOD, policy, tmp_path / "adapter", seed=1)
    merged, adapted, start = (
        generate(one, QUESTIONS, max_new_tokens=4, greedy=True, logprobs=True)
        for one in (
            load_policy(out / "policy"),
            load_policy(tmp_path / "adapter", base=policy),
            load_policy(policy),
        )
    )
    assert [r.token_ids for r in merged] == [r.token_ids for r in adapted]
    assert merged[0].logprobs == pytest.approx(adapted[0].logprobs, abs=1e-4)
    assert merged[0].logprobs != start[0].logprobs


def test_rows_that_are_too_long_are_named_and_left_out(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = [Example(Question(f"long{n}", " Where is Ada"), " Rome" * 100) for n in range(7)]
    tuned([*long, *GOOD], policy, tmp_path / "run", steps=1)
    output = capsys.readouterr().err
    assert "left out: 7 of 17 rows are longer than max_length 64: 'long0' (" in output
    assert "and 2 more" in output
    data = read_json(tmp_path / "run" / "data.json")
    assert (data["rows"], data["too_long"], data["trained_on"], data["steps"]) == (17, 7, 10, 1)
    with raises_error(r"7 of 7 rows are longer .*raise max_length"):
        tuned(long, policy, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_folder_of_other_rows_is_refused_and_unchanged(policy: str, tmp_path: Path) -> None:
    tuned(GOOD, policy, tmp_path, steps=1)
    before = contents(tmp_path)
    with raises_error("holds a training on other rows"):
        tuned(GOOD[1:], policy, tmp_path, steps=1)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "no rows to train on"),
        ([replace(GOOD[0], text="  ")], "question 'q0' has an empty text"),
        ([replace(GOOD[0], weight=0.0)], "question 'q0' has weight 0.0"),
        ([replace(GOOD[0], weight=math.nan)], "question 'q0' has weight nan"),
    ],
)
def test_rows_that_cannot_be_trained_on_are_refused(
    tmp_path: Path, bad: list[Example], message: str
) -> None:
    with raises_error(message):
        tuned(bad, "./missing", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_several_processes_are_refused(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with raises_error("one process"):
        tuned(GOOD, policy, tmp_path / "run")


def test_the_last_step_of_the_epochs_is_filled_up() -> None:
    assert steps_of(Passes(batch=4), 10) == 3
    assert steps_of(Passes(batch=4, epochs=2.0), 10) == 5
    assert steps_of(Passes(batch=4, steps=7), 10) == 7


def test_the_optimizer_does_not_depend_on_defaults_of_transformers(tmp_path: Path) -> None:
    """The values of TRL 1.14 with which the stored runs were trained."""
    arguments = trainer_arguments(Optim(), LoRA(), Saving(), tmp_path, steps=1, seed=1)
    wanted: JsonObject = {"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8}
    wanted |= {"max_grad_norm": 1.0, "weight_decay": 0.0, "optim": "adamw_torch"}
    assert wanted.items() <= arguments.items()
