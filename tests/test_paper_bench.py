"""The paper's bench on a CPU: a model that thinks from the prompt on, a judge behind a URL,
questions of HotpotQA's form.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import forked
from tests.helpers.thinker import hotpotqa, longfact, make_thinker, webglm_qa
from workbench.answers import answer_text, well_formed
from workbench.answers.outline import citations, read_outline
from workbench.inspector.runs import Runs
from workbench.judge import Element
from workbench.judge.scripted import JudgeServer, by_checksum
from workbench.llm_judge import TRIAL
from workbench.store import iter_feedback
from workbench.types import CLAIM_LABELS, Feedback

Cli = Callable[..., tuple[int, str, str]]
PPO = (
    "steps=2 prompts_per_step=4 micro_batch=4 max_new_tokens=24 lora_r=4 save_every=1"
    " learning_rate=1e-3".split()
)
GRPO = "steps=2 prompts_per_step=2 group_size=4 micro_batch=8 max_new_tokens=24 lora_r=4 save_every=1".split()
SETTINGS = {
    "rlfh": [f"rlfh.ppo.{one}" for one in PPO],
    "knowrl": [
        *(f"knowrl.grpo.{one}" for one in GRPO),
        *(f"knowrl.cold.{one}" for one in ("cold_samples=4", "cold_questions=6")),
        *(f"knowrl.sft.{one}" for one in ("steps=1", "batch=2", "lora_r=4")),
    ],
}
SETTINGS["klcf"] = [
    *(f"klcf.grpo.{one}" for one in GRPO),
    *(f"klcf.prepare.{one}" for one in ("samples=8", "max_new_tokens=24", "told=")),
    *(f"klcf.truth_model.{one}" for one in ("steps=1", "batch=4", "lora_r=4")),
    *(
        f"klcf.{one}"
        for one in ("system=", "eval_kinds=long_form", "l_max=64", "l_cache=16", "held_out=0")
    ),
]
SETTINGS["forag"] = [
    *(f"forag.ppo.{one}" for one in PPO),
    *(f"forag.cold.{one}" for one in ("writer=judge", "cold_questions=5")),
    *(
        f"forag.{part}.{one}"
        for part in ("sft", "reward_model")
        for one in ("steps=1", "epochs=none", "batch=4", "lora_r=4")
    ),
    *(
        f"forag.drawn.{one}"
        for one in ("samples=4", "max_new_tokens=24", "references=1", "questions=6", "held_out=0.4")
    ),
    *(f"forag.{one}" for one in ("eval_kinds=long_form", "repeats=once")),
]
# the first row is that of KnowRL's cold start, of KLCF's truthfulness model
DIES_AT = {"rlfh": 2, "knowrl": 3, "klcf": 3}


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_thinker(tmp_path_factory.mktemp("thinker"))


def reply(task: str, found: Sequence[Element]) -> str:
    """Right is what names the gold answer; the rest by checksums of texts without their tags, as
    a judge quotes sentences.
    """
    if task == "outcome":
        texts = {element.tag: element.text for element in found}
        return json.dumps(
            {"label": "correct" if texts["answer"] in texts["response"] else "incorrect"}
        )
    return by_checksum(
        task, [replace(element, text=re.sub(r"</?\w+>", "\n", element.text)) for element in found]
    )


def command(method: str, out: Path, policy: Path, questions: Path, judge: str) -> list[str]:
    settings = [*SETTINGS[method], f"{method}.eval_samples=0"]
    return [
        "train",
        method,
        "--bench",
        "paper",
        "--questions",
        str(questions),
        "--policy",
        str(policy),
        "--out",
        str(out),
        "--judge",
        judge,
        "--judge-model",
        "scripted",
        "--seed",
        "3",
        "--threads",
        "2",
        *(part for setting in settings for part in ("--set", setting)),
    ]


def check_rows(method: str, rows: list[Feedback]) -> None:
    """Every response went on inside the thinking that its prompt had opened; what it says was
    judged by the server.
    """
    assert all(row.response.prefill == "<think>\n" and row.error is None for row in rows)
    claims = [(row, claim) for row in rows for claim in row.claims]
    assert claims and {claim.section for _, claim in claims} <= (
        {"think"} if method == "knowrl" else {"answer", "body"}
    )
    for row, claim in claims:
        verdict = row.verdict(f"claim:{claim.id}", "fact")
        assert (
            verdict is not None
            and (verdict.by, verdict.error) == ("scripted", None)
            and verdict.label in CLAIM_LABELS
        )
        assert {item["passage"] for item in verdict.evidence} <= {
            p.id for p in row.response.question.passages
        }
    if method == "knowrl":
        formed = [well_formed(row.response.text, row.response.prefill) for row in rows]
        assert [row.rewards["knowrl"].parts["format"] for row in rows] == [
            1.0 if good else -1.0 for good in formed
        ]
        assert any(formed) and not any(well_formed(row.response.text) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rlfh", "knowrl"])
def test_the_paper_bench_trains_by_a_judge_is_killed_and_goes_on(
    method: str, thinker: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "runs" / method
    with JudgeServer(reply=reply) as server:
        words = command(method, out, thinker, hotpotqa(tmp_path / "hotpot.json"), server.url)
        killed = forked.run("tests.helpers.dying_run", str(DIES_AT[method]), *words)
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
        asked = dict(server.asked)
        code, told, err = cli(*words, "--json")
        assert code == 0, err
        trials = [
            times for prompt, times in server.asked.items() if str(TRIAL["question"]) in prompt
        ]
        # whether it is there is asked anew, and nothing else that was asked before the kill
        assert trials == [2] and asked
        assert sorted(server.asked.values()) == [*[1] * (len(server.asked) - 1), 2]
        assert server.tasks["verify"] and server.tasks["outcome"]
    summary: dict[str, Any] = json.loads(told)
    assert summary == json.loads((out / "summary.json").read_text()) and summary["status"] == "done"
    assert (summary["bench"], summary["policy"], summary["judge"]["model"]) == (
        "paper",
        str(thinker),
        "scripted",
    )
    assert summary["failed"] == 0 and summary["cost"]["calls"] + summary["cost"]["cached"] > 0
    for when in ("before", "after"):
        assert summary[when]["greedy"]["accuracy"]["value"] is not None
        assert summary[when]["greedy"]["factscore"]["value"] is not None
    rows = list(iter_feedback(out))
    assert len(rows) == 2 * 4 * (2 if method == "knowrl" else 1)
    check_rows(method, rows)

    runs = Runs(tmp_path / "runs")
    index = runs.index(method)
    assert method in runs.names() and len(index.entries) == len(rows)
    shown = runs.feedback(method, index.entries[0])
    assert (
        shown == rows[0] and shown.response.question.passages == rows[0].response.question.passages
    )
    assert [row["step"] for row in runs.metrics(method)] == [1, 2]


def truthful(task: str, found: Sequence[Element]) -> str:
    """Whoever is in Lima is not: a judge that supports some claims and refutes others, and
    thinks all of them worth telling.
    """
    claims = [element.text for element in found if element.tag == "claim"]
    if task == "verify":
        return json.dumps({"label": "wrong" if "Lima" in claims[0] else "correct"})
    return json.dumps({"ratings": [4] * len(claims)}) if task == "inform" else reply(task, found)


@pytest.mark.nightly
def test_klcf_prepares_by_a_judge_is_killed_and_goes_on(
    thinker: Path, tmp_path: Path, cli: Cli
) -> None:
    """The model is its own base: it is sampled, verified, tuned into a truthfulness model, and
    trained.
    """
    out = tmp_path / "runs" / "klcf"
    with JudgeServer(reply=truthful) as server:
        words = command("klcf", out, thinker, longfact(tmp_path / "longfact.jsonl"), server.url)
        killed = forked.run("tests.helpers.dying_run", str(DIES_AT["klcf"]), *words)
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
        code, told, err = cli(*words, "--json")
        assert code == 0, err
        # but whether it is there, nothing twice
        assert sorted(server.asked.values()) == [*[1] * (len(server.asked) - 1), 2]
        # the trials
        assert server.tasks["verify"] and server.tasks["checklist"] and server.tasks["outcome"] == 2
    summary: dict[str, Any] = json.loads(told)
    assert (
        summary["status"] == "done" and summary["failed"] == 0 and summary["policy"] == str(thinker)
    )
    card = json.loads((out / "stages" / "prepare" / "card.json").read_text())
    assert (
        card["samples"]["all"] == 48
        and card["claims"]["support"]
        and card["claims"]["refute"]
        and card["known"] is None
    )
    assert card["truth"]["correct"] == 2 * card["truth"]["wrong"] > 0 and card["cost"]["calls"] > 0
    rows = list(iter_feedback(out))
    assert len(rows) == 16 and any(row.claims for row in rows)
    for row in rows:
        truths = [verdict for verdict in row.verdicts if verdict.aspect == "truth"]
        # training asks for no evidence
        assert {verdict.aspect for verdict in row.verdicts} <= {"truth", "checklist"}
        assert len(truths) == len(row.claims) and all(verdict.p is not None for verdict in truths)
        formed = well_formed(row.response.text, row.response.prefill)
        assert row.rewards["klcf"].parts["format"] == (0.0 if formed else -1.0)


@pytest.mark.nightly
def test_forag_learns_outlines_that_a_judge_writes_is_killed_and_goes_on(
    thinker: Path, tmp_path: Path, cli: Cli
) -> None:
    """Killed where half of what was written is recorded, and again in PPO's first step, behind
    cold start and reward model.
    """
    out = tmp_path / "runs" / "forag"
    with JudgeServer(reply=reply) as server:
        words = command("forag", out, thinker, webglm_qa(tmp_path / "webglm.jsonl"), server.url)
        for place in ("feedback:1", "3"):
            killed = forked.run("tests.helpers.dying_run", place, *words)
            assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
            left = {path.name for path in (out / "stages" / "cold_start").iterdir()}
            assert (
                left == {".written.partial"}
                if place == "feedback:1"
                else {"written", "policy", "card.json"} <= left
            )
        judged = dict(server.tasks)
        code, told, err = cli(*words, "--json")
        assert code == 0, err
        # but whether it is there, nothing twice
        assert sorted(server.asked.values()) == [*[1] * (len(server.asked) - 1), 3]
        assert server.tasks["outline"] == server.tasks["expand"] == judged["outline"] == 5
    summary: dict[str, Any] = json.loads(told)
    assert (
        summary["status"] == "done" and summary["failed"] == 0 and summary["policy"] == str(thinker)
    )
    for when in ("before", "after"):
        assert summary[when]["greedy"]["factscore"]["value"] is not None

    cold = out / "stages" / "cold_start"
    card = json.loads((cold / "card.json").read_text())
    assert (card["rule"], card["rows"], card["dropped_samples"]) == (
        "cold_start_written",
        {"in form": 5},
        {},
    )
    written = list(iter_feedback(cold / "written"))
    assert (
        len(written) == 5
        and summary["cost"]["calls"]
        >= sum(row.cost.calls + row.cost.cached for row in written)
        == 10
    )
    for row in written:
        response = row.response
        thought, _, said = response.text.partition("</think>")
        outline = read_outline(said)
        assert (
            (response.prefill, thought) == ("<think>\n", "")
            and outline is not None
            and not row.verdicts
        )
        # learnt behind the thinking, not in it
        assert answer_text(response.text, response.prefill) == outline.answer
        assert [point.source for point in outline.points] == citations(outline.answer) == [1, 2, 3]

    model = json.loads((out / "stages" / "reward_model" / "card.json").read_text())
    assert model["rule"] == "judged_segments" and model["cut"]["both"] > 0
    held = json.loads((out / "stages" / "reward_model" / "held_out.json").read_text())
    assert held["rows"] > 0 and held["segments"] > 0
    reference = list(iter_feedback(out / "stages" / "reference" / "samples"))
    rows = list(iter_feedback(out))
    assert len(rows) == 8 and {row.response.question.id for row in reference} >= {
        row.response.question.id for row in rows
    }
    assert any(row.claims for row in rows)
    for row in rows:
        assert (
            row.error is None
            and row.response.prefill == "<think>\n"
            and len(row.response.question.passages) == 3
        )
        assert {verdict.aspect for verdict in row.verdicts} <= {
            "factuality",
            "baseline",
        } and row.cost.calls == 0
        paid = row.rewards["forag"]
        assert paid.value is not None and paid.parts["stood_in"] == 0.0 and "repeated" in paid.parts
