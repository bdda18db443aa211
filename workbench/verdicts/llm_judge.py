"""The judge that `--judge` names: a language model behind a URL, the local verifier, or both.

A judge has checks, and an identity: the settings on which its verdicts depend.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from workbench.judge import BatchJudge, endpoint, fingerprint, render
from workbench.judge.address import LOCAL_FIRST, address, is_local, key_of, redacted
from workbench.judge.endpoint import request_fields
from workbench.retrieval import Search, open_index
from workbench.types import Checks, JsonMapping, JsonObject, Judge, WorkbenchError
from workbench.verdicts.checks import judge_checks, local_checks, local_first_checks
from workbench.verifier.named import choose_verifier

REPLIES = "judge.sqlite"  # default name of the cache, in the output's folder
TIMEOUT = 60.0  # seconds for one request
# seconds for one request to this machine: on a CPU a server computes a few requests at a time
LOCAL_TIMEOUT = 600.0
ANYWHERE = "anywhere"  # replaces the URL in the cache's keys, so that a server may move
TRIAL = {
    "question": "What is the capital of France?",
    "answers": ["Paris"],
    "response": "It is Paris.",
}


@dataclass(frozen=True)
class LLMJudge:
    """A language model on an OpenAI-compatible server, used as the judge.

    Attributes:
        url: URL of the server.
        model: name of the model on that server.
        store: name or folder of the index that finds passages for questions without passages; None:
            no index.
        cache: file of stored replies; None: replies are not stored. The keys contain the model and
            the prompt, but not the URL.
        options: extra fields of each request body, such as {"reasoning_effort": "low"}. A field
            with the value None is removed from the body.
        tokens: maximum number of tokens of a reply; None: 2048.
        first: the local judge that checks before the model (see `local_first_checks`); None to call
            the model for every check.
        key_env: environment variable with the server's API key; None for the default variables
            (see `key_of`).
        in_doubt: if True, rules decide whether a final answer is correct, and the model is called
            only if the rules are uncertain.
        concurrency: number of requests in flight; None: 64.
        timeout: seconds for one request; None: 60, or 600 for a server on this machine.
    """

    url: str = field(repr=False)  # may contain a password
    model: str
    store: str | None = None
    cache: Path | None = None
    options: JsonMapping = field(default_factory=dict)
    tokens: int | None = None
    first: "LocalJudge | None" = None
    key_env: str | None = None
    in_doubt: bool = False
    concurrency: int | None = None
    timeout: float | None = None

    def identity(self) -> JsonObject:
        """Return the settings on which the verdicts depend, as JSON values.

        The keys are "model", "prompts" (digest of the prompt templates), "store" (fields that
        identify the content of the index; None without an index) and, if set, "options", "first"
        and "outcomes" (of `in_doubt`). The URL is left out, because the same model may move to
        another server.

        Raises:
            WorkbenchError: the index does not exist or is not finished.
        """
        identity: JsonObject = {
            "model": self.model,
            "prompts": fingerprint(),
            "store": _contents(self.store),
        }
        if self.options:
            identity["options"] = self.options
        if self.first:
            identity["first"] = self.first.identity()
        if self.in_doubt:
            identity["outcomes"] = "in doubt"
        return identity

    @cached_property
    def ask(self) -> BatchJudge:
        """The judge as a function: it sends prompts to the model and returns one reply per prompt.

        The first reply creates the cache file, if `cache` is set.
        """
        limits: JsonObject = {} if self.concurrency is None else {"concurrency": self.concurrency}
        default = LOCAL_TIMEOUT if is_local(self.url) else TIMEOUT
        return endpoint(
            self.url,
            self.model,
            key=key_of(self.url, self.key_env),
            extra=self.options,
            max_new_tokens=self.tokens,
            cache=self.cache,
            cache_address=ANYWHERE,
            timeout=default if self.timeout is None else self.timeout,
            **limits,
        )

    def close_cache(self) -> None:
        """Close the cache file, so that sqlite deletes its -wal and -shm files.

        The next request opens the cache again.
        """
        if self.ask.cache:
            self.ask.cache.close()

    def checks(
        self, search: Search | None = None, evidence: bool = True, ask: Judge | None = None
    ) -> Checks:
        """Return the checks of this judge. No request is sent before a check is called.

        Args:
            search: finds passages for questions without passages; not used if `store` is set.
            evidence: True if there are passages to compare claims with, in the questions or in an
                index. If False, the check "fact" is left out.
            ask: replies to prompts in place of the model, as in a dry run; None: `self.ask`.
        """
        search, ask = _search(self.store, search), ask or self.ask
        if self.first:
            checks = local_first_checks(ask, search, self.first.verifier)
        else:
            checks = judge_checks(ask, search, self.in_doubt)
        return _with_facts(checks, evidence)

    def try_out(self) -> None:
        """Send one test question, to find a wrong URL or model before a long job starts.

        The cache is not used.

        Raises:
            WorkbenchError: there is no server, it refuses the request, or its reply cannot be
                parsed.
        """
        if self.first:
            self.first.try_out()
        # a cached reply would hide that the server does not respond
        [reply] = replace(self, cache=None).ask([render("outcome", **TRIAL)])
        if reply.error:
            raise WorkbenchError(
                f"the judge {self.model} at {redacted(self.url)} gives no verdict"
                f" ({reply.error.message}): start its server, or name another --judge URL or"
                " --judge-model NAME"
            )


@dataclass(frozen=True)
class LocalJudge:
    """The local verifier, a small entailment model, as the judge of claims.

    Rules extract the claims and check the final answers.

    Attributes:
        verifier: folder or hub name of the verifier (see `choose_verifier`); None: the shipped
            verifier.
        store: name or folder of the index that finds passages for questions without passages; None:
            no index.
    """

    verifier: str | None = None
    store: str | None = None

    def identity(self) -> JsonObject:
        """Return the settings on which the verdicts depend, as JSON values.

        The keys are "model" (always "local"), "verifier" (its name; None for the shipped one) and
        "store" (fields that identify the content of the index; None without an index).

        Raises:
            WorkbenchError: the index does not exist or is not finished.
        """
        return {"model": "local", "verifier": self.verifier, "store": _contents(self.store)}

    def checks(self, search: Search | None = None, evidence: bool = True) -> Checks:
        """Return the checks of the local verifier.

        Args:
            search: finds passages for questions without passages; not used if `store` is set.
            evidence: True if there are passages to compare claims with, in the questions or in an
                index. If False, the check "fact" is left out.
        """
        return _with_facts(local_checks(_search(self.store, search), self.verifier), evidence)

    def try_out(self) -> None:
        """Load the verifier once, to find a wrong name before a long job starts.

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
    key_env: str | None = None,
) -> NamedJudge | None:
    """Return the judge that the command-line options name, or None if `url` is None.

    Args:
        url: "local" for the local verifier, the URL of a server for a language model, or
            "local+URL" for the local verifier first, then the model.
        model: name of the model on the server.
        store: name or folder of the index that finds passages; None: no index.
        cache: file of stored replies of the model; None: replies are not stored.
        options: extra fields of each request, as "NAME=VALUE"; None: no extra fields.
        tokens: maximum number of tokens of a reply; None: 2048.
        verifier: folder or hub name of the local verifier; None: the shipped one.
        key_env: environment variable with the server's API key; None: the default variables.

    Raises:
        WorkbenchError: an option does not apply to this judge, or the URL is invalid.
    """
    if url != "local":
        judge = llm_judge(url, model, store, cache, options, tokens, key_env)
        if verifier is None:
            return judge
        if judge and judge.first:
            return replace(judge, first=LocalJudge(verifier))
        raise WorkbenchError(
            f"--verifier {verifier} needs --judge local or local+URL: add --judge local, or leave"
            " out --verifier"
        )
    if model or cache or options or tokens:
        raise WorkbenchError(
            "--judge local sends no requests: leave out --judge-model, --judge-cache,"
            " --judge-option and --judge-tokens, or name a server with --judge URL"
        )
    return LocalJudge(verifier, store)


def llm_judge(
    url: str | None,
    model: str | None,
    store: str | None = None,
    cache: Path | str | None = None,
    options: Sequence[str] | None = None,
    tokens: int | None = None,
    key_env: str | None = None,
) -> LLMJudge | None:
    """Return the language model that the command-line options name, or None if `url` is None.

    If the URL begins with "local+", the local verifier checks claims before the model. The
    arguments are the same as in `named_judge`, except that the URL "local" is invalid.

    Raises:
        WorkbenchError: the URL is invalid, the model's name is missing, or an option is given
            without a URL.
    """
    if url is None:
        others = {"model": model, "cache": cache, "option": options, "tokens": tokens}
        given = {"--store": store, **{f"--judge-{name}": value for name, value in others.items()}}
        if unused := [option for option, value in given.items() if value]:
            raise WorkbenchError(
                f"{unused[0]} needs a judge at a URL: add --judge URL, or leave out {unused[0]}"
            )
        return None
    first = LocalJudge() if url.startswith(LOCAL_FIRST) else None
    url = url.removeprefix(LOCAL_FIRST)
    address(url, key_of(url, key_env))
    if not model:
        raise WorkbenchError(
            f"--judge {redacted(url)} needs the name of a model on that server: add --judge-model"
            " NAME"
        )
    fields = request_fields(options or ())
    path = Path(cache) if cache else None
    return LLMJudge(url, model, store, path, fields, tokens, first, key_env)


def _contents(store: str | None) -> JsonObject | None:
    """Return the fields of an index that identify its content; None if `store` is None."""
    if store is None:
        return None
    card = open_index(store).card
    return {
        "fingerprint": card["source"]["fingerprint"],
        **{name: card[name] for name in ("words", "encoder", "passages")},
    }
