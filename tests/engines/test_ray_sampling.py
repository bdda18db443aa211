"""`workbench probe` and `workbench klcf prepare` with `--actors`: the rows of one process and
thread, whatever is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from tests.engines.environment import ROOT, needs
from tests.engines.test_ray import TWO_NODES, alive, graders
from tests.engines.told import tell
from tests.helpers.score_helpers import Cli, read, reply
from tests.helpers.small_bench import make_bench
from tests.helpers.waiting import wait_for
from tests.test_bench import make_run
from workbench.actors import Actors
from workbench.actors.cluster import OWN, started
from workbench.bench import Bench, bench
from workbench.checks import rule_checks
from workbench.judge import Element
from workbench.judge.scripted import JudgeServer
from workbench.knowledge import build_index
from workbench.llm_judge import LLMJudge
from workbench.prepare import prepare_klcf
from workbench.probe import probe_policy
from workbench.train import collect, probing
from workbench.types import Question, WorkbenchError
from workbench.verify import outcome

pytestmark = needs("ray")
PREPARED = ("checklists.jsonl", "truth.jsonl", "card.json", "samples/rollouts.jsonl", "samples/questions.jsonl",
            "samples/passages.jsonl", "samples/collect.json")  # fmt: skip
# three chunks
FEW = ["klcf.prepare.samples=2", "klcf.prepare.questions=40", "klcf.prepare.max_new_tokens=48"]


def start(*words: object, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    command, env = (
        [sys.executable, "-m", "workbench.cli", *map(str, words)],
        {**os.environ, **(environment or {})},
    )
    return subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def same(one: Path, other: Path, names: Sequence[str]) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize("command", [("probe",), ("klcf", "prepare")], ids=" ".join)
def test_actors_that_there_cannot_be_are_refused_before_ray_is_imported(
    tmp_path: Path, cli: Cli, command: tuple[str, ...]
) -> None:
    before = "ray" in sys.modules  # by a file of tests that came first
    for address in ("127.0.0.1:9", "nowhere", "127.0.0.1:high"):
        code, _, err = cli(
            *command, "--out", tmp_path / "out", "--actors", "2", "--address", address
        )
        assert code == 2 and f"no Ray cluster at '{address}'" in err and "ray start --head" in err
    code, _, err = cli(*command, "--out", tmp_path / "out", "--actors", "100000")
    assert code == 2 and "CPUs, one for an actor: lower --actors" in err
    assert not (tmp_path / "out").exists() and ("ray" in sys.modules) == before


def test_a_preparation_whose_driver_is_killed_goes_on_with_actors_or_without(
    tmp_path: Path,
) -> None:
    """Interrupted after the first of ten chunks, killed after another one, then ended without
    actors.
    """
    import psutil

    many = [*FEW, "klcf.prepare.questions=160"]
    out, command = (
        tmp_path / "killed",
        ["klcf", "prepare", "--seed", 1, *(f"--set={setting}" for setting in many), "--json"],
    )
    rows = out / "samples" / "rollouts.jsonl"

    def written() -> int:
        return rows.read_bytes().count(b"\n") if rows.exists() else 0

    for sent, status in ((signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
        before, process = written(), start(*command, "--out", out, "--actors", 2)
        wait_for(
            lambda before=before, process=process: written() > before or process.poll() is not None,
            120,
        )  # type: ignore[misc]
        children = psutil.Process(process.pid).children(recursive=True)
        begun = [child for child in children if not child.name().endswith("Agent")]
        process.send_signal(sent)
        said, err = process.communicate(timeout=60)
        assert process.returncode == status, err
        assert sent == signal.SIGKILL or json.loads(said)["status"] == "interrupted"
        wait_for(lambda begun=begun: not any(map(alive, begun)), 60)  # type: ignore[misc]
        assert before < written() < 320 and not (out / "card.json").exists()
    kept = rows.read_bytes()
    ended = start(*command, "--out", out, "--threads", 1)
    _, err = ended.communicate(timeout=180)
    assert ended.returncode == 0, err
    assert rows.read_bytes().startswith(kept[: kept.rindex(b"\n")])
    prepare_klcf(tmp_path / "whole", seed=1, overrides=many, threads=1)
    same(tmp_path / "whole", out, (*PREPARED, "summary.json", "config.json"))


def test_a_cluster_of_two_nodes_one_of_which_goes(tmp_path: Path) -> None:
    how: dict[str, Any] = {"k": 64, "limit": 160, "kinds": ["single"]}
    command = [
        "probe",
        "--policy",
        "sft",
        "--k",
        64,
        "--limit",
        160,
        "--kind",
        "single",
        "--out",
        tmp_path / "ray",
    ]
    nodes = subprocess.Popen(
        [sys.executable, "-c", TWO_NODES],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **OWN},
        text=True,
    )
    assert nodes.stdin and nodes.stdout
    try:
        address, rows = nodes.stdout.readline().strip(), tmp_path / "ray" / "probe.jsonl"
        refused = start(*command, "--address", address, "--actors", 3, environment=OWN)
        _, err = refused.communicate(timeout=120)
        assert refused.returncode == 2 and "has 2 CPUs" in err and not (tmp_path / "ray").exists()
        process = start(*command, "--address", address, "--actors", 2, environment=OWN)
        wait_for(lambda: rows.exists() or process.poll() is not None, 120)
        nodes.stdin.write("\n")
        nodes.stdin.flush()
        assert nodes.stdout.readline() == "gone\n" and process.poll() is None
        assert 16 <= rows.read_bytes().count(b"\n") < 160
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
    finally:
        nodes.communicate("\n\n", timeout=60)
    probe_policy("sft", out=tmp_path / "local", threads=1, **how)
    same(tmp_path / "local", tmp_path / "ray", ("probe.jsonl", "summary.json", "config.json"))


def test_growth(tmp_path: Path) -> None:
    """Questions a second of the tiny policy, once as many chunks are written as there are actors
    at most.
    """
    chunks, k = (24, 64) if os.environ.get("WORKBENCH_TELL") else (4, 16)
    found, tiny = dict[str, Any](), bench("tiny")
    for name, more in (
        ("local", {"threads": 1}),
        ("1", {"actors": Actors(1)}),
        ("2", {"actors": Actors(2)}),
    ):
        times: list[float] = []
        began, load = time.perf_counter(), round(os.getloadavg()[0], 1)

        def told(question: Question, times: list[float] = times) -> int | None:
            times.append(time.perf_counter())
            return tiny.shown(question)

        timed, how = (
            replace(tiny, shown=told),
            {"k": k, "limit": chunks * probing.CHUNK, "kinds": ["single"]},
        )
        probe_policy("sft", bench=timed, out=tmp_path / name, **how, **more)  # type: ignore[arg-type]
        first = 2 * probing.CHUNK
        found[name] = {
            "questions_a_second": round((len(times) - first) / (times[-1] - times[first - 1]), 2),
            "first_chunk_after": round(times[0] - began, 1),
            "seconds": round(times[-1] - began, 1),
            "load_before": load,
        }
    same(tmp_path / "local", tmp_path / "1", ["probe.jsonl"])
    same(tmp_path / "local", tmp_path / "2", ["probe.jsonl"])
    tell(
        "ray",
        {
            "probing": {
                "questions": chunks * probing.CHUNK,
                "k": k,
                "cpus": os.cpu_count(),
                "by_actors": found,
            }
        },
    )
    print(json.dumps(found))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray as the commands start it, once for all tests of this process."""
    with started(Actors(2)):
        yield


def test_a_probe_by_two_actors_is_that_of_one_process(tmp_path: Path, cluster: None) -> None:
    """Of the tiny policy, whose world actors are sent; three chunks, and a folder that both go
    on with.
    """
    how: dict[str, Any] = {"k": 4, "limit": 40, "seed": 3, "kinds": ["single"]}
    local = probe_policy("sft", out=tmp_path / "local", threads=1, **how)
    remote = probe_policy("sft", out=tmp_path / "ray", actors=Actors(2), **how)
    assert {**remote, "out": ""} == {**local, "out": ""} and remote["failed"] == 0
    same(tmp_path / "local", tmp_path / "ray", ("probe.jsonl", "summary.json", "config.json"))
    lines = (tmp_path / "local" / "probe.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 40 and len({line.partition(b"given")[2] for line in lines}) > 10
    (tmp_path / "ray" / "summary.json").unlink()
    (tmp_path / "ray" / "probe.jsonl").write_bytes(b"".join(lines[:16]))
    probe_policy("sft", out=tmp_path / "ray", actors=Actors(1), **how)
    same(tmp_path / "local", tmp_path / "ray", ("probe.jsonl", "summary.json"))
    with pytest.raises(WorkbenchError, match="threads is 1, not 2"):
        probe_policy("sft", out=tmp_path / "ray", threads=2, **how)


def test_a_preparation_by_two_actors_is_that_of_one_process(tmp_path: Path, cluster: None) -> None:
    local = prepare_klcf(tmp_path / "local", seed=2, overrides=FEW, threads=1)
    remote = prepare_klcf(tmp_path / "ray", seed=2, overrides=FEW, actors=Actors(2))
    assert {**remote, "out": ""} == {**local, "out": ""}
    same(tmp_path / "local", tmp_path / "ray", (*PREPARED, "summary.json", "config.json"))
    assert local["claims"]["support"] > 0 and local["samples"]["all"] == 80


@pytest.fixture
def place(tmp_path: Path) -> Bench:
    return make_bench(tmp_path / "policy")


def test_an_actor_that_is_killed_loses_no_sample_and_no_reply(
    tmp_path: Path, place: Bench, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of two questions; the judge's key came to the driver after Ray was started, so that
    no actor has it.
    """
    monkeypatch.setenv("WORKBENCH_JUDGE_KEY", "secret")
    monkeypatch.setattr(probing, "CHUNK", 2)
    killed, lock = list[int](), Lock()

    def script(task: str, found: Sequence[Element]) -> str:
        with lock:
            others = [victim for victim in graders() if victim.pid not in killed]
            if others and len(killed) < 2 and server.requests >= 12 * (len(killed) + 1):
                killed.append(others[0].pid)
                others[0].kill()
        return reply(task, found)

    with JudgeServer(reply=script, delay=0.01, key="secret") as server:
        how: dict[str, Any] = {"bench": place, "k": 12, "judge": LLMJudge(server.url, "m")}
        remote = probe_policy(out=tmp_path / "ray", actors=Actors(2), **how)
        assert len(set(killed)) == 2 and (remote["status"], remote["failed"]) == ("done", 0)
        asked = dict(server.asked)
        assert set(asked.values()) == {1} and len(asked) > 24
        probe_policy(out=tmp_path / "local", threads=1, **how)
        assert server.asked.keys() == asked.keys()
    same(tmp_path / "local", tmp_path / "ray", ("probe.jsonl", "summary.json", "config.json"))


def test_a_judge_and_its_search_stay_with_the_driver(
    tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows but for whose the cost is, the same card, the same passages found, and no
    prompt asked twice.
    """
    monkeypatch.setattr("workbench.train.prepare.CHUNK", 3)
    monkeypatch.setenv("WORKBENCH_JUDGE_KEY", "secret")
    tiny = bench("tiny")
    place = Bench(
        "test",
        "sft",
        tiny.questions,
        48,
        tiny.hash,
        rule_checks,
        checkpoints={"sft": tiny.path("base")},
    )
    pages = [
        {
            "id": asked.id,
            "title": asked.title,
            "text": f"{asked.title} was born in Rome and is a painter.",
        }
        for asked in tiny.questions("rl", ["biography"])
    ]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    build_index(tmp_path / "index", str(tmp_path / "pages.jsonl"))
    settings = [
        f"klcf.prepare.{name}"
        for name in ("samples=2", "questions=10", "max_new_tokens=48", "told=")
    ]
    with JudgeServer(reply=reply, delay=0.005, key="secret") as server:
        judge = LLMJudge(server.url, "m", str(tmp_path / "index"))
        how: dict[str, Any] = {"overrides": [*settings, "klcf.kinds=biography"], "judge": judge}
        remote = prepare_klcf(tmp_path / "ray", place, actors=Actors(2), **how)
        asked = dict(server.asked)
        assert set(asked.values()) == {1} and len(asked) > 50
        local = prepare_klcf(tmp_path / "local", place, threads=1, **how)
        # neither asks for anything that the other does not
        assert server.asked.keys() == asked.keys()
    of_ray, of_this = (
        {**card, "out": "", "cost": card["cost"]["calls"]} for card in (remote, local)
    )
    assert (
        of_ray == of_this
        and remote["claims"]["support"] > 0
        and remote["checklists"]["same_fact"] > 0
    )
    same(
        tmp_path / "local",
        tmp_path / "ray",
        ("checklists.jsonl", "truth.jsonl", "samples/questions.jsonl"),
    )
    one, other = (
        [{**row, "cost": None} for row in read(tmp_path / name / "samples" / "rollouts.jsonl")]
        for name in ("local", "ray")
    )
    assert one == other
    found, others = (
        (tmp_path / name / "samples" / "passages.jsonl").read_bytes().splitlines()
        for name in ("local", "ray")
    )
    assert found == others and len(found) > 5


def deadly_answers(policy: Any, grade: Any, questions: Any, how: Any) -> Any:
    """As `probing.answers`, but that its process ends, as where it has no memory left, at one
    question.
    """
    if any(question.id.endswith("Ed") for question in questions):
        os._exit(137)
    return probing.answers(policy, grade, questions, how)


def deadly_samples(policy: Any, grade: Any, asked: Any, how: Any) -> Any:
    """The same of `collect.sampled`: at the sixth question of the second chunk."""
    if any((one.number, one.place) == (2, 5) for one in asked):
        os._exit(137)
    return collect.sampled(policy, grade, asked, how)


def test_a_question_that_kills_whoever_asks_it_is_left_open_alone(
    tmp_path: Path,
    place: Bench,
    cluster: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    local = probe_policy(bench=place, k=6, out=tmp_path / "local", threads=1)
    monkeypatch.setattr("workbench.probe.answers", deadly_answers)
    remote = probe_policy(bench=place, k=6, out=tmp_path / "ray", actors=Actors(1))
    assert (local["failed"], remote["failed"], remote["unsettled"], remote["status"]) == (
        0,
        6,
        1,
        "done",
    )
    whole, rows = read(tmp_path / "local" / "probe.jsonl"), read(tmp_path / "ray" / "probe.jsonl")
    bad = [row for row in rows if row["failed"]]
    assert [(row["question_id"], row["ook"], row["majority"]) for row in bad] == [
        ("validation-Ed", None, None)
    ]
    assert [row for row in rows if not row["failed"]] == [
        row for row in whole if row["question_id"] != "validation-Ed"
    ]
    assert (
        "question 'validation-Ed' is left open: 2 processes died of it" in capsys.readouterr().err
    )


def test_a_question_that_kills_whoever_samples_it_has_failed_samples(
    tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 16 is fewer than a fifth; the others of its chunk, which are sampled one by one
    then, are what they were.
    """
    few = [*FEW[:1], "klcf.prepare.questions=32", *FEW[2:]]
    local = prepare_klcf(tmp_path / "local", seed=2, overrides=few, threads=1)
    with monkeypatch.context() as patched:
        patched.setattr("workbench.prepare.sampled", deadly_samples)
        remote = prepare_klcf(tmp_path / "ray", seed=2, overrides=few, actors=Actors(1))
    assert (local["samples"]["failed"], remote["samples"]["failed"], remote["status"]) == (
        0,
        2,
        "done",
    )
    whole, rows = (
        read(tmp_path / name / "samples" / "rollouts.jsonl") for name in ("local", "ray")
    )
    bad = [row for row in rows if row["error"]]
    assert [row["id"] for row in bad] == [row["id"] for row in whole[32 + 10 : 32 + 12]]
    assert {(row["error"]["stage"], row["error"]["kind"], row["response"]) for row in bad} == {
        ("generate", "died", "")
    }
    assert [row for row in rows if not row["error"]] == [
        row for number, row in enumerate(whole) if number not in (42, 43)
    ]


def test_the_adapter_of_a_run_lies_over_the_policy_of_the_bench(
    tmp_path: Path, place: Bench, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is named by a path from here, and its adapter's own base is a path from elsewhere."""
    run = make_run(tmp_path / "run", Path(place.path("sft")))
    config = json.loads((run / "policy" / "adapter_config.json").read_text())
    (run / "policy" / "adapter_config.json").write_text(
        json.dumps({**config, "base_model_name_or_path": "no/where"})
    )
    (run / "config.json").write_text(
        json.dumps({"method": "truthrl", "bench": "test", "policy": "sft"})
    )
    monkeypatch.chdir(tmp_path)
    local = probe_policy("run", bench=place, k=6, out=tmp_path / "local", threads=1)
    probe_policy("run", bench=place, k=6, out=tmp_path / "ray", actors=Actors(1))
    same(tmp_path / "local", tmp_path / "ray", ("probe.jsonl", "summary.json"))
    probe_policy("sft", bench=place, k=6, out=tmp_path / "without", threads=1)
    assert local["failed"] == 0
    assert (tmp_path / "without" / "probe.jsonl").read_bytes() != (
        tmp_path / "local" / "probe.jsonl"
    ).read_bytes()


def test_checks_that_cannot_be_sent_are_refused(
    tmp_path: Path, place: Bench, cluster: None
) -> None:
    lock, checks = Lock(), place.checks

    def locked(batch: Any) -> Any:
        with lock:
            return outcome()(batch)

    own = replace(place, judge=lambda: replace(checks, verify={"outcome": locked}))
    with pytest.raises(WorkbenchError, match="cannot be sent to Ray's actors"):
        probe_policy(bench=own, k=1, out=tmp_path / "probe", actors=Actors(1))
    assert not (tmp_path / "probe").exists()


def test_a_policy_that_actors_cannot_load_is_told_as_here(
    tmp_path: Path, place: Bench, cluster: None
) -> None:
    (Path(place.path("sft")) / "model.safetensors").unlink()
    messages = []
    for more in ({"threads": 1}, {"actors": Actors(1)}):
        with pytest.raises(WorkbenchError) as refused:
            probe_policy(bench=place, k=1, out=tmp_path / "probe", **more)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
