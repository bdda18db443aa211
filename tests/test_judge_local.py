"""A model on this machine as a judge: what it garbles is a failure; a server with a real model
gets no more credit.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.tiny_model import make_policy
from tests.helpers.waiting import wait_for
from workbench.judge import BatchJudge, endpoint, local_model, render
from workbench.types import Prompt, WorkbenchError

SHIPPED = Path(__file__).resolve().parent.parent / "data" / "tiny-policy" / "sft"


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


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[str]:
    """`transformers serve` with the shipped policy."""
    from transformers.utils.import_utils import is_serve_available

    if not is_serve_available():
        pytest.skip("`transformers serve` needs the packages of transformers[serving]")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (tmp_path / "hub").mkdir()  # without it the server cannot list its models
    command = [str(Path(sys.executable).with_name("transformers")), "serve", str(SHIPPED)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--device", "cpu", "--host", "127.0.0.1", "--port", port],
            env={**os.environ, "HF_HOME": str(tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(lambda: process.poll() is not None or _is_open(int(port)), 120)
        assert process.poll() is None, (tmp_path / "log").read_text()[-2000:]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(20)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.nightly
def test_a_real_server_with_a_model_that_cannot_judge(serving: str) -> None:
    judge = endpoint(
        serving, str(SHIPPED), timeout=60, retries=1, backoff=0.1, max_new_tokens=48, concurrency=2
    )
    verify = render(
        "verify",
        question="Who?",
        passages=["Ada was born in Oslo."],
        claims=["Ada was born in Rome."],
    )
    replies = judge([verify, *(Prompt("verify", f"Where was person {n} born?") for n in range(4))])
    assert all(reply.text is None and reply.error for reply in replies)
    kinds = {reply.error.kind for reply in replies if reply.error}
    assert kinds & {"not_json", "extra_text", "truncated", "empty"}  # the server did answer
