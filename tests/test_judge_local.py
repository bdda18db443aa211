"""A model on this machine as a judge: what it garbles is a failure; a server with a real model
gets no more credit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.tiny_model import make_policy
from workbench.judge import BatchJudge, local_model, render
from workbench.types import Prompt, WorkbenchError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy(tmp_path_factory.mktemp("judge"))


def kinds(judge: BatchJudge, prompts: list[Prompt]) -> list[str | None]:
    return [reply.error.kind if reply.error else None for reply in judge(prompts)]


def test_garbled_replies_are_failures(folder: Path) -> None:
    judge = local_model(folder, max_new_tokens=20, batch_size=4, device="cpu")
    prompts = [Prompt("verify", f"Is {n} right?") for n in range(10)]
    assert set(kinds(judge, prompts)) <= {"truncated", "not_json", "empty", "extra_text"}
    assert judge.totals.calls == 10 and judge.totals.failures.total() == 10
    assert judge.totals.tokens_in > 0 and 0 < judge.totals.tokens_out <= 200


def test_a_prompt_that_does_not_fit_is_not_generated_from(folder: Path) -> None:
    judge = local_model(folder, max_new_tokens=20, device="cpu")
    long = render(
        "verify", question="Who?", passages=["Ada " * 200], claims=["Ada was born in Oslo."]
    )
    first, second = judge([long, Prompt("verify", "Is it?")])
    assert first.error and first.error.kind == "too_long" and "256 positions" in first.error.message
    assert first.cost.calls == 0 and second.cost.calls == judge.totals.calls == 1


def test_replies_do_not_depend_on_their_batch_and_are_cached(folder: Path, tmp_path: Path) -> None:
    """Prompts of another task are not read strictly, so that even this model's replies can be
    compared.
    """
    prompts = [Prompt("chat", "Who " * n + "is Ada") for n in range(1, 6)]
    options = {"max_new_tokens": 40, "device": "cpu"}
    alone = [local_model(folder, batch_size=1, **options)([prompt])[0] for prompt in prompts]  # type: ignore[arg-type]
    judge = local_model(folder, batch_size=3, cache=tmp_path / "c", **options)  # type: ignore[arg-type]
    assert [reply.text for reply in judge(prompts)] == [reply.text for reply in alone]
    readable = sum(reply.error is None for reply in alone)
    assert judge(prompts) and judge.totals.cached == readable
    assert judge.totals.calls == 5 + (5 - readable)


def test_a_model_that_is_not_there() -> None:
    with pytest.raises(WorkbenchError, match="no policy folder"):
        local_model("no-such-folder")
