"""Send prompts to an OpenAI-compatible server, concurrently, with retries and a failure limit."""

import asyncio
import json
import random
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.judge.address import Address, address
from workbench.judge.batch import Arrived, BatchJudge
from workbench.judge.cache import Cache
from workbench.judge.http import Answer, post
from workbench.judge.logprobs import MOST, label_probabilities
from workbench.judge.templates import count
from workbench.judge.wire import LABELS, ONE_LABEL, bare_label, read, schema
from workbench.types import Cost, Failure, JsonMapping, JsonObject, Prompt, Reply, WorkbenchError

if TYPE_CHECKING:
    import aiohttp

CONNECTING = 10.0  # seconds that a server may take to accept a connection
TOKENS = 2048  # default maximum length of a reply
EARLY = 2  # most retries while a server has never been reached; it is probably not running
JITTER = random.Random()  # not the global generator, which training seeds
# least probability of all labels together, without the constraint, to accept a constrained reply
LEAST_MASS = 0.5
STRIKES = 3  # number of failed prompts in a row after which a batch is given up
FIXED = ("messages", "model", "stream", "n")  # fields of a request that options may not change


def endpoint(
    url: str,
    model: str,
    *,
    temperature: float = 0.0,
    max_new_tokens: int | None = None,
    extra: JsonMapping | None = None,
    key: str | None = None,
    cache: Path | str | None = None,
    cache_address: str | None = None,
    **limits: Any,
) -> BatchJudge:
    """Return a judge that sends prompts to an OpenAI-compatible chat-completions server.

    Args:
        url: the server's address, such as `http://host:port`. The path may be missing, `/v1`, or
            end in `/chat/completions`. A user and password in the URL are sent but not printed or
            stored.
        model: name of the model on the server.
        temperature: sampling temperature. If the model refuses 0, the field is left out, with a
            warning.
        max_new_tokens: maximum number of tokens of a reply, including its thinking; None: 2048.
        extra: fields added to the body of each request; the value None removes a field. With
            `{"response_format": "schema"}`, the server constrains each reply to a JSON schema,
            which helps small models.
        key: bearer token, sent only over https or to this machine. It is not read from a file or
            the environment.
        cache: a file that stores the replies that could be parsed. Its keys contain the model, the
            prompt, the sampling settings except `max_new_tokens`, and the server's address.
        cache_address: replaces the server's address in the cache's keys, for a server that may
            move.
        limits: concurrency, timeouts and retries.

            * `concurrency` (64): requests in flight, including those that wait for a retry
            * `timeout` (60): seconds for one request
            * `retries` (5): how often a prompt is sent again after status 408, 409, 429 or 5xx, a
              timeout or a lost connection; at most 2 until the server has been reached once
            * `reasks` (1): how often a prompt is sent again after an unreadable or empty reply
            * `backoff` (0.5): seconds before the first retry, doubled for each further retry, with
              jitter; a Retry-After header replaces it
            * `longest_wait` (60): maximum seconds before a retry

    `Reply.p` is the probability of the first label in `wire.LABELS[task]`, such as "correct", among
    all labels of the task. It is None unless the reply is one label and the server returns
    log-probabilities. They are requested automatically for replies constrained to a schema. For
    other replies, put `logprobs` and `top_logprobs` into `extra`.

    A failed prompt gets a `Reply` whose text is None and whose `error` is a `Failure`. The stage of
    the failure is "parse" if the reply cannot be parsed. It is also "parse" if the model chose a
    label only because of the schema: its probability of all labels together is below .5
    (`LEAST_MASS`). If there is no usable reply, the stage is "judge", with one of these kinds:

    * timeout, connection, server, rate_limit, auth, not_found
    * quota: the account has no credit left
    * refused: the server answered with another error status
    * broken: the body of the response has no reply
    * empty, truncated: the reply has no text, or reached the maximum length
    * cache: a reply could not be stored, so no more prompts are sent
    * stopped: the judge was closed

    The remaining prompts of a batch fail without being sent in these cases:

    * 3 prompts in a row failed after all their retries. After the first reply of the server, and
      for truncated replies, the limit is 3 + `concurrency` prompts instead.
    * The account has no credit left.
    * Before the first reply, the server refuses the key, lacks the path, cannot be reached or has
      an untrusted certificate.

    Raises:
        WorkbenchError: an argument is invalid, or `cache` is not a cache of judge replies. This is
            raised before any request is sent.
    """
    if not model:
        raise WorkbenchError(
            "the name of the judge's model is empty: pass a name that the server lists at"
            " /v1/models"
        )
    extra = dict(extra or {})
    if constrained := extra.get("response_format") == "schema":
        del extra["response_format"]
    sampling = {"temperature": temperature, "max_tokens": TOKENS, **extra}
    sampling = {name: value for name, value in sampling.items() if value is not None}
    body = {"model": model, **sampling}
    # a server refuses a request that has both names of this limit
    if "max_completion_tokens" in extra:
        body.pop("max_tokens", None)
    elif max_new_tokens is not None:
        body["max_tokens"] = max_new_tokens
    client = _Client(address(url, key), body, constrained, **limits)
    sampling |= {
        "form": "schema" if constrained else "json",
        "endpoint": cache_address or client.server.url,
    }
    return BatchJudge(model, client.send, sampling, Cache(cache) if cache else None)


def request_fields(options: Sequence[str]) -> JsonObject:
    """Parse values of `--judge-option`, such as "reasoning_effort=low", into fields of a request.

    The part after "=" is parsed as JSON; if it is not JSON, it is a string.

    Raises:
        WorkbenchError: an option has no "=", or names a field that the judge sets itself.
    """
    fields: JsonObject = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals or not name or name in FIXED:
            raise WorkbenchError(
                f"--judge-option {option}: write KEY=VALUE, such as reasoning_effort=low; KEY is a"
                f" field of a chat request except {', '.join(FIXED)}, which the judge sets itself"
            )
        try:
            fields[name] = json.loads(text)
            json.dumps(fields[name], allow_nan=False)  # 1e999 and NaN are not JSON
        except (ValueError, RecursionError):
            fields[name] = text
    return fields


@dataclass
class _Client:
    """The settings of an endpoint and the state of its server.

    Attributes:
        reached: the server has accepted at least one connection.
    """

    server: Address
    body: JsonMapping
    constrained: bool
    concurrency: int = 64
    timeout: float = 60.0
    retries: int = 5
    reasks: int = 1
    backoff: float = 0.5
    longest_wait: float = 60.0
    reached: bool = False

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.timeout <= 0:
            raise WorkbenchError(
                f"concurrency and timeout must be above 0 (got {self.concurrency}, {self.timeout})"
            )

    def send(self, prompts: Sequence[Prompt], arrived: Arrived) -> None:
        """Send prompts and call `arrived(prompt, reply)` for each; return after the last reply.

        * Thread: the requests and `arrived` run in one new thread, because the caller may be in an
          event loop.
        * Failures: a failed prompt gets a reply with a failure. If the server fails repeatedly, or
          `arrived` returns a failure, all remaining prompts get this failure and are not sent.
        * Exceptions of `arrived` are raised here. They and an interrupt of the caller cancel the
          requests; the call then waits until their connections are closed.
        """
        loop = asyncio.new_event_loop()
        task = loop.create_task(_Batch(self).run(prompts, arrived))
        with closing(loop), ThreadPoolExecutor(1, "workbench-judge") as pool:
            running = pool.submit(loop.run_until_complete, task)
            try:
                running.result()
            except BaseException:
                loop.call_soon_threadsafe(task.cancel)
                raise

    def adapt(self, sent: JsonMapping, failure: Failure) -> bool:
        """Change the body of later requests if the model refused a parameter of the body `sent`.

        Return whether the body was changed. Newer models of OpenAI require `max_completion_tokens`
        and refuse a temperature.
        """
        if failure.kind != "refused":
            return False
        if "max_tokens" in sent and "max_completion_tokens" in failure.message:
            renamed = {"max_tokens": "max_completion_tokens"}
            self.body = {renamed.get(name, name): value for name, value in self.body.items()}
        elif sent.get("temperature") == 0 and "temperature" in failure.message:
            self.body = {k: value for k, value in self.body.items() if k != "temperature"}
            warnings.warn(
                f"{self.body['model']} refuses temperature 0, so the model's default temperature is"
                " used: replies may differ between runs",
                stacklevel=2,
            )
        else:
            return False
        return True

    def pause(self, answer: Answer, tried: int) -> float | None:
        """Return the seconds to wait before a prompt is sent again; None if it is not sent again.

        A prompt is not sent again if no retry can help, or if its retries are used up. After an
        unusable reply, the time is 0. After an error, it is that of the server's Retry-After
        header or, without one, an exponential backoff with jitter. `tried` is the number of times
        that the prompt was sent again for the same reason (`Answer.again`).
        """
        most = {"retry": self.retries, "reask": self.reasks}.get(answer.again or "", 0)
        if tried >= (min(EARLY, most) if answer.absent and not self.reached else most):
            return None
        if answer.again == "reask":
            return 0.0
        jitter = JITTER.random()  # spreads the retries of concurrent requests
        wait = self.backoff * 2**tried * (0.5 + jitter / 2)
        if answer.wait is not None:
            wait = answer.wait * (1 + 0.1 * jitter)
        return min(wait, self.longest_wait)

    def request(self, prompt: Prompt, body: JsonMapping) -> JsonObject:
        """Return the body of the request for a prompt: `body` with the prompt as a message.

        If the server constrains replies, the reply's JSON schema is added.
        """
        asked = bare_label(prompt) if self.constrained else prompt
        body = {**body, "messages": [{"role": "user", "content": asked.text}]}
        if self.constrained:
            constraint = {"name": prompt.task, "schema": schema(prompt), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": constraint}
            if prompt.task in ONE_LABEL:
                body |= {"logprobs": True, "top_logprobs": MOST}
        return body


@dataclass
class _Batch:
    """One call of the judge with a list of prompts.

    Attributes:
        answered: the server has sent a reply to a prompt of this batch.
        strikes: number of failed prompts since the last reply.
        given_up: if set, the remaining prompts are not sent and get this failure.
    """

    client: _Client
    answered: bool = False
    strikes: int = 0
    given_up: Failure | None = None

    async def run(self, prompts: Sequence[Prompt], arrived: Arrived) -> None:
        import aiohttp

        client, waiting = self.client, iter(prompts)

        async def work() -> None:
            for prompt in waiting:
                stop = arrived(prompt, await self._ask(session, prompt))
                self.given_up = self.given_up or stop

        connect = min(client.timeout, CONNECTING)
        try:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=client.concurrency),
                    timeout=aiohttp.ClientTimeout(total=client.timeout, sock_connect=connect),
                    headers=client.server.headers,
                ) as session,
                asyncio.TaskGroup() as group,
            ):
                for _ in range(min(client.concurrency, len(prompts))):
                    group.create_task(work())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _ask(self, session: "aiohttp.ClientSession", prompt: Prompt) -> Reply:
        """Send one prompt until it has a reply or no retry is left."""
        client, cost, tries = self.client, Cost(), Counter[str | None]()
        # checked before each attempt, because other requests may have failed meanwhile
        while not self.given_up:
            sent = client.body
            answer = await post(session, client.server, prompt, client.request(prompt, sent))
            client.reached |= not answer.absent
            if answer.text is not None:  # an unreadable reply also shows that the server works
                self.answered, self.strikes = True, 0
                answer = _parsed(answer, prompt, client.constrained)
            cost += answer.cost
            if answer.error is None:
                return Reply(answer.text, cost=cost, p=answer.p)
            if client.adapt(sent, answer.error):
                continue
            wait = client.pause(answer, tries[answer.again])
            if wait is None:
                self._strike(answer, answer.error)
                return Reply(None, answer.error, cost)
            tries[answer.again] += 1
            await asyncio.sleep(wait)
        return Reply(None, self.given_up, cost)

    def _strike(self, answer: Answer, failure: Failure) -> None:
        """Count a failed prompt; give up the batch if the server is probably the cause."""
        if failure.stage == "parse" or failure.kind == "refused":  # because of the prompt
            return
        self.strikes += 1
        # before the first reply, one refusal is enough: the key, address or server must be wrong
        never = answer.absent and not self.client.reached
        refused = answer.again is None and failure.kind != "truncated"
        final = failure.kind == "quota" or ((refused or never) and not self.answered)
        # after a reply, one short outage may fail all requests in flight; a long reply may be cut
        patient = self.answered or failure.kind == "truncated"
        if final or self.strikes >= STRIKES + patient * self.client.concurrency:
            message = f"prompt not sent: earlier requests failed ({failure.message})"
            self.given_up = replace(failure, message=message, raw="")


def _parsed(answer: Answer, prompt: Prompt, constrained: bool) -> Answer:
    """Return the outcome of a request after parsing its text, with `p` if it is known.

    If the server constrains replies, each one is a label. The result is a failure if the model's
    own probability of all labels together is below `LEAST_MASS`.
    """
    value = read(prompt.task, answer.text or "", count(prompt), constrained)
    if isinstance(value, Failure):
        return replace(answer, text=None, error=value, again="reask")
    if prompt.task not in ONE_LABEL:
        return answer
    if constrained:  # the form that `read` expects of a stored reply
        answer = replace(answer, text=json.dumps({"label": value}))
    probabilities = label_probabilities(prompt.task, value, answer.tokens)
    if probabilities is None:
        return answer
    whole = sum(probabilities.values())
    if constrained and whole < LEAST_MASS:
        message = f"{prompt.task}: the reply is the label '{value}' only because the server allows"
        message += f" nothing else: without this limit, P(a label) is {whole:.2f}"
        error = Failure("parse", "label", message, answer.text or "")
        return replace(answer, text=None, error=error)
    return replace(answer, p=probabilities[LABELS[prompt.task][0]] / whole)
