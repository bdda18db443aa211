"""A question in, an answer with its sources out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench.experiments.answering.reader import MOST, reader_of
from workbench.experiments.answering.sources import Sources, closed_world, question_text, stored
from workbench.experiments.answering.support import Answer, supported
from workbench.methods.bench import bench, check_policy
from workbench.pipeline import SAID, assemble
from workbench.policies.generate import Policy, generate
from workbench.policies.load import Engine, check_engine
from workbench.retrieval.index import ROOT, Mode
from workbench.types import WorkbenchError
from workbench.util.threads import use_threads
from workbench.verdicts.llm_judge import LLMJudge

NOTHING_FOUND = (
    "no passage shares a word with the question: there is nothing to answer from, and the policy"
    " was not asked"
)


def answer(
    question: str,
    policy: str | None = None,
    store: str | None = None,
    *,
    judge: LLMJudge | None = None,
    k: int | None = None,
    mode: Mode | None = None,
    threads: int | None = None,
    engine: Engine = "hf",
    root: Path | str = ROOT,
) -> Answer:
    """Answer a question from passages, and judge every sentence of the answer by them.

    Args:
        policy: a run's or a model's folder, a hub name, or "sft" / "base"; by default the tiny
        policy.
        store: an index by name or path; by default the closed world's own pages.
        judge: a language model that judges in the place of the exact judge of the closed world,
        or of the local verifier.
        k: passages at most; by default as many as the policy has learnt to read, five for one
        that is not the tiny one.
        mode: how an index is searched; by default hybrid where it has vectors, else by words.
        engine: what generates, transformers (hf) or vllm.

    Raises:
        WorkbenchError: no question, or no such policy or index; an index that cannot be searched
        so; a judge that gives no
            verdict; a question that is too long for the policy.
    """
    asked, tiny = question_text(question), bench("tiny")
    name = policy or tiny.policy
    path = tiny.path(name)
    check_engine(engine)
    check_policy(name, path)
    if k is not None and k < 1:
        raise WorkbenchError(f"k is {k}: it must be at least 1")
    if mode and store is None:
        raise WorkbenchError(
            "--mode says how an index is searched: name one with --store NAME, or leave it out"
        )
    sources = closed_world() if store is None else stored(store, mode, root)
    if judge:
        sources = replace(sources, checks=judge.checks, exact=False)
        judge.try_out()
    with use_threads(threads):
        return answer_from(sources, asked, lambda: tiny.load(name, engine=engine), path, k)


def answer_from(
    sources: Sources, asked: str, load: Callable[[], Policy], path: str, k: int | None = None
) -> Answer:
    """The same, of sources that are open and a policy that `load` gives once there is something
    to answer from; `path` is its folder or its hub name."""
    checks = sources.checks()
    found = sources.search([asked], k or MOST)[0]
    if not found:
        return Answer(asked, notes=(NOTHING_FOUND,))
    reader = reader_of(path, load())
    shown = reader.shown(sources.asked(asked, checks), found, k)
    responses = generate(reader.policy, [shown], max_new_tokens=reader.new_tokens, greedy=True)
    [feedback] = assemble(checks, ["fact"], {}, SAID)(responses)
    notes = []
    wanted = min(k or 0, len(found))
    if len(shown.passages) < wanted:
        notes.append(
            f"{len(shown.passages)} of {wanted} passages were shown: the policy cannot read more at"
            " once"
        )
    if reader.small and sources.foreign:
        notes.append(
            "the tiny policy knows the closed world's words alone: name another one with --policy"
            " to answer from this index"
        )
    return supported(feedback, notes)
