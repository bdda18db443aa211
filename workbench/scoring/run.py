"""Score a file of responses: read rows, run the pipeline, write rows; resumable."""

from __future__ import annotations

import hashlib
import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from workbench.judge import BatchJudge, Totals, endpoint
from workbench.judge.address import key_of
from workbench.methods import reward_fns
from workbench.methods.method import reward_settings
from workbench.runs.folder import lock
from workbench.runs.store import Store, stored_questions
from workbench.scoring.evidence import Evidence, evidence
from workbench.scoring.options import Options, check
from workbench.scoring.output import Tally, claim, resume
from workbench.scoring.pipeline import Plan, Scored, checks_of, in_actor, methods, plan
from workbench.scoring.rows import Item, Reader, Survey, tokenizer
from workbench.types import Judge, WorkbenchError
from workbench.util.actors import map_chunks
from workbench.util.disk import check_space
from workbench.util.failures import too_many
from workbench.util.jsonl import taken_back

CHUNK = 128  # responses that are judged, and written, together
ENOUGH = 20  # rows after which the share of failures can stop a scoring

# called after each chunk with the totals so far, the number of rows, and the judge's counters
Watch = Callable[[Tally, int, "Totals | None"], None]
Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Job:
    """A surveyed file and how its rows are scored. `settings` identify the output."""

    options: Options
    reader: Reader
    survey: Survey
    plan: Plan
    settings: Mapping[str, Any]
    judge: BatchJudge | None = None
    search: Evidence | None = None

    def scored(self, chunks: Iterable[list[Item]]) -> Iterator[Scored]:
        """Chunks of rows scored, in order: in threads of this process, or in Ray's actors."""
        if self.options.engine == "ray" and not self.options.remote:
            judged, known = self.plan.checks is not None, self.search.known if self.search else {}
            make = partial(in_actor, self.options, judged, known)
            return map_chunks(self.options.ray, make, self.plan.lost, chunks)
        return ahead(self.plan.score, chunks, _threads(self.options, self.survey))


def score_file(options: Options, watch: Watch = lambda *_: None) -> dict[str, Any]:
    """Score the rows of a file into feedback rows; returns the summary, as `workbench score
    --json` prints it.

    What `out` already has is kept, if it was begun with the same settings; rows that failed are
    tried again. `status` is "done", "interrupted", or "too_many_failures": more than
    `max_failed` of the rows so far failed, or lack what the rewards look at.

    Raises:
        WorkbenchError: before anything is asked or written, for options or an input that cannot
        work.
    """
    check(options)
    began, out = time.perf_counter(), options.out
    with taken_back(options.cache_path.parent), lock(out.parent), ExitStack() as closing:
        # not even the responses, which the output repeats, may fit
        existing = out.stat().st_size if out.exists() and not options.overwrite else 0
        needed = max(0, options.source.stat().st_size - existing)
        check_space(out.parent, needed, "name an --out on another disk")
        job = prepare(options, closing)
        claim(out, job.settings, options.overwrite)
        survey, tally = job.survey, Tally(list(job.plan.rewards))
        remaining = dict(survey.ids)
        earlier = resume(out, remaining, tally)
        status = _write(job, tally, remaining, watch)
    cache = options.cache_path
    return {
        "status": status,
        "out": str(out),
        **tally.summary(),
        "left_out": dict(job.plan.left_out),
        "earlier": earlier,
        "malformed": survey.malformed,
        "duplicates": survey.duplicates,
        "problems": [{"line": line, "problem": problem} for line, problem in survey.problems],
        "cost": dict(tally.cost),
        "seconds": round(time.perf_counter() - began, 2),
        "cache": str(cache) if options.remote and cache.exists() else None,
    }


def _write(job: Job, tally: Tally, remaining: dict[str, int], watch: Watch) -> str:
    """Score the remaining rows and append them to the output; returns the status."""
    options, status = job.options, "interrupted"
    shown = len(job.survey.ids), job.judge.totals if job.judge else None

    def stopped() -> bool:
        return too_many(tally.failed + tally.unscored, tally.rows, options.max_failed)

    watch(tally, *shown)
    items = job.reader.items(remaining)
    chunks = iter(lambda: list(itertools.islice(items, CHUNK)), [])
    with Store(options.out) as store, suppress(KeyboardInterrupt):
        for rows in job.scored(chunks):
            stored = store.append([row for row, _ in rows])
            for row, (_, judged) in zip(stored, rows, strict=True):
                tally.add(row, judged)
            watch(tally, *shown)
            if tally.rows >= ENOUGH and stopped():
                break
        status = "too_many_failures" if stopped() else "done"
    if status == "done" and remaining:
        raise WorkbenchError(
            f"'{options.source}' has changed since it was begun: run the same command again"
        )
    return status


def prepare(options: Options, closing: ExitStack, counter: Judge | None = None) -> Job:
    """Survey the input and make what scores it; with a `counter` in the place of the endpoint,
    nothing is asked and nothing is written. What has to be closed is left to `closing`.
    """
    configs = methods(options)
    world = checks_of(options) if options.exact else None
    recognise = world.recognise if world else None
    known, tokenize = stored_questions(options.out.parent), tokenizer(options.tokenizer)
    reader = Reader(options.source, options.columns, tokenize, recognise, known)
    survey = reader.survey()
    if not survey.ids:
        raise WorkbenchError(_nothing_to_score(options, survey))
    local = not options.remote and not options.exact
    if not survey.judged or (counter and local):
        settings = _identity(options, configs, bool(survey.judged))
        return Job(options, reader, survey, Plan(reward_fns(configs)), settings)
    search, judge = None if world else evidence(options), None
    if options.remote and counter is None:
        judge = _endpoint(options, survey, closing)
    checks = world or checks_of(options, search, counter or judge)
    served, made = plan(options, configs, checks)
    bare = survey.bare == survey.judged and search is None and world is None
    if bare and "fact" in made.needed and "single_pass" not in made.needed:
        raise WorkbenchError(
            'claims are verified against passages, and there are none: give the rows "passages", or'
            " name --passages FILE or --store NAME"
        )
    settings = _identity(options, served, True)
    return Job(options, reader, survey, made, settings, judge, search)


def _nothing_to_score(options: Options, survey: Survey) -> str:
    """Why no row of a file can be scored; the remedy names columns only where there are some."""
    if not survey.problems:
        return (
            f"{options.source}: the file is empty: name one with rows of questions and responses"
            " with --in FILE"
        )
    line, problem = survey.problems[0]
    remedy = "" if problem.startswith("not ") else ": --map response=COLUMN names columns"
    return f"{options.source}:{line}: {problem}; no row can be scored{remedy}"


def _threads(options: Options, survey: Survey) -> int:
    """Two chunks at a time where a judge is waited for, so that it is not idle between chunks."""
    return 2 if options.remote and survey.judged > CHUNK and options.concurrency > 1 else 1


def _endpoint(options: Options, survey: Survey, closing: ExitStack) -> BatchJudge:
    """The endpoint's model as a judge, with its cache."""
    url = str(options.judge)
    judge = endpoint(
        url,
        str(options.model),
        key=key_of(url, options.api_key_env),
        concurrency=max(1, options.concurrency // _threads(options, survey)),
        timeout=options.timeout,
        cache=options.cache_path,
    )
    closing.callback(judge.close)
    if options.engine == "ray":
        print(
            "workbench: --engine ray: rows are scored in this process, since an endpoint is waited"
            " for and not computed; --concurrency sets the calls in flight",
            file=sys.stderr,
        )
    return judge


def _identity(options: Options, configs: Mapping[str, Any], asked: bool) -> dict[str, Any]:
    """What an output depends on besides its input: with other settings it is not continued."""
    settings: dict[str, Any] = {
        "method": options.method,
        "config": {name: reward_settings(config) for name, config in configs.items()},
        "tokenizer": options.tokenizer,
        "columns": dict(options.columns),
    }
    if asked:
        # a server may come back at another address
        judge = "endpoint" if options.remote else options.judge or "local"
        settings |= {"judge": judge, "model": options.model, "store": options.store}
        settings |= {"verifier": options.verifier} if options.verifier else {}
        settings |= {"outcomes": "in doubt"} if options.in_doubt else {}
        settings["passages"] = None
        if options.passages:
            with options.passages.open("rb") as file:
                settings["passages"] = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return settings


def ahead(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], workers: int
) -> Iterator[Result]:
    """`map(work, pieces)` with up to `workers` pieces at a time, each in a thread; the order stays.

    An exception is raised where its result would stand. The threads do not keep an interrupted
    process alive, as those of an executor would.
    """
    if workers <= 1:
        yield from map(work, pieces)
        return

    def run(future: Future[Result], piece: Piece) -> None:
        try:
            future.set_result(work(piece))
        except BaseException as error:
            future.set_exception(error)

    running: deque[Future[Result]] = deque()
    for piece in pieces:
        running.append(Future())
        threading.Thread(target=run, args=(running[-1], piece), daemon=True).start()
        if len(running) >= workers:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()
