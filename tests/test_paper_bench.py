"""The paper's bench on a CPU: prompts that open the thinking, a judge behind a URL, questions in
HotpotQA's format.
"""

import json
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.scripted_judge import JudgeServer, by_checksum
from tests.helpers import Cli, forked, read_json
from tests.helpers.thinker import hotpotqa, make_thinker, webglm_qa
from workbench.judge import Element
from workbench.runs.store import iter_feedback
from workbench.text import answer_text, well_formed
from workbench.text.outline import citations, read_outline
from workbench.types import Feedback, JsonObject

PPO = (
    "steps=2 prompts_per_step=4 micro_batch=4 max_new_tokens=24 lora_r=4 save_every=1"
    " learning_rate=1e-3".split()
)
GRPO = (
    "steps=2 prompts_per_step=2 group_size=4 micro_batch=8 max_new_tokens=24 lora_r=4"
    " save_every=1".split()
)
SETTINGS = {
    "rlfh": [f"rlfh.ppo.{one}" for one in PPO],
    "knowrl": [
        *(f"knowrl.grpo.{one}" for one in GRPO),
        *(f"knowrl.cold.{one}" for one in ("cold_samples=4", "cold_questions=6")),
        *(f"knowrl.sft.{one}" for one in ("steps=1", "batch=2", "lora_r=4")),
    ],
}
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


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_thinker(tmp_path_factory.mktemp("thinker"))


def reply(task: str, found: Sequence[Element]) -> str:
    """Correct means naming the gold answer; other replies are checksums of texts without tags, as a
    judge quotes sentences.
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
    given = (
        f"train {method} --bench paper --questions {questions} --policy {policy} --out {out}"
        f" --judge {judge} --judge-model scripted --seed 3 --threads 2"
    )
    settings = [*SETTINGS[method], f"{method}.eval_samples=0"]
    return [*given.split(), *(part for setting in settings for part in ("--set", setting))]


def check_rows(method: str, rows: list[Feedback]) -> None:
    """Responses continue the thinking of their prompts; the server judges their claims."""
    assert all(row.response.prefill == "<think>\n" and row.error is None for row in rows)
    assert any(row.claims for row in rows)
    for row in rows:
        for claim in row.claims:
            assert (claim.section == "think") == (method == "knowrl")
            verdict = row.verdict(f"claim:{claim.id}", "fact")
            assert verdict is not None and (verdict.by, verdict.error) == ("scripted", None)
    if method == "knowrl":
        formed = [well_formed(row.response.text, row.response.prefill) for row in rows]
        formats = [row.rewards["knowrl"].parts["format"] for row in rows]
        assert formats == [1.0 if good else -1.0 for good in formed] and any(formed)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rlfh", pytest.param("knowrl", marks=pytest.mark.nightly)])
def test_the_paper_bench_trains_with_a_judge(
    method: str, thinker: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "runs" / method
    with JudgeServer(reply=reply) as server:
        words = command(method, out, thinker, hotpotqa(tmp_path / "hotpot.json"), server.url)
        code, printed, err = cli(*words, "--json")
        assert code == 0, err
        assert set(server.asked.values()) == {1}
        assert server.tasks["verify"] and server.tasks["outcome"]
    summary: JsonObject = json.loads(printed)
    assert summary == read_json(out / "summary.json") and summary["status"] == "done"
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


@pytest.mark.nightly
def test_forag_with_outlines_of_a_judge_resumes_after_kills(
    thinker: Path, tmp_path: Path, cli: Cli
) -> None:
    """Killed after half of the outlines are recorded, and again in PPO's first step."""
    out = tmp_path / "runs" / "forag"
    with JudgeServer(reply=reply) as server:
        words = command("forag", out, thinker, webglm_qa(tmp_path / "webglm.jsonl"), server.url)
        for place in ("feedback:1", "3"):
            killed = forked.run("tests.helpers.dying_run", place, *words)
            assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
        code, _, err = cli(*words, "--json")
        assert code == 0, err
        # each process repeats the trial of the judge and no other request
        assert sorted(server.asked.values()) == [*[1] * (len(server.asked) - 1), 3]
        assert server.tasks["outline"] == server.tasks["expand"] == 5
    written = list(iter_feedback(out / "stages" / "cold_start" / "written"))
    assert len(written) == 5
    for row in written:
        thought, _, answer = row.response.text.partition("</think>")
        outline = read_outline(answer)
        assert (row.response.prefill, thought) == ("<think>\n", "") and outline is not None
        assert answer_text(row.response.text, row.response.prefill) == outline.answer
        assert [point.source for point in outline.points] == citations(outline.answer) == [1, 2, 3]
    rows = list(iter_feedback(out))
    assert len(rows) == 8 and any(row.claims for row in rows)
    for row in rows:
        paid = row.rewards["forag"]
        assert paid.value is not None and paid.parts["stood_in"] == 0.0 and "repeated" in paid.parts
        assert row.cost.calls == 0 and row.response.prefill == "<think>\n"


@pytest.mark.slow
@pytest.mark.parametrize("judge", [[], ["--judge", "local"]])
def test_the_small_bench_trains_without_an_endpoint(
    judge: list[str], thinker: Path, tmp_path: Path, cli: Cli
) -> None:
    """With the table of real facts, and with only the local verifier, on the same pages."""
    out = tmp_path / "run"
    settings = "trainer=grpo grpo.steps=1 kinds=long_form eval_kinds=long_form eval_samples=0"
    settings += " prompts_per_step=2 group_size=2 micro_batch=4 max_new_tokens=16 lora_r=4"
    words = f"train rlfh --bench small --policy {thinker} --out {out} --seed 3 --threads 2"
    given = [*words.split(), *judge]
    for setting in settings.split():
        given += ["--set", f"rlfh.{setting}"]
    code, _, err = cli(*given, "--json")
    assert code == 0, err
    assert "training against the local verifier" in err
    config = read_json(out / "config.json")
    assert (config.get("judge") or {}).get("model") == ("local" if judge else None)
    rows = list(iter_feedback(out))
    assert len(rows) == 4 and all(row.rewards["rlfh"].error is None for row in rows)
