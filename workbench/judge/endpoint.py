"""Judges behind an OpenAI-compatible server: many requests at a time, retried with patience,
within a budget.
"""

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
from workbench.judge.batch import Arrived, BatchJudge, Limits, OnReply, Totals, cached, lost
from workbench.judge.http import CONNECTING, Answer, read_response, unreachable
from workbench.judge.wire import Form, in_form, settle
from workbench.judge.workers import run_apart, together
from workbench.types import Cost, Failure, Prompt, Reply, WorkbenchError

CONCURRENCY = 64  # requests under way at a time
EARLY = 2  # retries while no server has been reached at all: it is more likely not there than busy
# prompts in a row that a server may fail before the rest of a batch is given up; and all that are
# under way
STRIKES = 3


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
    max_calls: int | None = None,
    max_tokens_total: int | None = None,
    max_cost: float | None = None,
    prices: tuple[float, float] | None = None,
    temperature: float = 0.0,
    max_new_tokens: int = 2048,
    seed: int | None = None,
    extra: Mapping[str, Any] | None = None,
    key: str | None = None,
    form: Form = "json",
    cache: Path | str | None = None,
    kept_as: str | None = None,
    on_reply: OnReply | None = None,
) -> BatchJudge:
    """A judge behind an OpenAI-compatible chat-completions server. Works from plain code,
    notebooks and several threads.

    Args:
        url: the server, as `http://host:port`, with or without `/v1`; or its address up to
        `/chat/completions`. A user and
            password in it (`https://user:password@host`) are sent and shown nowhere.
        concurrency: requests under way at a time. One that waits for its retry counts: a server
        that refuses gets less.
        timeout: seconds for one request.
        retries: how often a prompt is sent again after status 408, 409, 429 or 5xx, a timeout, a
        lost connection, or a body
            without a reply; after `backoff` seconds, then twice as many, …, each with jitter; or
            after what the server
            asks for in Retry-After; never more than `longest_wait`. At most twice while no
            server has been reached at all.
        reasks: how often a prompt is sent again because its reply is not what was asked for
        (`workbench.judge.read`).
        max_calls, max_tokens_total, max_cost: budgets over the life of the judge. Checked before
        each request: the tokens of
            requests then under way still come on top. What is left when one is used up fails
            with the kind "budget".
        prices: what a million tokens cost, in and out; needed for `max_cost`.
        extra: fields added to each request's body; a None removes one (`{"max_tokens": None,
        "max_completion_tokens": 500}`).
        key: sent as bearer token, over https or to this machine alone. Read from no file and no
        environment.
        form: "line" for a judge that cannot write JSON; see `workbench.judge.read`.
        cache: a file as for `cached`; replies are kept by the server's address too, for two
        servers may call two models alike.
        kept_as: stands in the address's place there: for a server that is the same wherever it
        comes back.
        on_reply: see `BatchJudge`.

    A failure of stage "judge" has one of the kinds timeout, connection, server, rate_limit,
    auth, not_found, refused (any other status), broken (a body without a reply), empty,
    truncated, budget, cache (nothing is paid for once a reply cannot be kept); stage "parse" is
    what cannot be read. The rest of a batch is not sent if the server fails three prompts
    through all retries before it has answered any (one is enough if it refuses the key, has no
    such address, is not there or cannot be trusted), or three more than `concurrency` in a row
    later on.

    Raises:
        WorkbenchError: an argument that cannot work; before anything is sent.
    """
    if max_cost is not None and prices is None:
        raise WorkbenchError(
            "max_cost needs prices=(per million tokens in, per million tokens out)"
        )
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
    body = {
        "model": model,
        "temperature": temperature,
        "max_tokens": max_new_tokens,
        "seed": seed,
        **(extra or {}),
    }
    body = {name: value for name, value in body.items() if value is not None}
    totals, where = Totals(prices=prices), address(url, key)
    client = _Client(
        where,
        body,
        totals=totals,
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        reasks=reasks,
        backoff=backoff,
        longest_wait=longest_wait,
        limits=(max_calls, max_tokens_total, max_cost),
        form=form,
    )
    sampling = {**{name: value for name, value in body.items() if name != "model"}, "form": form}
    sampling["endpoint"] = kept_as or where.url
    judge = BatchJudge(model, client.send, sampling, totals, on_reply=on_reply)
    return cached(judge, cache) if cache else judge


@dataclass
class _Server:
    """What the judge has seen of the server: whether it was ever reached, and whether it was
    looked for in vain.
    """

    reached: bool = False
    missing: bool = False

    def patience(self, retries: int) -> int:
        return retries if self.reached else 0 if self.missing else min(EARLY, retries)


@dataclass(frozen=True)
class _Client:
    address: Address
    body: Mapping[str, Any]
    totals: Totals
    concurrency: int
    timeout: float
    retries: int
    reasks: int
    backoff: float
    longest_wait: float
    limits: Limits
    form: Form = "json"
    server: _Server = field(default_factory=_Server)

    def send(self, prompts: Sequence[Prompt], arrived: Arrived) -> None:
        # raises here, before anything is sent
        prepared = [in_form(prompt, self.form) for prompt in prompts]
        run_apart(lambda: _Batch(self, prompts, prepared, arrived).run())


@dataclass
class _Batch:
    """One call of the judge. `strikes` counts prompts that the server failed since it last
    answered; `given_up` is why the rest is not sent."""

    client: _Client
    prompts: Sequence[Prompt]
    prepared: Sequence[Prompt]
    arrived: Arrived
    answered: bool = False
    strikes: int = 0
    given_up: Failure | None = None
    chance: random.Random = field(default_factory=random.Random)

    async def run(self) -> None:
        import aiohttp

        waiting = iter(range(len(self.prompts)))
        limit = aiohttp.ClientTimeout(
            total=self.client.timeout, sock_connect=min(self.client.timeout, CONNECTING)
        )
        connector = aiohttp.TCPConnector(limit=self.client.concurrency)
        async with aiohttp.ClientSession(
            connector=connector, timeout=limit, headers=self.client.address.headers
        ) as session:

            async def work() -> None:
                for index in waiting:
                    self.arrived(index, await self._ask(session, index))

            await together(work, min(self.client.concurrency, len(self.prompts)))

    async def _ask(self, session: Any, index: int) -> Reply:
        """Send one prompt until it has a reply or the patience is used up."""
        cost, patience = Cost(), {"retry": self.client.retries, "reask": self.client.reasks}
        while True:
            if failure := self.given_up or self._begin(again=cost.calls > 0):
                return Reply(None, failure, cost)
            answer = await self._send(session, index)
            cost += answer.cost
            if answer.failure is None:
                return Reply(answer.text, cost=cost)
            tries = patience.get(answer.again or "", 0)
            if answer.absent:
                tries -= self.client.retries - self.client.server.patience(self.client.retries)
            if tries <= 0:
                self._strike(answer)
                return Reply(None, answer.failure, cost)
            patience[answer.again or ""] -= 1
            self.client.totals.add(reasks=answer.again == "reask")
            await asyncio.sleep(self._pause(answer, self.client.retries - patience["retry"]))

    async def _send(self, session: Any, index: int) -> Answer:
        prompt = self.prepared[index]
        body = {**self.client.body, "messages": [{"role": "user", "content": prompt.text}]}
        headers = {"Content-Type": "application/json", "X-Workbench-Task": quote(prompt.task)}
        began = time.perf_counter()
        try:
            async with session.post(
                self.client.address.url,
                data=json.dumps(body).encode(),
                headers=headers,
                allow_redirects=False,
            ) as response:
                self.client.server.reached = True
                answer = await read_response(response, prompt, self.client.address)
        except _client_error() as error:
            answer = unreachable(self.client.address.url, error)
        except TimeoutError:
            answer = Answer(
                failure=lost("timeout", f"no reply within {self.client.timeout:g} s"), again="retry"
            )
        except (OSError, ValueError) as error:
            answer = unreachable(self.client.address.url, error)
        return self._read(index, answer.timed(time.perf_counter() - began))

    def _read(self, index: int, answer: Answer) -> Answer:
        """Count the call, and read its reply strictly."""
        used = answer.cost
        self.client.totals.add(
            tokens_in=used.tokens_in,
            tokens_out=used.tokens_out,
            seconds=used.seconds,
            estimated=answer.estimated,
        )
        if answer.failure or answer.text is None:
            return answer
        self.answered, self.strikes = True, 0
        text = settle(self.prompts[index], answer.text, self.client.form)
        return answer.unreadable(text) if isinstance(text, Failure) else answer.read(text)

    def _strike(self, answer: Answer) -> None:
        """A server that refuses, or has died, is not asked a thousand times more."""
        if not answer.servers_fault:
            return
        self.strikes += 1
        self.client.server.missing = answer.absent
        never = answer.absent and not self.client.server.reached
        final = (answer.again is None or never) and not self.answered
        if answer.failure and (
            final or self.strikes >= (self.client.concurrency if self.answered else 0) + STRIKES
        ):
            message = (
                f"not sent, since the server gave nothing but failures ({answer.failure.message})"
            )
            self.given_up = replace(answer.failure, message=message, raw="")

    def _begin(self, again: bool) -> Failure | None:
        """Take one call out of the budget, or say why not."""
        if file := self.client.totals.unstored:
            return lost(
                "cache",
                f"not sent, since its reply could not be kept in '{file}': free some space, or name"
                " another",
            )
        spent = self.client.totals.begin(self.client.limits, again)
        return lost("budget", f"the budget is used up: {spent}") if spent else None

    def _pause(self, answer: Answer, attempt: int) -> float:
        """Seconds before the next try: what the server asked for, else exponential; with jitter
        so that tries spread.
        """
        jitter = self.chance.random()
        if answer.again == "reask":
            return 0.0
        if answer.wait is not None:
            return min(answer.wait * (1 + 0.1 * jitter), self.client.longest_wait)
        return min(
            self.client.backoff * 2 ** (attempt - 1) * (0.5 + jitter / 2), self.client.longest_wait
        )


def _client_error() -> type[Exception]:
    import aiohttp

    return aiohttp.ClientError
