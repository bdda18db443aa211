"""Retrieve passages for a question, generate an answer, and judge its sentences."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench.experiments.answering.reader import MOST, reader_of
from workbench.experiments.answering.sources import Sources, closed_world, question_text, stored
from workbench.experiments.answering.support import Answer, supported
from workbench.methods.bench import bench, check_policy
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.policies.generate import Policy, generate
from workbench.policies.load import Engine, check_engine
from workbench.retrieval.index import ROOT, Mode
from workbench.types import WorkbenchError
from workbench.util.threads import use_threads
from workbench.verdicts.llm_judge import LLMJudge

NOTHING_FOUND = (
    "no passage shares a word with the question, so there is nothing to answer from and no answer"
    " was generated"
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
    """Answer a question from passages, and judge each sentence of the answer by these passages.

    Args:
        policy: a run's or a model's folder, or a hub name. "sft" and "base" are the checkpoints of
            the tiny policy (trained on the closed world) after and before fine-tuning. None for
            "sft".
        store: name or path of an index of passages; None for the closed world's pages.
        judge: language model that judges the sentences. If None, passages from the closed world are
            judged by its exact judge, and other passages by the local verifier, a small entailment
            model.
        k: maximum number of passages; None for 3 with the tiny policy, and 5 with others.
        mode: how to search the index: "text" (by words), "dense" (by vectors) or "hybrid" (both).
            None for "hybrid" if the index has vectors, else "text".
        threads: number of CPU threads; None for torch's current number.
        engine: what generates the answer: "hf" (transformers) or "vllm".
        root: folder of the indexes, in which `store` is looked up by name.

    Raises:
        WorkbenchError: the question is empty or too long, the policy or index does not exist, the
            index does not support the mode, or the judge returns no verdict.
    """
    text, tiny = question_text(question), bench("tiny")
    name = policy or tiny.policy
    path = tiny.path(name)
    check_engine(engine)
    check_policy(name, path)
    if k is not None and k < 1:
        raise WorkbenchError(f"k is {k}: it must be at least 1")
    if mode and store is None:
        raise WorkbenchError(
            f"--mode {mode} needs an index: name one with --store NAME, or leave out --mode"
        )
    sources = closed_world() if store is None else stored(store, mode, root)
    if judge:
        sources = replace(sources, checks=judge.checks, exact=False)
        judge.try_out()
    with use_threads(threads):
        return answer_from(sources, text, lambda: tiny.load(name, engine=engine), path, k)


def answer_from(
    sources: Sources, text: str, load: Callable[[], Policy], path: str, k: int | None = None
) -> Answer:
    """Answer a question from the passages that a source finds, and judge each sentence.

    If no passage is found, the result has no sentences, and the policy is not loaded.

    Args:
        sources: the source of passages, with the judge.
        text: the question.
        load: function that loads the policy.
        path: folder or hub name of the policy.
        k: maximum number of passages; None for the policy's default.
    """
    checks = sources.checks()
    # before the policy is loaded: without a passage there is nothing to answer from
    passages = sources.search([text], k or MOST)[0]
    if not passages:
        return Answer(text, notes=(NOTHING_FOUND,))
    reader = reader_of(path, load())
    prompt = reader.prompt(sources.question(text, checks), passages, k)
    responses = generate(reader.policy, [prompt], max_new_tokens=reader.new_tokens, greedy=True)
    [feedback] = assemble(checks, ["fact"], {}, ANSWER_SECTIONS)(responses)
    notes = []
    wanted = min(k or 0, len(passages))
    if len(prompt.passages) < wanted:
        notes.append(
            f"{len(prompt.passages)} of {wanted} passages were used: more do not fit the prompt"
        )
    if reader.small and sources.foreign:
        notes.append(
            "the tiny policy's vocabulary is the closed world's: name another policy with --policy"
            " to answer from this index"
        )
    return supported(feedback, notes)
