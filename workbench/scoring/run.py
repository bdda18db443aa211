"""Score a file of responses: read its rows, judge them, compute rewards and write the output.

An interrupted scoring continues after the last row of its output.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from workbench.judge import BatchJudge
from workbench.judge.address import LOCAL_FIRST
from workbench.methods import reward_fns
from workbench.methods.method import Configs, reward_settings
from workbench.runs.folder import file_digest, lock
from workbench.runs.store import PASSAGES, QUESTIONS, Store, stored_keys
from workbench.scoring.options import Options, check
from workbench.scoring.output import Tally, claim, resume
from workbench.scoring.plan import (
    Plan,
    configs_of,
    evidence,
    local_or_world_checks,
    plan,
    score_in_actor,
    tokenizer,
)
from workbench.scoring.rows import Item, Reader, Survey
from workbench.types import Cost, JsonMapping, JsonObject, Judge, WorkbenchError
from workbench.util.actors import map_chunks
from workbench.util.disk import check_space
from workbench.util.failures import too_many
from workbench.util.jsonl import remove_new_folders_on_error
from workbench.verdicts.llm_judge import LLMJudge, named_judge

# Most responses, and about the most characters, that are judged and written together. A long
# response fills a chunk alone, so that it does not delay the others.
CHUNK, CHUNK_CHARACTERS = 128, 100_000
MIN_ROWS = 20  # rows before the share of failures can stop a scoring

# called after each chunk with the totals so far, the number of rows, and the cost of the endpoint
Watch = Callable[[Tally, int, Cost | None], None]
Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Job:
    """A file to score, with the reader of its rows and the functions that score them.

    `settings` are stored with the output. A later call continues the output only with the same
    settings.
    """

    options: Options
    reader: Reader
    survey: Survey
    plan: Plan
    settings: JsonMapping
    judge: BatchJudge | None = None


def score_file(options: Options, watch: Watch = lambda *_: None) -> JsonObject:
    """Score the rows of a file; return the summary that `workbench score --json` prints.

    An output with the same settings is continued, and its failed rows are scored again. With the
    option `overwrite`, it is replaced. The summary's `status` is one of these:

    * "done"
    * "interrupted"
    * "too_many_failures": more than the share `max_failed` of the rows failed or got no reward

    Args:
        options: the options of `workbench score`.
        watch: called after each chunk of rows, for example to update a progress bar.

    Raises:
        WorkbenchError: the options or the input are invalid, or the input file changed during the
            call.
    """
    check(options)
    start, out, cache = time.perf_counter(), options.out, options.cache_path
    with remove_new_folders_on_error(cache.parent), lock(out.parent), ExitStack() as closing:
        # the output repeats the responses, so it needs at least their space
        existing = out.stat().st_size if out.exists() and not options.overwrite else 0
        needed = max(0, options.source.stat().st_size - existing)
        check_space(out.parent, needed, "name an --out on another disk")
        job = prepare(options, closing)
        claim(out, job.settings, options.overwrite)
        survey, tally, remaining = job.survey, Tally(list(job.plan.rewards)), dict(job.survey.ids)
        earlier = resume(out, remaining, tally)
        status = _write(job, tally, remaining, watch)
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
        "seconds": round(time.perf_counter() - start, 2),
        "cache": str(cache) if options.remote and cache.exists() else None,
    }


def prepare(options: Options, closing: ExitStack, counter: Judge | None = None) -> Job:
    """Load all that is needed to score a file, count its rows, and return the `Job`.

    Args:
        options: the options of `workbench score`.
        closing: when it exits, the judge's connections and cache are closed.
        counter: the judge of a dry run, used instead of a language model. None: no dry run.

    Raises:
        WorkbenchError: the input has no readable row, or there are no passages to verify its claims
            against.
    """
    configs = configs_of(options)
    world = local_or_world_checks(options.judge) if options.exact else None
    reader = Reader(
        options.source,
        options.columns,
        tokenizer(options.tokenizer),
        world.recognise if world else None,
        stored_keys(options.out.parent, QUESTIONS),
    )
    survey = reader.survey()
    if not survey.ids and survey.problems:
        line, problem = survey.problems[0]
        raise WorkbenchError(f"{options.source}:{line}: {problem}; no row can be scored")
    if not survey.ids:
        raise WorkbenchError(
            f"{options.source}: the file is empty: name one with rows of questions and responses"
            " with --in FILE"
        )
    # rows that all have verdicts need no judge, and a dry run loads no local verifier
    if not survey.judged or (counter and not options.remote and not options.exact):
        settings = _settings(options, configs, bool(survey.judged))
        return Job(options, reader, survey, Plan(reward_fns(configs)), settings)
    search, judge = None if world else evidence(options), None
    if options.remote:
        model = _llm_judge(options, survey, counter is not None)
        if counter is None:
            judge = model.ask
            closing.callback(judge.close)
        checks = model.checks(search, ask=counter)
    else:
        checks = world or local_or_world_checks(options.judge, search, options.verifier)
    served, made = plan(configs, checks, options.method == "all")
    # every row would fail, so raise before the first request
    no_passages = survey.without_passages == survey.judged and search is None and world is None
    if no_passages and "fact" in made.needed and "single_pass" not in made.needed:
        raise WorkbenchError(
            'claims are verified against passages, but the rows have no "passages": add them to the'
            " rows, or name --passages FILE or --store NAME"
        )
    settings = _settings(options, served, True)
    return Job(options, reader, survey, made, settings, judge)


def _write(job: Job, tally: Tally, remaining: dict[str, int], watch: Watch) -> str:
    """Score the remaining rows and append them to the output; return the summary's `status`."""
    options, status = job.options, "interrupted"

    def show_progress() -> None:
        watch(tally, len(job.survey.ids), job.judge.totals if job.judge else None)

    show_progress()
    chunks = in_chunks(job.reader.items(remaining))
    if options.engine == "ray" and not options.remote:
        known = stored_keys(options.out.parent, PASSAGES)
        load = partial(score_in_actor, options, job.plan.checks is not None, known)
        batches = map_chunks(options.ray, load, job.plan.failed, chunks)
    else:
        batches = as_completed(job.plan.score, chunks, _threads(options, job.survey))

    def failing() -> bool:
        return too_many(tally.failed + tally.unscored, tally.rows, options.max_failed)

    # after Ctrl-C, `status` keeps its first value, and the summary is still returned
    with Store(options.out) as store, suppress(KeyboardInterrupt):
        for items in batches:
            rows = store.append([item.feedback for item in items])
            for row, item in zip(rows, items, strict=True):
                tally.add(row, judged=not item.replay)
            show_progress()
            # not earlier: one failure among the first few rows is a large share
            if tally.rows >= MIN_ROWS and failing():
                break
        status = "too_many_failures" if failing() else "done"
    if status == "done" and remaining:
        raise WorkbenchError(
            f"'{options.source}' was changed while it was scored: run the same command again"
        )
    return status


def _threads(options: Options, survey: Survey) -> int:
    """Return the number of threads: 2 if an endpoint judges several chunks, else 1.

    With two threads, the endpoint works on one chunk while the other is prepared or stored.
    """
    several = survey.judged > CHUNK or options.source.stat().st_size > 2 * CHUNK_CHARACTERS
    return 2 if options.remote and several and options.concurrency > 1 else 1


def _llm_judge(options: Options, survey: Survey, dry: bool) -> LLMJudge:
    """Return the language model that `--judge` names, with the limits that the options set.

    A dry run (`dry`) needs no API key.
    """
    judge = named_judge(
        options.judge,
        options.model,
        None,  # `evidence` searches the store
        options.cache_path,
        options.judge_option,
        options.judge_tokens,
        options.verifier,
        None if dry else options.api_key_env,
    )
    assert isinstance(judge, LLMJudge), options.judge
    if options.engine == "ray" and not dry:
        print(
            "workbench: --engine ray: rows are scored in this process, because an endpoint does the"
            " work; --concurrency sets the number of simultaneous calls",
            file=sys.stderr,
        )
    return replace(
        judge,
        in_doubt=options.in_doubt,
        concurrency=max(1, options.concurrency // _threads(options, survey)),
        timeout=options.timeout,
    )


def _settings(options: Options, configs: Configs, judged: bool) -> JsonObject:
    """Return the settings that determine the output for given input rows, as JSON."""
    settings: JsonObject = {
        "method": options.method,
        "config": {name: reward_settings(config) for name, config in configs.items()},
        "tokenizer": options.tokenizer,
        "columns": dict(options.columns),
    }
    if judged:
        # without the address: a server may move
        judge = "endpoint" if options.remote else options.judge or "local"
        judge = LOCAL_FIRST + judge if options.local_first else judge
        settings |= {"judge": judge, "model": options.model, "store": options.store}
        settings |= {"verifier": options.verifier} if options.verifier else {}
        settings |= {"outcomes": "in doubt"} if options.in_doubt else {}
        # without the maximum length of a reply, which a repeated command may increase
        chosen = sorted(options.judge_option)
        settings |= {"judge_options": chosen} if chosen else {}
        settings["passages"] = None
        if options.passages:
            settings["passages"] = file_digest(options.passages)[:16]
    return settings


def in_chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield the items in lists of at most 128 (`CHUNK`) items and about 100,000 characters."""
    chunk: list[Item] = []
    characters = 0
    for item in items:
        size = len(item.response.text)
        if chunk and (len(chunk) == CHUNK or characters + size > CHUNK_CHARACTERS):
            yield chunk
            chunk, characters = [], 0
        chunk.append(item)
        characters += size
    if chunk:
        yield chunk


def as_completed(
    work: Callable[[Piece], Result], pieces: Iterable[Piece], workers: int
) -> Iterator[Result]:
    """Apply `work` to pieces in up to `workers` threads; yield each result as soon as it is ready.

    An exception in a thread is raised here.
    """
    if workers <= 1:
        yield from map(work, pieces)
        return

    def run(future: Future[Result], piece: Piece) -> None:
        try:
            future.set_result(work(piece))
        except BaseException as error:  # without a result, `wait` would never return
            future.set_exception(error)

    def finished() -> Iterator[Result]:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        running.difference_update(done)
        yield from (future.result() for future in done)

    running: set[Future[Result]] = set()
    for piece in pieces:
        future: Future[Result] = Future()
        running.add(future)
        # a daemon, so that an interrupted process can exit
        threading.Thread(target=run, args=(future, piece), daemon=True).start()
        if len(running) == workers:
            yield from finished()
    while running:
        yield from finished()


@contextmanager
def progress_bar() -> Iterator[Watch]:
    """Show a progress bar on stderr, and yield the function that updates it (see `Watch`).

    The bar shows the numbers of rows, failures, calls and tokens. If stderr is not a terminal, only
    the final state is shown.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("rows", MofNCompleteColumn(), "{task.fields[counts]}", TimeRemainingColumn())
    display = Progress(*columns, console=Console(stderr=True))

    def watch(tally: Tally, total: int, cost: Cost | None) -> None:
        counts = f"{tally.failed} failed"
        if cost:
            counts += f" · {cost.calls:,} calls, {cost.cached:,} cached,"
            counts += f" {(cost.tokens_in + cost.tokens_out) / 1000:,.0f}k tokens"
        if not display.tasks:  # not earlier: an error would leave an empty line
            display.add_task("rows", total=total, counts=counts)
            display.start()
        display.update(display.task_ids[0], completed=tally.rows, counts=counts)

    try:
        yield watch
    finally:
        if display.tasks:
            display.stop()
