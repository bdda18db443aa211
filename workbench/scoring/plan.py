"""Create what the options of `workbench score` name: checks, rewards, search and tokenizer.

The Python function `workbench.score` uses the same code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.credit.tokens import encode
from workbench.data.files import open_rows
from workbench.data.record import passage, passage_id
from workbench.methods import METHODS, checks_needed, method_configs, reward_fns, sections_read
from workbench.methods.method import Configs, MethodConfig
from workbench.pipeline import SECTIONS, assemble, rescore
from workbench.retrieval import Search, from_passages, open_index
from workbench.runs.store import PASSAGES, passage_key, stored_keys
from workbench.scoring.options import Options
from workbench.scoring.rows import Item, Tokenize, split_words
from workbench.types import (
    Checks,
    Failure,
    Grade,
    Passage,
    RewardFn,
    WorkbenchError,
)
from workbench.util.hub import from_disk_or_hub, panics_as_errors
from workbench.verdicts.checks import local_checks, world_checks
from workbench.world import load_world

WITHOUT_METHOD = ("fact", "outcome", "checklist")  # checks of `--method none`


@dataclass(frozen=True)
class Plan:
    """The judge and the reward functions that score rows.

    Attributes:
        rewards: method -> reward function.
        needed: names of the judge's checks that the rewards need, such as "fact" and "outcome". A
            check is a function from responses to verdicts.
        sections: sections of a response ("think", "answer", "body") whose claims are checked.
        checks: the judge's functions: claim extractor and checks; None if no row needs a judge.
        left_out: method that cannot be scored -> names of the checks that the judge lacks for it.
    """

    rewards: Mapping[str, RewardFn]
    needed: Sequence[str] = ()
    sections: frozenset[str] = SECTIONS
    checks: Checks | None = None
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def grade(self) -> Grade:
        """Return the function that extracts, verifies and rewards a batch of responses."""
        assert self.checks is not None, "a row without verdicts needs a judge"
        return assemble(
            self.checks,
            self.needed,
            self.rewards,
            self.sections,
            # without rewards, the outcome of a row without gold answers is not a failure
            gold_optional=not self.rewards,
        )

    def score(self, items: list[Item]) -> list[Item]:
        """Return the output rows for input rows, in order.

        Rows without verdicts are judged first, in one batch.
        """
        responses = [item.response for item in items if not item.replay]
        graded = iter(self.grade()(responses) if responses else ())
        scored = []
        for item in items:
            if item.replay:
                feedback = rescore(item.feedback, self.rewards)
            else:  # an imported row keeps its logged rewards
                feedback = next(graded)
                rewards = {**item.feedback.rewards, **feedback.rewards}
                feedback = replace(feedback, rewards=rewards)
            scored.append(replace(item, feedback=feedback))
        return scored

    def failed(self, item: Item, failure: Failure) -> Item:
        """Return the output row, with `failure`, for an input row whose worker process died.

        The next run scores the input row again.
        """
        feedback = replace(item.feedback, error=failure)
        return replace(item, feedback=rescore(feedback, self.rewards))


def configs_of(options: Options) -> dict[str, MethodConfig]:
    """Return method -> config for the methods that the option `--method` names; {} for "none"."""
    if options.method != "none":
        return named_configs(options.method, options.overrides)
    if options.overrides:
        raise WorkbenchError(f"--set {options.overrides[0]} needs a method: name one with --method")
    return {}


def named_configs(method: str | Sequence[str], overrides: Sequence[str]) -> dict[str, MethodConfig]:
    """Return method -> config for one method, for several, or for all ("all").

    `overrides` are changes of settings, such as "rlfh.alpha=2".
    """
    names = METHODS if method == "all" else (method,) if isinstance(method, str) else method
    return method_configs(names, overrides)


def local_or_world_checks(
    judge: str | None, search: Search | None = None, verifier: str | None = None
) -> Checks:
    """Return the closed world's checks if `judge` is "world", else those of the local verifier.

    Args:
        search: finds passages for questions without passages; None: no search.
        verifier: name of the local verifier; None: the one in the package.
    """
    return world_checks(load_world()) if judge == "world" else local_checks(search, verifier)


def plan(configs: Configs, checks: Checks, optional: bool) -> tuple[dict[str, MethodConfig], Plan]:
    """Select the methods for which the judge has all checks, and plan how to score rows.

    Return (method -> config of the selected methods, `Plan`).

    Args:
        configs: method -> config; if empty, rows get verdicts but no rewards.
        checks: the judge. The keys of `checks.verify`, such as "fact", name its checks.
        optional: True leaves out methods that need a check the judge lacks; False raises an error.

    Raises:
        WorkbenchError: the judge lacks a check that a method needs, and `optional` is False or all
            methods would be left out.
    """
    if not configs:
        needed = tuple(name for name in WITHOUT_METHOD if name in checks.verify)
        return {}, Plan({}, needed, checks=checks)
    able = {*checks.verify, *(["single_pass"] if checks.single_pass else [])}
    missing = {name: sorted({*checks_needed({name: configs[name]})} - able) for name in configs}
    left_out = {name: names for name, names in missing.items() if names}
    # raise if the user named the method, or if all methods would be left out
    if left_out and (not optional or len(left_out) == len(configs)):
        name, names = next(iter(left_out.items()))
        raise WorkbenchError(
            f"this judge has no check {', '.join(names)}, which {name} needs; it has"
            f" {', '.join(sorted(able))}: name an endpoint with --judge URL, or another --method"
        )
    served = {name: config for name, config in configs.items() if name not in left_out}
    needed, sections = checks_needed(served), sections_read(served)
    return served, Plan(reward_fns(served), needed, sections, checks, left_out)


def score_in_actor(
    options: Options, judged: bool, known: dict[str, str]
) -> Callable[[list[Item]], list[Item]]:
    """Load the judge in this process, a Ray actor; return `Plan.score`, which scores rows.

    Args:
        options: the options of `workbench score`.
        judged: whether to load the judge; False if all rows have verdicts.
        known: id -> hash (`passage_key`) of each passage stored with the output. A search result
            gets a new id if a different passage has its id.
    """
    configs = configs_of(options)
    if not judged:
        return Plan(reward_fns(configs)).score
    search = None if options.exact else evidence(options, known)
    checks = local_or_world_checks(options.judge, search, options.verifier)
    return plan(configs, checks, options.method == "all")[1].score


def evidence(options: Options, known: dict[str, str] | None = None) -> Search | None:
    """Return a search over the passages of `--store` or `--passages`; None without these options.

    Args:
        options: the options of `workbench score`.
        known: id -> hash (`passage_key`) of each passage stored with the output; None: read them
            from the output's folder. A search result gets a new id if a different passage in
            `known` has its id.

    Raises:
        WorkbenchError: the file of passages is empty or has an unreadable row.
    """
    if known is None:
        known = stored_keys(options.out.parent, PASSAGES)
    if options.store:
        return _with_unique_ids(open_index(options.store).search, known)
    if not (path := options.passages):
        return None
    passages = []
    for number, row in open_rows(path)[1]:
        try:
            if isinstance(row, str):
                raise ValueError(row)
            parsed = passage(row)
        except ValueError as problem:
            raise WorkbenchError(
                f"{path}:{number}: {problem}; correct or remove that line"
            ) from problem
        passages.append(replace(parsed, id=str(row.get("id") or parsed.id)))
    if not passages:
        raise WorkbenchError(f"'{path}' has no passages: write rows such as {{\"text\": …}} to it")
    return _with_unique_ids(from_passages(passages).search, known)


def _with_unique_ids(search: Search, known: dict[str, str]) -> Search:
    """Return a search whose passages get a new id if a different passage is stored under theirs.

    Args:
        search: the search that finds the passages.
        known: id of each passage stored with the output -> hash of its content (`passage_key`).
    """

    def unique(hit: Passage) -> Passage:
        # the file of passages may change between two calls
        key = passage_key(hit)
        if known.setdefault(hit.id, key) == key:
            return hit
        digest = passage_id(hit.title, hit.text)
        return replace(hit, id=f"{hit.id}-{digest}" if hit.id else digest)

    def run(
        queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]:
        return [list(map(unique, hits)) for hits in search(queries, k, titles=titles)]

    return run


def tokenizer(name: str | None) -> Tokenize | None:
    """Return the function that splits responses into tokens; None if `name` is None.

    `name` is "words", or the hub name or folder of a model, whose tokenizer is loaded.

    Raises:
        WorkbenchError: the tokenizer cannot be loaded, or returns no offsets.
    """
    if name is None or name == "words":
        return split_words if name else None
    folder = Path(name).expanduser()
    try:
        if not folder.is_dir() and name.startswith((".", "/", "~")):
            raise OSError("no such folder")
        from transformers import AutoTokenizer

        path = str(folder) if folder.is_dir() else name
        with panics_as_errors(name):
            loaded = from_disk_or_hub(AutoTokenizer.from_pretrained, path)
    except WorkbenchError:
        raise
    except Exception as error:  # tokenizers raises its own types
        reason = str(error).partition("\n")[0]
        raise WorkbenchError(
            f"cannot load the tokenizer '{name}': {reason}; name a model's folder or hub name, or"
            " write words"
        ) from error
    encode(loaded, "a")  # raises for a tokenizer without offsets, before any row is read
    return lambda text: (*encode(loaded, text), "encoded")
