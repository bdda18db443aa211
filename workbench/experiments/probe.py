"""`workbench probe`: grade k samples of each question to find a policy's knowledge boundary.

Files in the folder of a probe:

config.json      all inputs
probe.jsonl      a row for each question, with the graded samples
summary.json     the result
"""

import re
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from workbench.experiments.evaluate import as_in_training, select
from workbench.methods.bench import Bench, check_policy
from workbench.methods.bench import bench as bench_of
from workbench.methods.method import chosen_questions
from workbench.methods.truthrl.probing import (
    Sampler,
    answers,
    local_sampler,
    outcomes,
    probe_questions,
    read_rows,
    samples_of,
)
from workbench.metrics.boundary import Sample, boundary_report
from workbench.policies.generate import Sampling
from workbench.policies.load import Engine, adapter_base, adapter_folder, check_engine, load_policy
from workbench.runs.folder import finished, lock, open_run, policy_hash, versions
from workbench.training.settings import Samples
from workbench.training.settings import Sampling as Settings
from workbench.types import (
    Failure,
    Grade,
    JsonMapping,
    JsonObject,
    Question,
    Response,
    WorkbenchError,
)
from workbench.util.actors import Actors, map_chunks
from workbench.util.config import check_values
from workbench.util.jsonl import json_digest, write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verdicts.llm_judge import NamedJudge

ROOT = Path("runs") / "probe"
# threads of an actor; they affect rounding and so are part of a probe's identity
ACTOR_THREADS = 1


def probe_policy(
    policy: str | None = None,
    split: str = "validation",
    bench: str | Bench = "tiny",
    *,
    k: int = 64,
    out: Path | None = None,
    root: Path = ROOT,
    temperature: float = 1.0,
    seed: int = 0,
    limit: int | None = None,
    kinds: Sequence[str] | None = None,
    threads: int | None = None,
    questions: str | Path | None = None,
    lang: str = "en",
    judge: NamedJudge | None = None,
    engine: Engine = "hf",
    actors: Actors | None = None,
) -> JsonObject:
    """Sample k answers to each question of a split, grade their outcomes and return a report.

    Questions without gold answers are left out. The same call continues an unfinished probe, and
    returns the stored result of a finished one.

    Args:
        policy: a checkpoint folder, a run folder, a hub name, or "sft" / "base" for
            the bench's own checkpoints; None for the bench's initial policy.
        split: name of the split ("validation", "test", "ood", …).
        bench: the bench, or its name.
        k: number of samples per question.
        out: folder of the probe; None for a folder in `root` with a hash of the inputs in its name.
            The hash does not cover `bench.checks`: after replacing them, name another folder.
        temperature: temperature of the samples.
        seed: seed of sampling, and of the choice of questions with `limit`.
        limit: number of questions, drawn at random; None for all questions.
        kinds: kinds of questions; None for the bench's default kinds. Only questions with gold
            answers are used.
        threads: number of CPU threads; None for 2, or for 1 with actors.
        questions: data set or question file for a bench without questions of its own.
        lang: language of the questions; "l2" is the second language of the tiny bench's world.
        judge: a judge that replaces the bench's judge.
        engine: "hf" (transformers) or "vllm"; with actors, only "hf".
        actors: Ray actors that sample, each with the policy on one CPU; None to sample in this
            process. The result is the same as without actors and with `threads=1`.

    Returns:
        The report of `metrics.boundary.boundary_report`, with the additional keys `policy`,
        `split`, `status` ("done" or "interrupted") and `out`.

    Raises:
        WorkbenchError: an argument is invalid, or the folder cannot be used. It is raised before
            any work starts.
        TooManyFailures: more than a fifth of the samples could not be graded.
    """
    chosen = bench_of(bench, questions).with_judge(judge)
    name = policy or chosen.policy
    if actors and threads not in (None, ACTOR_THREADS):
        raise WorkbenchError(
            f"--threads {threads}: each of the --actors has one thread; leave out --threads"
        )
    threads = threads or (ACTOR_THREADS if actors else DEFAULT_THREADS)
    if actors and engine != "hf":
        raise WorkbenchError(
            f"--engine {engine}: Ray actors generate by transformers only; leave out --engine or"
            " --actors"
        )
    check_engine(engine)
    path = chosen.path(name)
    check_policy(name, path)
    chosen = as_in_training(chosen, name)
    selected = select(chosen_questions(chosen, split, kinds, lang, answered=True), limit, seed)
    how = Sampling(chosen.longest(selected), samples=k, temperature=temperature, seed=seed)
    check_values(Samples(samples=k, sampling=Settings(temperature)))
    adapter = adapter_folder(Path(path))
    base = (chosen.base(name) or adapter_base(adapter)) if adapter else None
    identity = {
        "probe": asdict(how),
        "split": split,
        "kinds": sorted(kinds or ()),
        "lang": lang,
        "limit": limit,
        # left out by default, because older probes do not store it
        **({"engine": engine} if engine != "hf" else {}),
        "threads": threads,
        "policy": name,
        "bench": chosen.name,
        "world_hash": chosen.hash,
        "policy_hash": policy_hash(str(adapter or path)),
        "base_hash": policy_hash(base) if base else None,
        **chosen.judge_identity,
    }
    folder = out or root / _name(identity)
    chosen = chosen.with_cache_dir(folder)
    grade = outcomes(chosen.checks)  # raises if the checks have no outcome
    if actors and not finished(folder):
        actors.check()
    if chosen.named_judge and not finished(folder):
        chosen.named_judge.try_out()
    with lock(folder):
        summary = open_run(folder, identity, versions())
        if summary is not None:
            print(f"'{folder}' is finished: this is its stored result", file=sys.stderr)
            return {**summary, "out": str(folder)}
        status = "interrupted"
        with suppress(KeyboardInterrupt), use_threads(threads):
            if actors:
                sampler = _in_actors(actors, path, base, grade, how)
            else:
                sampler = local_sampler(chosen.load(name, engine=engine), grade, how)
            probe_questions(sampler, selected, folder, k, chosen.shown)
            status = "done"
        result = {
            **boundary_report(read_rows(folder, selected, k), k),
            "policy": name,
            "split": split,
            "status": status,
        }
        write_json(folder / "summary.json", result)
    return {**result, "out": str(folder)}


def _in_actors(actors: Actors, path: str, base: str | None, grade: Grade, how: Sampling) -> Sampler:
    """Return a sampler that answers questions in Ray actors, and grades them in this process."""
    policy, base = _place(path), base and _place(base)
    folders = [str(adapter_folder(Path(one)) or one) for one in (policy, base) if one]
    # only actors on other machines can have other files under the same path
    hashes = {folder: policy_hash(folder) for folder in folders} if actors.address else {}
    make = partial(_answering, policy, base, hashes, how)

    def sampler(chunks: Iterable[list[Question]]) -> Iterator[list[tuple[Sample, ...]]]:
        for answered in map_chunks(actors, make, _undecided, chunks):
            yield samples_of(grade, answered, how.samples)

    return sampler


def _place(name: str) -> str:
    """Return the absolute path of a folder, for actors on other machines.

    A hub name is returned unchanged.
    """
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def _answering(
    policy: str, base: str | None, hashes: Mapping[str, str | None], how: Sampling
) -> Callable[[list[Question]], list[list[Response] | Failure]]:
    """Load the policy in an actor, and return the function that answers a chunk of questions.

    `hashes` maps folders to the digests that they must have.
    """
    use_threads(ACTOR_THREADS).__enter__()  # for the lifetime of the actor
    for folder, expected in hashes.items():
        if policy_hash(folder) != expected:
            raise WorkbenchError(
                f"'{folder}' is missing or different on {socket.gethostname()}: copy it to every"
                " machine"
            )
    loaded = load_policy(policy, base=base, device="cpu")
    return lambda questions: answers(loaded, questions, how)


def _undecided(question: Question, failure: Failure) -> Failure:
    print(f"question '{question.id}' is undecided: {failure.message}", file=sys.stderr)
    return failure


def _name(identity: JsonMapping) -> str:
    """Return a probe's folder name: "POLICY-SPLIT-kK-DIGEST", with a digest of `identity`."""
    policy = re.sub(r"[^\w.-]+", "-", Path(identity["policy"]).name)[:40]
    return (
        f"{policy}-{identity['split']}-k{identity['probe']['samples']}-{json_digest(identity, 10)}"
    )
