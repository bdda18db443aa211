"""A language model behind a URL as the judge of a bench: what identifies it, its evidence, and
where its replies are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.judge import BatchJudge, endpoint, fingerprint, render
from workbench.judge.address import address, key_of, shown
from workbench.retrieval import open_index
from workbench.types import Checks, WorkbenchError
from workbench.verdicts.checks import judge_checks

# in the folder of what a judge was asked for, unless it was told another file
REPLIES = "judge.sqlite"
# the replies' address: as for a run's identity, the model and the prompts tell judges apart
ANYWHERE = "anywhere"
TRIAL = {
    "question": "What is the capital of France?",
    "answers": ["Paris"],
    "response": "It is Paris.",
}


@dataclass(frozen=True)
class LLMJudge:
    """A model of an OpenAI-compatible endpoint; `store` is the index that claims find passages
    in, by name or folder, where a question brings none; `cache` the file that keeps its replies,
    by model and prompt, wherever the model is served."""

    url: str = field(repr=False)  # it may hold a password
    model: str
    store: str | None = None
    cache: Path | None = None

    def identity(self) -> dict[str, Any]:
        """What its verdicts depend on. The address is no part of that: a server may come back at
        another one.

        Raises:
            WorkbenchError: there is no such index, or it is not finished.
        """
        return {"model": self.model, "prompts": fingerprint(), "store": _contents(self.store)}

    @property
    def ask(self) -> BatchJudge:
        """The model itself: prompts to replies. No file is made before the first reply."""
        key = key_of(self.url)
        return endpoint(self.url, self.model, key=key, cache=self.cache, kept_as=ANYWHERE)

    def checks(self, evidence: bool = True) -> Checks:
        """What it can do. Without `evidence`, passages of the questions or an index, it cannot
        tell facts.

        Nothing is asked and no file is made before the first reply is wanted.
        """
        search = open_index(self.store).search if self.store else None
        checks = judge_checks(self.ask, search)
        if evidence:
            return checks
        verify = {name: check for name, check in checks.verify.items() if name != "fact"}
        return replace(checks, verify=verify)

    def try_out(self) -> None:
        """Ask one question, before anything long is begun; its reply is not kept.

        Raises:
            WorkbenchError: there is no server, it refuses, or its reply cannot be read.
        """
        [reply] = replace(self, cache=None).ask([render("outcome", **TRIAL)])  # type: ignore[arg-type]
        if reply.error:
            raise WorkbenchError(
                f"the judge {self.model} at {shown(self.url)} gives no verdict"
                f" ({reply.error.message}): start its server, or name another --judge URL or"
                " --judge-model NAME"
            )


def llm_judge(
    url: str | None, model: str | None, store: str | None = None, cache: Path | str | None = None
) -> LLMJudge | None:
    """The judge that options ask for; None where they ask for none.

    Raises:
        WorkbenchError: options that cannot work together, or an address that is none.
    """
    if url is None:
        others = {"--judge-model": model, "--store": store, "--judge-cache": cache}
        if given := [option for option, value in others.items() if value is not None]:
            raise WorkbenchError(
                f"{given[0]} is about a judge at a URL: name one with --judge URL, or leave it out"
            )
        return None
    if not url.startswith(("http://", "https://")):
        raise WorkbenchError(f"no judge '{shown(url)}': write the http address of an endpoint")
    if not model:
        raise WorkbenchError(
            f"--judge {shown(url)} needs the name of a model there: --judge-model NAME"
        )
    address(url, key_of(url))
    return LLMJudge(url, model, store, None if cache is None else Path(cache))


def _contents(store: str | None) -> dict[str, Any] | None:
    """What an index holds, wherever it lies."""
    if store is None:
        return None
    card = open_index(store).card
    return {
        "fingerprint": card["source"]["fingerprint"],
        **{name: card[name] for name in ("words", "encoder", "passages")},
    }
