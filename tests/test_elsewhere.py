"""Sampling by Ray's actors, as far as it needs no Ray: what is refused, what an actor is told,
what becomes of who could not be asked. `tests/engines/test_ray_sampling.py` has the actors."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.small_bench import NAMES, make_bench
from tests.helpers.tiny_model import make_policy
from workbench.actors import Actors, cluster
from workbench.bench import bench
from workbench.config import scaled
from workbench.failures import TooManyFailures
from workbench.generate import Sampling
from workbench.judge import render
from workbench.judge.endpoint import CONCURRENCY
from workbench.judge.scripted import JudgeServer, by_checksum
from workbench.llm_judge import LLMJudge
from workbench.metrics.boundary import Probed
from workbench.policy import load_policy
from workbench.runs.folder import policy_hash
from workbench.store import iter_feedback
from workbench.train import collect, probing
from workbench.train.elsewhere import Told
from workbench.train.prepare import SHOTS, Prepare, Source, prepare
from workbench.types import Failure, WorkbenchError

Cli = Callable[..., tuple[int, str, str]]
DIED = Failure("grade", "died", "2 processes died of it: out of memory")
BOTH = ("probe",), ("klcf", "prepare")


@pytest.mark.parametrize("command", BOTH, ids=" ".join)
@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--address", "a:1"), "say how many with --actors N"),
        (("--actors", "0"), "greater than or equal to 1"),
        (
            ("--actors", "2", "--threads", "2"),
            "each actor has one thread, and not 2: leave --threads out",
        ),
        (
            ("--actors", "2", "--address", "ray://a:1"),
            "write HOST:PORT, on a machine that has joined",
        ),
    ],
)
def test_options_that_cannot_work_are_refused_beforehand(
    tmp_path: Path, cli: Cli, command: tuple[str, ...], more: tuple[str, ...], told: str
) -> None:
    code, out, err = cli(*command, "--out", tmp_path / "out", *more, "--json")
    assert (code, out, err.count("\n")) == (2, "", 1) and told in err
    assert not (tmp_path / "out").exists()


def test_the_engine_of_actors_is_transformers(tmp_path: Path, cli: Cli) -> None:
    code, _, err = cli("probe", "--out", tmp_path / "out", "--actors", "2", "--engine", "vllm")
    assert code == 2 and "generate by transformers alone" in err and not (tmp_path / "out").exists()


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
@pytest.mark.parametrize("command", BOTH, ids=" ".join)
def test_without_ray_it_is_told_what_to_install(
    tmp_path: Path, cli: Cli, command: tuple[str, ...]
) -> None:
    code, _, err = cli(*command, "--out", tmp_path / "out", "--actors", "2")
    pinned = re.search(
        r"ray==[\d.]+", Path(__file__).parent.with_name("pyproject.toml").read_text()
    )
    assert (
        code == 2
        and pinned
        and f"pip install {pinned[0]}" in err
        and "pip install -e '.[ray]'" in err
    )
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_another_one_on_an_actors_machine_is_refused(tmp_path: Path) -> None:
    policy, other = (
        str(make_policy(tmp_path / "policy")),
        str(make_policy(tmp_path / "other", seed=1)),
    )

    def told(digests: dict[str, str | None]) -> Told[Any, Any]:
        return Told(
            policy,
            None,
            digests,
            lambda asked: bench("tiny").checks,
            probing.outcomes,
            lambda *given: [],
        )

    assert told({policy: policy_hash(policy)})({})(["anything"]) == []
    for folder, digest in (
        (policy, policy_hash(other)),
        (str(tmp_path / "nowhere"), policy_hash(policy)),
    ):
        with pytest.raises(
            WorkbenchError,
            match=f"'{folder}' is not on .*, or another one: copy it to every machine",
        ):
            told({folder: digest})({})


def test_an_actor_is_told_neither_the_address_of_a_judge_nor_its_key(tmp_path: Path) -> None:
    judged = make_bench(tmp_path / "policy").judged_by(
        LLMJudge("https://ada:pa55-w0rd@judge-node", "m")
    )
    asked: list[str] = []

    def ask(prompts: Sequence[Any]) -> list[Any]:
        asked.extend(prompt.task for prompt in prompts)
        raise WorkbenchError("asked")

    sent = pickle.dumps(judged.checks_elsewhere())
    assert b"judge-node" not in sent and b"pa55" not in sent
    checks = pickle.loads(sent)({"judge": ask})
    assert set(checks.verify) == set(judged.checks.verify)
    answered = probing.outcomes(checks)
    policy, questions = load_policy(judged.path("sft")), judged.questions("validation")[:1]
    with pytest.raises(WorkbenchError, match=r"^asked$"):
        probing.answers(policy, answered, questions, Sampling(4, samples=3))
    assert set(asked) == {"outcome"}


def test_many_that_ask_one_judge_ask_each_prompt_once_and_keep_to_its_concurrency(
    tmp_path: Path,
) -> None:
    def prompts(name: str, count: int) -> list[Any]:
        return [
            render("outcome", question=f"{name}, {n}?", answers=["One"], response=f"It is {n}.")
            for n in range(count)
        ]

    common, found = prompts("Everybody", 30), dict[int, list[str | None]]()

    def ask(number: int, judge: Any) -> None:
        found[number] = [reply.text for reply in judge([*prompts(f"Number {number}", 60), *common])]

    with JudgeServer(reply=by_checksum, delay=0.02) as server:
        judge = LLMJudge(server.url, "m", cache=tmp_path / "c")
        with judge.shared(4) as asked:
            assert list(asked) == ["judge"] and not (tmp_path / "c").exists()
            threads = [
                threading.Thread(target=ask, args=(number, asked["judge"])) for number in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert set(server.asked.values()) == {1} and len(server.asked) == 4 * 60 + 30
        assert 2 <= server.peak <= CONCURRENCY
    assert len(found) == 4 and all(
        len(texts) == 90 and texts[60:] == found[0][60:] for texts in found.values()
    )


def test_a_question_that_could_not_be_asked_is_left_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = make_bench(tmp_path / "policy")
    questions = [question for question in place.questions("validation") if question.answers]
    ask = probing.here(
        load_policy(place.path("sft")), probing.outcomes(place.checks), Sampling(4, samples=3)
    )

    def one_dies(chunks: Any) -> Any:
        for chunk, answers in zip(chunks, ask(chunks), strict=True):
            yield [
                probing.lost(asked, DIED, 3) if asked.id.endswith("Cy") else said
                for asked, said in zip(chunk, answers, strict=True)
            ]

    (tmp_path / "probe").mkdir()
    probing.probe_questions(one_dies, questions, tmp_path / "probe", 3)
    rows = [
        json.loads(line) for line in (tmp_path / "probe" / "probe.jsonl").read_text().splitlines()
    ]
    assert [(row["failed"], row["ook"]) for row in rows if row["question_id"].endswith("Cy")] == [
        (3, None)
    ]
    assert sum(row["failed"] for row in rows) == 3 and len(rows) == len(NAMES)
    assert (
        "question 'validation-Cy' is left open: 2 processes died of it" in capsys.readouterr().err
    )
    (tmp_path / "strict").mkdir()
    with pytest.raises(TooManyFailures, match="3 of 30 samples could not be graded"):
        probing.probe_questions(one_dies, questions, tmp_path / "strict", 3, max_failed=0.09)
    assert Probed.from_row(rows[2]).majority is None


def test_samples_that_could_not_be_drawn_have_failed_and_claim_nothing(tmp_path: Path) -> None:
    """Of two questions the second: half of the samples."""
    tiny = bench("tiny")
    questions, config = (
        tiny.questions("rl", ["biography"])[:2],
        scaled(Prepare(), samples=2, max_new_tokens=8),
    )

    def one_dies(chunks: Any) -> Any:
        for chunk in chunks:
            yield [collect.lost(asked, DIED, 2) for asked in chunk]

    source = Source("tiny", tiny.hash, tiny.path("base"), tiny.shown)
    go = partial(
        prepare,
        source=source,
        questions=questions,
        checks=tiny.checks,
        out=tmp_path,
        seed=1,
        sampler=one_dies,
    )
    with pytest.raises(
        TooManyFailures, match=r"4 of 4 samples could not be graded \(2 processes died of it"
    ):
        go(config)
    card = go(scaled(Prepare(), samples=2, max_new_tokens=8, max_failed=1.0))
    assert (
        card["samples"] == {"all": 4, "failed": 4, "refused": 0, "no_claims": 0, "cut_off": 0}
        and card["failed"] == 4
    )
    rows = list(iter_feedback(tmp_path / "samples"))
    assert [row.response.id for row in rows] == [
        f"{one.id}/1/{n}" for one in order(rows) for n in range(2)
    ]
    assert all(
        row.error == Failure("generate", "died", DIED.message) and not row.response.text
        for row in rows
    )
    assert all(row.response.question.system == SHOTS for row in rows)


def order(rows: Sequence[Any]) -> list[Any]:
    """The questions of rows, each once, as they come."""
    return list({row.response.question.id: row.response.question for row in rows}.values())


def test_so_many_actors_as_there_are_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    cluster.check(Actors(4))
    with pytest.raises(
        WorkbenchError, match="this machine has 4 CPUs, one for an actor: lower --actors"
    ):
        cluster.check(Actors(5))
