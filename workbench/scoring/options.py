"""The options of `workbench score` and their validation, before any input is read."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.judge.address import LOCAL_FIRST, redacted
from workbench.runs.store import PASSAGES, QUESTIONS, check_folder
from workbench.types import WorkbenchError
from workbench.util.actors import Actors


@dataclass(frozen=True)
class Options:
    """The options of `workbench score`; `workbench score --help` describes each."""

    source: Path
    out: Path
    method: str = "all"
    judge: str | None = None  # "world", "local", a URL or "local+URL"; None: local
    model: str | None = None
    judge_option: Sequence[str] = ()  # "KEY=VALUE", fields of each request
    judge_tokens: int | None = None  # maximum length of a reply
    passages: Path | None = None
    store: str | None = None
    tokenizer: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # field -> column
    overrides: Sequence[str] = ()  # "method.field=value"
    max_failed: float = 0.2  # share of rows
    concurrency: int = 64  # judge calls at a time
    timeout: float | None = None  # seconds for one judge call; None: 60, or 600 on this machine
    cache: Path | None = None
    overwrite: bool = False
    in_doubt: bool = False  # rules decide outcomes; the endpoint decides those in doubt
    verifier: str | None = None  # model of the local judge instead of the packaged one
    api_key_env: str | None = None  # environment variable with the endpoint's key
    engine: str = "local"  # or "ray"
    actors: int | None = None  # number of Ray actors; None: one per CPU of this machine
    address: str | None = None  # HOST:PORT of a Ray cluster; None starts one here

    @property
    def ray(self) -> Actors:
        return Actors(self.actors or os.cpu_count() or 1, self.address)

    @property
    def exact(self) -> bool:
        return self.judge == "world"

    @property
    def remote(self) -> bool:
        return self.judge not in (None, "world", "local")

    @property
    def url(self) -> str:
        return str(self.judge).removeprefix(LOCAL_FIRST)

    @property
    def local_first(self) -> bool:
        return self.url != str(self.judge)

    @property
    def cache_path(self) -> Path:
        """The file of the judge's cache; by default NAME.judge.sqlite for output NAME.jsonl."""
        return self.cache or self.out.with_name(f"{self.out.stem}.judge.sqlite")


def check(options: Options) -> None:
    """Check the options, before anything is read or written.

    Raises:
        WorkbenchError: a value or a combination of options is invalid, or a file is missing.
    """
    for invalid, message in _problems(options):
        if invalid:
            raise WorkbenchError(message)
    if options.engine == "ray" and not options.remote:
        options.ray.check()
    check_folder(options.out.parent)


def _problems(options: Options) -> Iterator[tuple[object, str]]:
    """Yield (condition, message) for each possible problem; it exists if the condition is true."""
    source, out, passages, remote = options.source, options.out, options.passages, options.remote
    url = redacted(options.url) if remote else ""  # without a password
    yield not source.is_file(), f"no file '{source}': name the rows to score with --in FILE"
    yield (
        out.is_dir() or out.suffix != ".jsonl",
        f"'{out}' is not a .jsonl file: name one with --out FILE",
    )
    yield (
        out.resolve() == source.resolve(),
        "--in and --out are the same file: name another --out",
    )
    sidecars = [(out.parent / name).resolve() for name in (QUESTIONS, PASSAGES)]
    for option, file in (("--out", out), ("--in", source), ("--passages", passages)):
        yield (
            file and file.resolve() in sidecars,
            f"{option} {file}: the command writes a file of this name to the folder of --out; name"
            " another file, or an --out in another folder",
        )
    yield (
        remote and not options.url.startswith(("http://", "https://")),
        f"no judge '{url}': write world, local, or an address with http:// or https:// in front",
    )
    yield (
        remote and not options.model,
        f"--judge {url} needs the name of a model: add --judge-model NAME",
    )
    for option, value in (
        ("--judge-model", options.model),
        ("--judge-option", options.judge_option),
        ("--judge-tokens", options.judge_tokens),
        ("--api-key-env", options.api_key_env),
        ("--judge-in-doubt", options.in_doubt),
    ):
        yield (
            value and not remote,
            f"{option} needs an endpoint: name one with --judge URL, or leave out {option}",
        )
    yield (
        options.verifier and options.judge not in (None, "local") and not options.local_first,
        "--verifier is a model for --judge local: leave out --judge or --verifier",
    )
    yield (
        passages and options.store,
        "--passages and --store are both sources of evidence: choose one",
    )
    yield (
        passages and not passages.is_file(),
        f"no file '{passages}': name a JSONL, CSV or Parquet file of passages with --passages FILE",
    )
    yield (
        options.engine != "ray" and (options.actors, options.address) != (None, None),
        "--actors and --address are options of Ray: add --engine ray, or leave them out",
    )
