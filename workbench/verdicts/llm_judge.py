"""A language model behind a URL as the judge of a bench: identity, evidence and reply cache."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from workbench.judge import BatchJudge, endpoint, fingerprint, render
from workbench.judge.address import address, key_of, redacted
from workbench.retrieval import open_index
from workbench.types import Checks, JsonObject, WorkbenchError
from workbench.verdicts.checks import judge_checks

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
    """

    url: str = field(repr=False)  # may contain a password
    model: str
    store: str | None = None
    cache: Path | None = None

    def identity(self) -> JsonObject:
        """Return everything that the verdicts depend on, but not the address: a server may move.

        Raises:
            WorkbenchError: the index does not exist or is not finished.
        """
        return {"model": self.model, "prompts": fingerprint(), "store": _contents(self.store)}

    @cached_property
    def ask(self) -> BatchJudge:
        """A function from prompts to replies; no file is made before the first reply."""
        key = key_of(self.url)
        return endpoint(self.url, self.model, key=key, cache=self.cache, cache_address=ANYWHERE)

    def close_cache(self) -> None:
        """Close the cache until the next call: sqlite deletes its -wal and -shm files."""
        if self.ask.cache:
            self.ask.cache.close()

    def checks(self, evidence: bool = True) -> Checks:
        """Return the model's checks; no request is sent before a check is called.

        Args:
            evidence: False leaves out "fact", for questions without passages and no index.
        """
        search = open_index(self.store).search if self.store else None
        checks = judge_checks(self.ask, search)
        if evidence:
            return checks
        verify = {name: check for name, check in checks.verify.items() if name != "fact"}
        return replace(checks, verify=verify)

    def try_out(self) -> None:
        """Send one question, before a long job; its reply is not cached.

        Raises:
            WorkbenchError: there is no server, it refuses, or its reply is unreadable.
        """
        [reply] = replace(self, cache=None).ask([render("outcome", **TRIAL)])  # type: ignore[arg-type]
        if reply.error:
            raise WorkbenchError(
                f"the judge {self.model} at {redacted(self.url)} gives no verdict"
                f" ({reply.error.message}): start its server, or name another --judge URL or"
                " --judge-model NAME"
            )


def llm_judge(
    url: str | None, model: str | None, store: str | None = None, cache: Path | str | None = None
) -> LLMJudge | None:
    """Return the judge that the options name; None without a URL.

    Raises:
        WorkbenchError: the options cannot work together, or the address is invalid.
    """
    if url is None:
        others = {"--judge-model": model, "--store": store, "--judge-cache": cache}
        if unused := [option for option, value in others.items() if value is not None]:
            raise WorkbenchError(
                f"{unused[0]} is about a judge at a URL: add --judge URL, or leave out {unused[0]}"
            )
        return None
    if not url.startswith(("http://", "https://")):
        raise WorkbenchError(f"no judge '{redacted(url)}': write the http address of an endpoint")
    if not model:
        raise WorkbenchError(
            f"--judge {redacted(url)} needs the name of a model there: --judge-model NAME"
        )
    address(url, key_of(url))
    return LLMJudge(url, model, store, None if cache is None else Path(cache))


def _contents(store: str | None) -> JsonObject | None:
    """Return the fields that identify an index, independent of its folder."""
    if store is None:
        return None
    card = open_index(store).card
    return {
        "fingerprint": card["source"]["fingerprint"],
        **{name: card[name] for name in ("words", "encoder", "passages")},
    }
