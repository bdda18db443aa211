"""Judges behind an OpenAI-compatible server: many requests at a time, with retries and a budget."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workbench.judge.address import Address, address
from workbench.judge.batch import Arrived, BatchJudge, Totals, call_failure
from workbench.judge.cache import Cache
from workbench.judge.http import CONNECTING, Answer, read_response, unreachable
from workbench.judge.wire import Form, checked_reply, in_form
from workbench.judge.workers import run_in_thread, run_workers
from workbench.types import Cost, Failure, Prompt, Reply, WorkbenchError

CONCURRENCY = 64  # requests in flight
EARLY = 2  # retries before any server was reached: then it is more likely absent than busy
JITTER = random.Random()  # not the global generator, which trainings seed
STRIKES = 3  # prompts in a row that a server may fail before the rest of a batch is not sent
# kinds of failure that say something about the server and not about the prompt
SERVER_KINDS = ("timeout", "connection", "server", "rate_limit", "auth", "not_found")


def endpoint(
    url: str,
    model: str,
    *,
    concurrency: int = CONCURRENCY,
    timeout: float = 60.0,
    retries: int = 5,
    reasks: int = 1,
    backoff: float = 0.5,
    longest_wait: float = 60.0,
    temperature: float = 0.0,
    max_new_tokens: int = 2048,
    seed: int | None = None,
    extra: Mapping[str, Any] | None = None,
    key: str | None = None,
    form: Form = "json",
    cache: Path | str | None = None,
    kept_as: str | None = None,
) -> BatchJudge:
    """A judge behind an OpenAI-compatible chat-completions server. Works from plain code,
    notebooks and several threads.

    Args:
        url: the server, as `http://host:port`, with or without `/v1`; or its address up to
            `/chat/completions`. A user and password in it (`https://user:password@host`) are
            sent and shown nowhere.
        concurrency: requests in flight. A request that waits for its retry counts.
        timeout: seconds for one request.
        retries: how often a prompt is sent again after status 408, 409, 429 or 5xx, a timeout, a
            lost connection, or a body without a reply; after `backoff` seconds, then twice as
            many, …, each with jitter; or after what the server asks for in Retry-After; never
            more than `longest_wait`. At most twice while no server has been reached at all.
        reasks: how often a prompt is sent again because its reply is not what was asked for
            (`workbench.judge.read`).
        extra: fields added to each request's body; a None removes one (`{"max_tokens": None,
            "max_completion_tokens": 500}`).
        key: sent as bearer token, over https or to this machine alone. It is not read from a
            file or the environment.
        form: "line" for a judge that cannot write JSON; see `workbench.judge.read`.
        cache: a file that stores readable replies as they arrive, so that the same prompt, asked
            again, makes no call. They are stored by model, task, prompt and sampling, and by the
            server's address, since two servers may give two models one name.
        kept_as: replaces the address there, for a server that may come back at another one.

    A failure of stage "judge" has one of the kinds timeout, connection, server, rate_limit,
    auth, not_found, refused (any other status), broken (a body without a reply), empty,
    truncated, cache (nothing is sent once a reply cannot be stored), stopped; stage
    "parse" is an unreadable reply. The rest of a batch is not sent if the server fails three
    prompts through all retries before it has answered any (one is enough if it refuses the key,
    has no such address, is not there or cannot be trusted), or three more than `concurrency` in
    a row later on.

    Raises:
        WorkbenchError: an argument that cannot work, or a file that is not a cache of ours;
            before anything is sent.
    """
    for name, value, least in (
        ("concurrency", concurrency, 1),
        ("retries", retries, 0),
        ("reasks", reasks, 0),
    ):
        if value < least:
            raise WorkbenchError(f"{name} has to be at least {least}, not {value}")
    if timeout <= 0:
        raise WorkbenchError(f"timeout is in seconds and above 0, not {timeout}")
    if not model:
        raise WorkbenchError(
            "an endpoint needs the name of a model: the server's /v1/models lists them"
        )
    body = {"temperature": temperature, "max_tokens": max_new_tokens, "seed": seed, **(extra or {})}
    body = {name: value for name, value in body.items() if value is not None}
    totals, where = Totals(), address(url, key)
    client = _Client(
        where,
        {"model": model, **body},
        totals=totals,
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        reasks=reasks,
        backoff=backoff,
        longest_wait=longest_wait,
        form=form,
    )
    body.pop("model", None)
    sampling = {**body, "form": form, "endpoint": kept_as or where.url}
    return BatchJudge(model, client.send, sampling, totals, Cache(cache) if cache else None)


@dataclass
class _Client:
    """The settings of an endpoint. `reached`: the server has ever responded; `missing`: it was
    not there when last given up.
    """

    address: Address
    body: Mapping[str, Any]
    totals: Totals
    concurrency: int
    timeout: float
    retries: int
    reasks: int
    backoff: float
    longest_wait: float
    form: Form
    reached: bool = False
    missing: bool = False

    def send(self, prompts: Sequence[Prompt], arrived: Arrived) -> None:
        # raises here, before anything is sent
        prepared = [in_form(prompt, self.form) for prompt in prompts]
        run_in_thread(lambda: _Batch(self, prompts, prepared, arrived).run())

    def allowed(self, answer: Answer, retried: int, reasked: int) -> bool:
        """Whether a prompt may be sent again after this answer."""
        if answer.again == "reask":
            return reasked < self.reasks
        limit = self.retries
        if answer.absent and not self.reached:
            limit = 0 if self.missing else min(EARLY, self.retries)
        return answer.again == "retry" and retried < limit

    def pause(self, answer: Answer, retried: int) -> float:
        """Seconds before a retry: what the server asked for, else exponential, with jitter."""
        jitter = JITTER.random()
        wait = self.backoff * 2**retried * (0.5 + jitter / 2)
        if answer.wait is not None:
            wait = answer.wait * (1 + 0.1 * jitter)
        return 0.0 if answer.again == "reask" else min(wait, self.longest_wait)


@dataclass
class _Batch:
    """One call of the judge. `strikes` counts the prompts in a row that the server failed;
    `given_up` is why the rest is not sent.
    """

    client: _Client
    prompts: Sequence[Prompt]
    prepared: Sequence[Prompt]
    arrived: Arrived
    answered: bool = False
    strikes: int = 0
    given_up: Failure | None = None
    session: Any = field(default=None, repr=False)

    async def run(self) -> None:
        import aiohttp

        client, waiting = self.client, iter(range(len(self.prompts)))

        async def work() -> None:
            for index in waiting:
                self.arrived(index, await self._ask(index))

        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=client.concurrency),
            timeout=aiohttp.ClientTimeout(
                total=client.timeout, sock_connect=min(client.timeout, CONNECTING)
            ),
            headers=client.address.headers,
        ) as self.session:
            await run_workers(work, min(client.concurrency, len(self.prompts)))

    async def _ask(self, index: int) -> Reply:
        """Send one prompt until it has a reply or no retry is left."""
        client, cost, retried, reasked = self.client, Cost(), 0, 0
        while True:
            if failure := self.given_up or self._unstored():
                return Reply(None, failure, cost)
            client.totals.add(calls=1, retries=cost.calls > 0)
            answer = await self._send(index)
            cost += answer.cost
            if answer.failure is None:
                return Reply(answer.text, cost=cost)
            if not client.allowed(answer, retried, reasked):
                self._strike(answer, answer.failure)
                return Reply(None, answer.failure, cost)
            again = answer.again == "reask"
            await asyncio.sleep(client.pause(answer, retried))
            reasked, retried = reasked + again, retried + (not again)

    def _unstored(self) -> Failure | None:
        """Why nothing more is sent, once a reply could not be stored."""
        if file := self.client.totals.unstored:
            return call_failure(
                "cache",
                f"not sent, since its reply could not be kept in '{file}': free some space, or name"
                " another",
            )
        return None

    async def _send(self, index: int) -> Answer:
        """Send one request, count it, and read its reply strictly."""
        import aiohttp

        client, prompt, url = self.client, self.prepared[index], self.client.address.url
        body = {**client.body, "messages": [{"role": "user", "content": prompt.text}]}
        headers = {"Content-Type": "application/json", "X-Workbench-Task": quote(prompt.task)}
        began = time.perf_counter()
        try:
            async with self.session.post(
                url, data=json.dumps(body).encode(), headers=headers, allow_redirects=False
            ) as response:
                client.reached = True
                answer = await read_response(response, prompt, client.address)
        except aiohttp.ClientError as error:
            answer = unreachable(url, error)
        except TimeoutError:
            failure = call_failure("timeout", f"no reply within {client.timeout:g} s")
            answer = Answer(failure=failure, again="retry")
        except (OSError, ValueError) as error:
            answer = unreachable(url, error)
        cost = replace(answer.cost, seconds=time.perf_counter() - began)
        client.totals.add(tokens_in=cost.tokens_in, tokens_out=cost.tokens_out)
        if answer.text is None:
            return replace(answer, cost=cost)
        self.answered, self.strikes = True, 0
        text = checked_reply(self.prompts[index], answer.text, client.form)
        if isinstance(text, Failure):
            return replace(answer, text=None, failure=text, again="reask", cost=cost)
        return replace(answer, text=text, cost=cost)

    def _strike(self, answer: Answer, failure: Failure) -> None:
        """Give up the batch where a server refuses, or has died."""
        if failure.kind not in SERVER_KINDS:
            return
        self.strikes += 1
        self.client.missing = answer.absent
        never = answer.absent and not self.client.reached
        final = (answer.again is None or never) and not self.answered
        if final or self.strikes >= (self.client.concurrency if self.answered else 0) + STRIKES:
            message = f"not sent, since the server gave nothing but failures ({failure.message})"
            self.given_up = replace(failure, message=message, raw="")
