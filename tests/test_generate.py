"""Generation with a random two-layer policy: order, seeds, finish reasons, log-probabilities and
errors.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from workbench.policies.generate import Policy, generate, prompt_ids
from workbench.policies.load import check_policy_name, load_policy
from workbench.types import JsonObject, Question

QUESTIONS = [
    Question("long", " Where is Ada born yes no yes no"),
    Question("short", " Who"),
    Question("system", " What is Oslo", system=" yes"),
]


@pytest.fixture(scope="module")
def policy(policy: str) -> Policy:
    return load_policy(policy, device="cpu")


def test_responses_come_in_the_order_of_questions_and_samples(policy: Policy) -> None:
    responses = generate(policy, QUESTIONS, max_new_tokens=6, samples=2, seed=3, batch_size=4)
    assert [(r.question.id, r.group, r.sample) for r in responses] == [
        (name, name, sample) for name in ("long", "short", "system") for sample in (0, 1)
    ]
    assert [list(r.prompt_ids) for r in responses[::2]] == prompt_ids(policy.tokenizer, QUESTIONS)
    assert len({r.id for r in responses}) == 6


def test_the_seed_determines_samples_and_the_random_state_is_unchanged(policy: Policy) -> None:
    import torch

    torch.manual_seed(7)
    expected = torch.rand(3).tolist()
    torch.manual_seed(7)
    once = generate(policy, QUESTIONS, max_new_tokens=6, seed=3)
    assert torch.rand(3).tolist() == expected
    assert generate(policy, QUESTIONS, max_new_tokens=6, seed=3) == once
    assert generate(policy, QUESTIONS, max_new_tokens=6, seed=4) != once


@pytest.mark.parametrize(("how", "message"), examples("unusable_sampling"))
def test_invalid_sampling_settings_are_refused(
    policy: Policy, how: JsonObject, message: str
) -> None:
    with raises_error(message):
        generate(policy, QUESTIONS, **how)


def test_finish_and_end_token(policy: Policy) -> None:
    stops = set(range(5, 60))  # a random policy rarely samples its only end token
    responses = generate(
        replace(policy, stop_ids=tuple(stops)), QUESTIONS, max_new_tokens=4, samples=20, seed=0
    )
    stopped = [r for r in responses if r.finish == "stop"]
    cut = [r for r in responses if r.finish == "length"]
    assert stopped and cut
    assert any(len(r.token_ids) < 4 for r in stopped)
    assert all(r.token_ids[-1] in stops and not stops & set(r.token_ids[:-1]) for r in stopped)
    assert all(len(r.token_ids) == 4 and not stops & set(r.token_ids) for r in cut)
    for response in responses:
        assert response.offsets[-1][1] == len(response.text)
        assert response.text == policy.tokenizer.decode(
            response.token_ids, skip_special_tokens=True
        )


def test_logprobs_equal_those_of_an_unpadded_forward_pass(policy: Policy) -> None:
    import torch

    for response in generate(policy, QUESTIONS, max_new_tokens=5, samples=2, seed=1, logprobs=True):
        ids = [*response.prompt_ids, *response.token_ids]
        with torch.no_grad():
            logits = policy.model(torch.tensor([ids])).logits[0, len(response.prompt_ids) - 1 : -1]
        picked = torch.log_softmax(logits, -1)[
            range(len(response.token_ids)), list(response.token_ids)
        ]
        assert list(response.logprobs) == pytest.approx(picked.tolist(), abs=1e-5)


def test_sampling_settings_of_a_checkpoint_are_ignored(policy: Policy, tmp_path: Path) -> None:
    import shutil

    other = shutil.copytree(policy.name, tmp_path / "other")
    (other / "generation_config.json").write_text(
        '{"do_sample": true, "top_k": 1, "repetition_penalty": 5.0}'
    )
    expected = generate(policy, QUESTIONS, max_new_tokens=6, samples=3, seed=3)
    responses = generate(
        load_policy(other, device="cpu"), QUESTIONS, max_new_tokens=6, samples=3, seed=3
    )
    assert [r.token_ids for r in responses] == [r.token_ids for r in expected]


@pytest.mark.parametrize("name", ["./missing", "missing", "a/b/c", "a b/c", "a/"])
def test_missing_policy_is_refused(name: str) -> None:
    with raises_error(f"no policy folder '{name}'"):
        load_policy(name)


@pytest.mark.parametrize(
    ("config", "message"),
    examples("damaged_configs"),
)
def test_a_folder_without_a_model_is_refused(
    tmp_path: Path, config: str | None, message: str
) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with raises_error(message):
        load_policy(tmp_path)


def test_a_path_is_never_looked_up_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_policy_name("models/nope")  # without a folder `models`, this may be a hub model
    (tmp_path / "models").mkdir()
    for name in ("models/nope", "runs/nope"):
        with raises_error(f"no policy folder '{name}'"):
            check_policy_name(name)


def test_a_run_with_an_adapter_is_a_policy(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "adapter_config.json").write_text("{}")
    check_policy_name(str(tmp_path))
    (tmp_path / "config.json").write_text("{")
    check_policy_name(str(tmp_path))  # an unneeded file is not read
    check_policy_name(policy.name)
