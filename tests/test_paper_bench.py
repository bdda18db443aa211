"""The paper's bench on a CPU: a model that thinks from the prompt on, a judge behind a URL, questions of HotpotQA's form."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.thinker import hotpotqa, make_thinker
from workbench.answers import well_formed
from workbench.inspector.runs import Runs
from workbench.judge import Element
from workbench.judge.scripted import JudgeServer, by_checksum
from workbench.llm_judge import TRIAL
from workbench.store import iter_feedback
from workbench.types import CLAIM_LABELS, Feedback

Cli = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parent.parent
PPO = "steps=2 prompts_per_step=4 micro_batch=4 max_new_tokens=24 lora_r=4 save_every=1 learning_rate=1e-3".split()
GRPO = "steps=2 prompts_per_step=2 group_size=4 micro_batch=8 max_new_tokens=24 lora_r=4 save_every=1".split()
SETTINGS = {
    "rlfh": [f"rlfh.ppo.{one}" for one in PPO],
    "knowrl": [
        *(f"knowrl.grpo.{one}" for one in GRPO),
        *(f"knowrl.cold.{one}" for one in ("cold_samples=4", "cold_questions=6")),
        *(f"knowrl.sft.{one}" for one in ("steps=1", "batch=2", "lora_r=4")),
    ],
}
DIES_AT = {"rlfh": 2, "knowrl": 3}  # KnowRL's first row is that of its cold start


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_thinker(tmp_path_factory.mktemp("thinker"))


def reply(task: str, found: Sequence[Element]) -> str:
    """Right is what names the gold answer; the rest by checksums of texts without their tags, as a judge quotes sentences."""
    if task == "outcome":
        texts = {element.tag: element.text for element in found}
        return json.dumps({"label": "correct" if texts["answer"] in texts["response"] else "incorrect"})
    return by_checksum(task, [replace(element, text=re.sub(r"</?\w+>", "\n", element.text)) for element in found])


def command(method: str, out: Path, policy: Path, questions: Path, judge: str) -> list[str]:
    settings = [*SETTINGS[method], f"{method}.eval_samples=0"]
    return [
        "train", method, "--bench", "paper", "--questions", str(questions), "--policy", str(policy), "--out", str(out),
        "--judge", judge, "--judge-model", "scripted", "--seed", "3", "--threads", "2",
        *(part for setting in settings for part in ("--set", setting)),
    ]  # fmt: skip


def check_rows(method: str, rows: list[Feedback]) -> None:
    """Every response went on inside the thinking that its prompt had opened; what it says was judged by the server."""
    assert all(row.response.prefill == "<think>\n" and row.error is None for row in rows)
    claims = [(row, claim) for row in rows for claim in row.claims]
    assert claims and {claim.section for _, claim in claims} <= ({"think"} if method == "knowrl" else {"answer", "body"})
    for row, claim in claims:
        verdict = row.verdict(f"claim:{claim.id}", "fact")
        assert verdict is not None and (verdict.by, verdict.error) == ("scripted", None) and verdict.label in CLAIM_LABELS
        assert {item["passage"] for item in verdict.evidence} <= {p.id for p in row.response.question.passages}
    if method == "knowrl":
        formed = [well_formed(row.response.text, row.response.prefill) for row in rows]
        assert [row.rewards["knowrl"].parts["format"] for row in rows] == [1.0 if good else -1.0 for good in formed]
        assert any(formed) and not any(well_formed(row.response.text) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rlfh", "knowrl"])
def test_the_paper_bench_trains_by_a_judge_is_killed_and_goes_on(method: str, thinker: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "runs" / method
    with JudgeServer(reply=reply) as server:
        words = command(method, out, thinker, hotpotqa(tmp_path / "hotpot.json"), server.url)
        dying = [sys.executable, "-m", "tests.helpers.dying_run", str(DIES_AT[method]), *words]
        killed = subprocess.run(dying, cwd=ROOT, capture_output=True, text=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
        asked = dict(server.asked)
        code, told, err = cli(*words, "--json")
        assert code == 0, err
        trials = [times for prompt, times in server.asked.items() if str(TRIAL["question"]) in prompt]
        assert trials == [2] and asked  # whether it is there is asked anew, and nothing else that was asked before the kill
        assert sorted(server.asked.values()) == [*[1] * (len(server.asked) - 1), 2]
        assert server.tasks["verify"] and server.tasks["outcome"]
    summary: dict[str, Any] = json.loads(told)
    assert summary == json.loads((out / "summary.json").read_text()) and summary["status"] == "done"
    assert (summary["bench"], summary["policy"], summary["judge"]["model"]) == ("paper", str(thinker), "scripted")
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
    assert shown == rows[0] and shown.response.question.passages == rows[0].response.question.passages
    assert [row["step"] for row in runs.metrics(method)] == [1, 2]
