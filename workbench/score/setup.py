"""From the options of `workbench score` to what they take: methods, judge, evidence and tokens."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench import judge as judges
from workbench.actors.cluster import RAY, check_address
from workbench.checks import Checks, judge_checks, local_checks, world_checks
from workbench.credit.tokens import Offsets, encode, words
from workbench.disk import check_space
from workbench.grade import SECTIONS
from workbench.hub import from_disk_or_hub
from workbench.judge import BatchJudge
from workbench.judge.address import shown
from workbench.judge.key import key_of
from workbench.judge.shared import Shared
from workbench.knowledge import Search
from workbench.recipes import METHODS, checks_needed, method_configs, reward_fns, sections_read
from workbench.recipes.method import reward_settings
from workbench.score.rows import Tokenize
from workbench.score.run import CHUNK, Plan
from workbench.score.survey import Survey
from workbench.store import PASSAGES, QUESTIONS, check_folder
from workbench.types import Judge, WorkbenchError
from workbench.world import load_world

# of surrogate pairs: a cut text may hold one, and no tokenizer takes it
_HALVES = re.compile("[\ud800-\udfff]")
WITHOUT_METHOD = ("fact", "outcome", "checklist")  # what is checked where no reward is asked for


@dataclass(frozen=True)
class Options:
    """What `workbench score` is told; its help says what each option means."""

    source: Path
    out: Path
    method: str = "all"
    judge: str | None = None
    model: str | None = None
    passages: Path | None = None
    store: str | None = None
    tokenizer: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[str] = ()
    max_failed: float = 0.2
    concurrency: int = 64
    timeout: float = 60.0
    cache: Path | None = None
    price: tuple[float, float] | None = None  # of a million tokens in and out
    overwrite: bool = False
    in_doubt: bool = False  # rules decide outcomes, and the endpoint those that they doubt
    verifier: str | None = None  # another than the one shipped, where no judge is named
    api_key_env: str | None = None  # the environment variable that holds the endpoint's key
    engine: str = "local"  # or "ray"
    actors: int | None = None  # of Ray; None: as many as this machine has CPUs
    address: str | None = None  # of a Ray cluster; None: one is started here

    @property
    def at_a_time(self) -> int:
        """How many of Ray's actors score at a time."""
        return self.actors or os.cpu_count() or 1

    @property
    def exact(self) -> bool:
        return self.judge == "world"

    @property
    def shown(self) -> str:
        """The judge as messages name it, without a password."""
        return shown(str(self.judge))

    @property
    def remote(self) -> bool:
        return self.judge not in (None, "world", "local")


def check(options: Options) -> None:
    """Raise a WorkbenchError for options that cannot work together."""
    if not options.source.is_file():
        raise WorkbenchError(f"no file '{options.source}': name the rows to score with --in FILE")
    if options.out.is_dir() or options.out.suffix != ".jsonl":
        raise WorkbenchError(f"'{options.out}' is not a .jsonl file: name one with --out FILE")
    if options.out.resolve() == options.source.resolve():
        raise WorkbenchError("--in and --out are the same file: name another --out")
    _check_places(options)
    if options.remote and not str(options.judge).startswith(("http://", "https://")):
        raise WorkbenchError(
            f"no judge '{options.shown}': write world, local, or the http address of an endpoint"
        )
    if options.remote and not options.model:
        raise WorkbenchError(
            f"--judge {options.shown} needs the name of a model there: --model NAME"
        )
    if options.model and not options.remote:
        raise WorkbenchError(
            "--model names a model of an endpoint: name the endpoint with --judge URL, or leave"
            " it out"
        )
    if options.api_key_env and not options.remote:
        raise WorkbenchError(
            "--api-key-env names the key of an endpoint: name the endpoint with --judge URL, or"
            " leave it out"
        )
    if options.in_doubt and not options.remote:
        raise WorkbenchError(
            "--judge-in-doubt asks an endpoint where rules doubt: name one with --judge URL, or"
            " leave it out"
        )
    if options.verifier and options.judge not in (None, "local"):
        raise WorkbenchError(
            "--verifier names the model of the judge local: leave out --judge, or the verifier"
        )
    if options.passages and options.store:
        raise WorkbenchError(
            "--passages and --store both say where evidence comes from: choose one"
        )
    if options.passages and not options.passages.is_file():
        raise WorkbenchError(
            f"no file '{options.passages}': name a JSONL or Parquet file of passages with"
            " --passages FILE"
        )
    _check_engine(options)
    check_folder(options.out.parent)


def _check_engine(options: Options) -> None:
    """Raise a WorkbenchError for an engine that is not there, or for settings of one that is not
    asked for.
    """
    if options.engine not in ("local", "ray"):
        raise WorkbenchError(f"no engine '{options.engine}': write local or ray")
    if options.engine != "ray" and (options.actors is not None or options.address is not None):
        raise WorkbenchError(
            "--actors and --address are those of Ray: ask for it with --engine ray, or leave"
            " them out"
        )
    if options.actors is not None and options.actors < 1:
        raise WorkbenchError(f"--actors has to be at least 1, not {options.actors}")
    check_address(options.address)
    if options.engine == "ray" and importlib.util.find_spec("ray") is None:
        raise WorkbenchError(f"--engine ray {RAY}; or leave it out")


def _check_places(options: Options) -> None:
    """Raise a WorkbenchError where a file that is written beside the output is one of the
    user's, or the output itself.
    """
    for name in (QUESTIONS, PASSAGES):
        sidecar = (options.out.parent / name).resolve()
        if options.out.resolve() == sidecar:
            raise WorkbenchError(
                f"--out cannot be called {name}: that file is written beside it; choose another"
                " name"
            )
        for option, file in (("--in", options.source), ("--passages", options.passages)):
            if file and file.resolve() == sidecar:
                raise WorkbenchError(
                    f"{option} {file} would be written to: a {name} is kept beside --out; name an"
                    " --out in another folder"
                )


def check_output_space(options: Options) -> None:
    """Raise a WorkbenchError where not even the responses, which every output repeats, would
    find room.
    """
    existing = options.out.stat().st_size if options.out.exists() and not options.overwrite else 0
    check_space(
        options.out.parent,
        max(0, options.source.stat().st_size - existing),
        "name an --out on another disk",
    )


def methods(options: Options) -> dict[str, Any]:
    """The configs of the methods to pay: one, all, or none."""
    if options.method == "none":
        if options.overrides:
            raise WorkbenchError(
                f"--set {options.overrides[0]} has no method to set: name one with --method"
            )
        return {}
    return method_configs(
        METHODS if options.method == "all" else (options.method,), options.overrides
    )


def able(
    configs: Mapping[str, Any], checks: Checks, everything: bool
) -> tuple[dict[str, Any], tuple[str, ...], dict[str, list[str]]]:
    """The methods that the judge can serve, the checks that they need, and the methods left out
    with what they lack.

    A method is left out only where all are asked for.

    Raises:
        WorkbenchError: the method that was asked for needs a check that the judge has not.
    """
    if not configs:
        return {}, tuple(name for name in WITHOUT_METHOD if name in checks.verify), {}
    have = {*checks.verify, *(["single_pass"] if checks.single_pass else [])}
    lacking = {
        name: missing
        for name in configs
        if (missing := set(checks_needed({name: configs[name]})) - have)
    }
    if lacking and (not everything or len(lacking) == len(configs)):
        name, missing = next(iter(lacking.items()))
        raise WorkbenchError(
            f"this judge cannot do what {name} needs ({', '.join(sorted(missing))}): name an"
            " endpoint with --judge URL, or another --method"
        )
    served = {name: config for name, config in configs.items() if name not in lacking}
    return (
        served,
        checks_needed(served),
        {name: sorted(missing) for name, missing in lacking.items()},
    )


def tokenizer(name: str | None) -> Tokenize | None:
    """How responses are split into tokens: into words, or by the tokenizer of a model.

    Raises:
        WorkbenchError: there is no such tokenizer, or it does not say where its tokens stand.
    """
    if name is None:
        return None
    if name == "words":
        return lambda text: ((), words(text), "words")
    folder = Path(name).expanduser()
    if problem := _no_tokenizer(name, folder):
        raise WorkbenchError(
            f"cannot load the tokenizer '{name}': {problem}; name a model's folder or hub name, or"
            " words"
        )
    from transformers import AutoTokenizer

    try:
        loaded = from_disk_or_hub(
            AutoTokenizer.from_pretrained, str(folder) if folder.is_dir() else name
        )
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise WorkbenchError(
            f"cannot load the tokenizer '{name}': {reason}; name a model's folder or hub name, or"
            " words"
        ) from error
    encode(loaded, "a")

    def split(text: str) -> tuple[tuple[int, ...], Offsets, str]:
        return *encode(loaded, _HALVES.sub("\ufffd", text)), "encoded"

    return split


def _no_tokenizer(name: str, folder: Path) -> str | None:
    """Why a name is certainly none of a tokenizer, without a library or the network being asked."""
    if not folder.is_dir():
        return "no such folder" if name.startswith((".", "/", "~")) else None
    if any(folder.glob("token*")) or any(folder.glob("vocab*")):
        return None
    under = sorted(str(path.parent) for path in folder.glob("*/tokenizer.json"))
    return (
        f"there is none in that folder, but in {' and '.join(under)}"
        if under
        else "there is none in that folder"
    )


def workers(options: Options, survey: Survey) -> int:
    """How many ask a judge at the same time: of Ray's actors all that may; else two chunks where
    there are more than one and a judge is waited for."""
    if options.engine == "ray":
        return min(options.at_a_time, options.concurrency) if options.remote else options.at_a_time
    return 2 if options.remote and survey.judged > CHUNK and options.concurrency > 1 else 1


def checks_of(options: Options, search: Search | None = None, judge: Judge | None = None) -> Checks:
    """What the judge that is asked for can do; `judge` is the endpoint's, where it is one."""
    if options.exact:
        return world_checks(load_world())
    if not options.remote:
        return local_checks(search, options.verifier)
    assert judge is not None
    return judge_checks(judge, search, in_doubt=options.in_doubt)


def plan(
    options: Options, configs: Mapping[str, Any], checks: Checks
) -> tuple[dict[str, Any], Plan]:
    """The configs of the methods that the judge can serve, and how rows are scored by it. Raises
    as `able` does.
    """
    served, needed, left_out = able(configs, checks, options.method == "all")
    sections = sections_read(served) if served else SECTIONS
    return served, Plan(
        reward_fns(served), needed=needed, sections=sections, checks=checks, left_out=left_out
    )


def endpoint(options: Options, share: int = 1) -> BatchJudge:
    """The endpoint's model as a judge, with its cache; for `share` threads, which ask at the
    same time.
    """
    judge = judges.endpoint(
        str(options.judge),
        str(options.model),
        key=key_of(str(options.judge), options.api_key_env),
        concurrency=max(1, options.concurrency // share),
        timeout=options.timeout,
        cache=cache_path(options),
    )
    if options.overwrite and judge.cache and len(judge.cache):
        _tell_what_is_kept(judge, cache_path(options))
    return judge


def _tell_what_is_kept(judge: BatchJudge, file: Path) -> None:
    """To overwrite rows is not to ask again: say so before a judge is paid, or is not asked
    where it was meant to be.
    """
    print(
        f"workbench: --overwrite: replies of this judge ({judge.name} at"
        f" {judge.sampling['endpoint']}) kept in '{file}' are used again, and only the others are"
        " asked for; delete it to ask anew",
        file=sys.stderr,
    )


def cache_path(options: Options) -> Path:
    """Where the judge's replies are kept: what `--cache` names or, beside the output NAME.jsonl,
    NAME.judge.sqlite.
    """
    return options.cache or options.out.with_name(f"{options.out.stem}.judge.sqlite")


def close(judge: BatchJudge, shared: Shared, options: Options, new: bool) -> None:
    """Ask nothing more, and close the cache; a `new` one that holds no reply is not left behind."""
    shared.close()
    if judge.cache:
        unused = new and not len(judge.cache)
        judge.cache.close()
        if unused:
            cache_path(options).unlink(missing_ok=True)


def check_evidence(survey: Survey, needed: Sequence[str], options: Options) -> None:
    """Raise a WorkbenchError where claims are to be verified and no row has anything to verify
    them against.
    """
    verified = "fact" in needed and "single_pass" not in needed and not options.exact
    if verified and survey.bare == survey.judged and not (options.passages or options.store):
        raise WorkbenchError(
            'claims are verified against passages, and there are none: give the rows "passages", or'
            " name --passages FILE or --store NAME"
        )


def identity(options: Options, configs: Mapping[str, Any], asked: bool) -> dict[str, Any]:
    """What an output depends on, beside its input: to go on with other settings is refused."""
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
        if options.verifier:
            settings["verifier"] = options.verifier
        if options.in_doubt:
            settings["outcomes"] = "in doubt"
        settings["passages"] = _digest(options.passages) if options.passages else None
    return settings


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
