"""The judge of a bench that a command names: a language model behind a URL, or the local verifier.

Each has an identity, evidence and, for the model, a reply cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from workbench.judge import BatchJudge, endpoint, fingerprint, render
from workbench.judge.address import address, key_of, redacted
from workbench.judge.endpoint import request_fields
from workbench.retrieval import Search, open_index
from workbench.types import Checks, JsonMapping, JsonObject, WorkbenchError
from workbench.verdicts.checks import judge_checks, local_checks
from workbench.verifier.named import choose_verifier

REPLIES = "judge.sqlite"  # default name of the cache, in the output's folder
ANYWHERE = "anywhere"  # address in the cache's keys: model and prompts identify the judge
TRIAL = {
    "question": "What is the capital of France?",
    "answers": ["Paris"],
    "response": "It is Paris.",
}


@dataclass(frozen=True)
class LLMJudge:
    """A model of an OpenAI-compatible endpoint.

    Attributes:
        url: address of the endpoint.
        model: name of the model there.
        store: name or folder of the index that finds passages for questions without passages.
        cache: file of replies, by model and prompt but not by address.
        options: fields of each request; None removes one.
        tokens: maximum length of a reply.
    """

    url: str = field(repr=False)  # may contain a password
    model: str
    store: str | None = None
    cache: Path | None = None
    options: JsonMapping = field(default_factory=dict)
    tokens: int | None = None

    def identity(self) -> JsonObject:
        """Return everything that the verdicts depend on, but not the address: a server may move.

        Raises:
            WorkbenchError: the index does not exist or is not finished.
        """
        identity = {"model": self.model, "prompts": fingerprint(), "store": _contents(self.store)}
        return {**identity, "options": self.options} if self.options else identity

    @cached_property
    def ask(self) -> BatchJudge:
        """A function from prompts to replies; no file is made before the first reply."""
        return endpoint(
            self.url,
            self.model,
            key=key_of(self.url),
            extra=self.options,
            max_new_tokens=self.tokens,
            cache=self.cache,
            cache_address=ANYWHERE,
        )

    def close_cache(self) -> None:
        """Close the cache until the next call: sqlite deletes its -wal and -shm files."""
        if self.ask.cache:
            self.ask.cache.close()

    def checks(self, search: Search | None = None, evidence: bool = True) -> Checks:
        """Return the model's checks; no request is sent before a check is called.

        Args:
            search: finds evidence if there is no `store`.
            evidence: False leaves out "fact", for questions without passages and no index.
        """
        return _with_facts(judge_checks(self.ask, _search(self.store, search)), evidence)

    def try_out(self) -> None:
        """Send one question, before a long job; its reply is not cached.

        Raises:
            WorkbenchError: there is no server, it refuses, or its reply is unreadable.
        """
        [reply] = replace(self, cache=None).ask([render("outcome", **TRIAL)])
        if reply.error:
            raise WorkbenchError(
                f"the judge {self.model} at {redacted(self.url)} gives no verdict"
                f" ({reply.error.message}): start its server, or name another --judge URL or"
                " --judge-model NAME"
            )


@dataclass(frozen=True)
class LocalJudge:
    """The local verifier as a bench's judge: rules find claims and outcomes.

    Attributes:
        verifier: see `choose_verifier`; None is the shipped one.
        store: name or folder of the index that finds passages for questions without passages.
    """

    verifier: str | None = None
    store: str | None = None

    def identity(self) -> JsonObject:
        """Return everything that the verdicts depend on."""
        return {"model": "local", "verifier": self.verifier, "store": _contents(self.store)}

    def checks(self, search: Search | None = None, evidence: bool = True) -> Checks:
        """Return the verifier's checks; see `LLMJudge.checks`."""
        return _with_facts(local_checks(_search(self.store, search), self.verifier), evidence)

    def try_out(self) -> None:
        """Load the verifier, before a long job.

        Raises:
            WorkbenchError: there is no such verifier.
        """
        choose_verifier(self.verifier)


NamedJudge = LLMJudge | LocalJudge


def _with_facts(checks: Checks, evidence: bool) -> Checks:
    verify = {name: one for name, one in checks.verify.items() if evidence or name != "fact"}
    return replace(checks, verify=verify)


def _search(store: str | None, search: Search | None) -> Search | None:
    return open_index(store).search if store else search


def named_judge(
    url: str | None,
    model: str | None = None,
    store: str | None = None,
    cache: Path | str | None = None,
    options: Sequence[str] | None = None,
    tokens: int | None = None,
    verifier: str | None = None,
) -> NamedJudge | None:
    """Return the judge that the options name: `llm_judge`, or with "local" the local verifier.

    Raises:
        WorkbenchError: as `llm_judge`.
    """
    if url != "local":
        if verifier:
            raise WorkbenchError(
                "--verifier is a model for --judge local: add --judge local, or leave it out"
            )
        return llm_judge(url, model, store, cache, options, tokens)
    if model or cache or options or tokens:
        raise WorkbenchError(
            "--judge local has no endpoint: leave out --judge-model, --judge-cache, --judge-option"
            " and --judge-tokens"
        )
    return LocalJudge(verifier, store)


def llm_judge(
    url: str | None,
    model: str | None,
    store: str | None = None,
    cache: Path | str | None = None,
    options: Sequence[str] | None = None,
    tokens: int | None = None,
) -> LLMJudge | None:
    """Return the judge that the options name; None without a URL.

    Raises:
        WorkbenchError: the options cannot work together, or the address is invalid.
    """
    if url is None:
        others = {"model": model, "cache": cache, "option": options, "tokens": tokens}
        given = {"--store": store, **{f"--judge-{name}": value for name, value in others.items()}}
        if unused := [option for option, value in given.items() if value]:
            raise WorkbenchError(
                f"{unused[0]} is about a judge at a URL: add --judge URL, or leave out {unused[0]}"
            )
        return None
    address(url, key_of(url))
    if not model:
        raise WorkbenchError(
            f"--judge {redacted(url)} needs the name of a model there: --judge-model NAME"
        )
    fields = request_fields(options or ())
    return LLMJudge(url, model, store, Path(cache) if cache else None, fields, tokens)


def _contents(store: str | None) -> JsonObject | None:
    """Return the fields that identify an index, independent of its folder."""
    if store is None:
        return None
    card = open_index(store).card
    return {
        "fingerprint": card["source"]["fingerprint"],
        **{name: card[name] for name in ("words", "encoder", "passages")},
    }
