"""Judges on an OpenAI-compatible server: concurrent requests with retries and a failure limit."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from workbench.judge.address import Address, address
from workbench.judge.batch import Arrived, BatchJudge, Totals, call_failure
from workbench.judge.cache import Cache
from workbench.judge.http import CONNECTING, Answer, read_response, unreachable
from workbench.judge.wire import Form, checked_reply, in_form
from workbench.judge.workers import run_in_thread, run_workers
from workbench.types import Cost, Failure, JsonMapping, Prompt, Reply, WorkbenchError

if TYPE_CHECKING:
    import aiohttp

CONCURRENCY = 64  # requests in flight
EARLY = 2  # retries until a server has responded once: before, it is probably not running
JITTER = random.Random()  # not the global generator, which training seeds
STRIKES = 3  # prompts in a row that a server may fail before the batch is given up
# kinds of failure that the server causes and not the prompt
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
    extra: JsonMapping | None = None,
    key: str | None = None,
    form: Form = "json",
    cache: Path | str | None = None,
    cache_address: str | None = None,
) -> BatchJudge:
    """Return a judge on an OpenAI-compatible chat-completions server.

    It can be called from plain code, notebooks and several threads.

    Args:
        url: the server as `http://host:port`, with or without `/v1`, or its address up to
            `/chat/completions`. A user and password in it (`https://user:password@host`) are sent
            but not printed or stored.
        concurrency: requests in flight, including those that wait for a retry.
        timeout: seconds for one request.
        retries: how often a prompt is sent again after status 408, 409, 429 or 5xx, a timeout, a
            lost connection, or a body without a reply. At most 2 until the server has responded
            once.
        reasks: how often a prompt is sent again after an unreadable reply (`workbench.judge.read`).
        backoff: seconds before the first retry; doubled for each further one, with jitter. A
            Retry-After header replaces it.
        longest_wait: maximum seconds before a retry.
        extra: fields added to the body of each request; None removes one (`{"max_tokens": None,
            "max_completion_tokens": 500}`).
        key: bearer token, sent only over https or to this machine. It is not read from a file or
            the environment.
        form: "line" for a judge that cannot write JSON; see `workbench.judge.read`.
        cache: a file that stores readable replies. The key is model, task, prompt, sampling and the
            server's address, because two servers may use one model name.
        cache_address: replaces the server's address in the cache's keys, for a server that may
            move.

    A failure of stage "parse" is an unreadable reply. A failure of stage "judge" has one of these
    kinds:

    * timeout, connection, server, rate_limit, auth, not_found
    * refused: another status
    * broken: a body without a reply
    * empty, truncated
    * cache: a reply could not be stored
    * stopped

    A batch ends early if the server fails 3 prompts through all retries before its first reply.
    After a reply, it ends after 3 more than `concurrency` failures in a row. It ends after one
    prompt if the server refuses the key, has no such address, does not exist or has an untrusted
    certificate.

    Raises:
        WorkbenchError: an argument is invalid, or the file is not one of our caches. Nothing is
            sent.
    """
    for name, value, least in (
        ("concurrency", concurrency, 1),
        ("retries", retries, 0),
        ("reasks", reasks, 0),
    ):
        if value < least:
            raise WorkbenchError(f"{name} must be at least {least} (got {value})")
    if timeout <= 0:
        raise WorkbenchError(f"timeout must be above 0 seconds (got {timeout})")
    if not model:
        raise WorkbenchError(
            "an endpoint needs the name of a model: the server's /v1/models lists them"
        )
    body = {"temperature": temperature, "max_tokens": max_new_tokens, "seed": seed, **(extra or {})}
    body = {name: value for name, value in body.items() if value is not None}
    totals, server = Totals(), address(url, key)
    client = _Client(
        server,
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
    sampling = {**body, "form": form, "endpoint": cache_address or server.url}
    return BatchJudge(model, client.send, sampling, totals, Cache(cache) if cache else None)


@dataclass
class _Client:
    """The settings of an endpoint and the state of its server.

    Attributes:
        reached: the server has responded at least once.
        missing: the server did not accept connections when the last batch was given up.
    """

    address: Address
    body: JsonMapping
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
        """Send prompts and call `arrived` for each reply."""
        # may raise a WorkbenchError, so before the first request
        prepared = [in_form(prompt, self.form) for prompt in prompts]
        run_in_thread(lambda: _Batch(self, prompts, prepared, arrived).run())

    def allowed(self, answer: Answer, retried: int, reasked: int) -> bool:
        """Return whether a prompt may be sent again after this answer."""
        if answer.again == "reask":
            return reasked < self.reasks
        limit = self.retries
        if answer.absent and not self.reached:
            limit = 0 if self.missing else min(EARLY, self.retries)
        return answer.again == "retry" and retried < limit

    def pause(self, answer: Answer, retried: int) -> float:
        """Return the seconds before a retry: Retry-After, or exponential backoff with jitter."""
        jitter = JITTER.random()  # spreads the retries of concurrent requests
        wait = self.backoff * 2**retried * (0.5 + jitter / 2)
        if answer.wait is not None:
            wait = answer.wait * (1 + 0.1 * jitter)
        return 0.0 if answer.again == "reask" else min(wait, self.longest_wait)


@dataclass
class _Batch:
    """One call of the judge.

    Attributes:
        strikes: prompts in a row that the server failed.
        answered: the server has sent a reply to this batch.
        given_up: failure of the remaining prompts, which are not sent.
    """

    client: _Client
    prompts: Sequence[Prompt]
    prepared: Sequence[Prompt]
    arrived: Arrived
    answered: bool = False
    strikes: int = 0
    given_up: Failure | None = None
    session: aiohttp.ClientSession = field(init=False, repr=False)

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
            # checked before each attempt, because other requests may have failed meanwhile
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
        """Return the reason to stop sending after a reply could not be stored."""
        if file := self.client.totals.unstored:
            return call_failure(
                "cache",
                f"not sent, because its reply could not be stored in '{file}': free some space, or"
                " name another file",
            )
        return None

    async def _send(self, index: int) -> Answer:
        """Send one request, count it, and parse its reply."""
        import aiohttp

        client, prompt, url = self.client, self.prepared[index], self.client.address.url
        body = {**client.body, "messages": [{"role": "user", "content": prompt.text}]}
        headers = {"Content-Type": "application/json", "X-Workbench-Task": quote(prompt.task)}
        start = time.perf_counter()
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
        cost = replace(answer.cost, seconds=time.perf_counter() - start)
        client.totals.add(tokens_in=cost.tokens_in, tokens_out=cost.tokens_out)
        if answer.text is None:
            return replace(answer, cost=cost)
        self.answered, self.strikes = True, 0
        text = checked_reply(self.prompts[index], answer.text, client.form)
        if isinstance(text, Failure):
            return replace(answer, text=None, failure=text, again="reask", cost=cost)
        return replace(answer, text=text, cost=cost)

    def _strike(self, answer: Answer, failure: Failure) -> None:
        """Count a prompt that the server failed; give up the batch if the server is at fault."""
        if failure.kind not in SERVER_KINDS:
            return
        self.strikes += 1
        self.client.missing = answer.absent
        never = answer.absent and not self.client.reached
        # after a reply, one short outage may fail all requests in flight
        final = (answer.again is None or never) and not self.answered
        if final or self.strikes >= (self.client.concurrency if self.answered else 0) + STRIKES:
            message = f"not sent, because the server failed repeatedly ({failure.message})"
            self.given_up = replace(failure, message=message, raw="")
