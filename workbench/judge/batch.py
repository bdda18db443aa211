"""Call a judge: send each distinct prompt once, cache the replies and count the requests."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from workbench.judge.cache import Cache
from workbench.judge.wire import checked_reply, clip
from workbench.types import Cost, Failure, JsonMapping, Prompt, Reply

# (index of the prompt, its reply) -> None, or the failure because of which sending must stop. It is
# called once per prompt, in any order, from one thread.
Arrived = Callable[[int, Reply], Failure | None]
Send = Callable[[Sequence[Prompt], Arrived], None]


@dataclass
class Totals:
    """Counters over all calls of a judge.

    `calls` is the number of requests, including retries. `cached` is the number of prompts answered
    from the cache. If the server reports no token counts, four characters count as one token.
    """

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    def add(self, **amounts: int) -> None:
        with self.lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)


@dataclass(eq=False)
class BatchJudge:
    """A judge that sends each distinct prompt once. Call it with prompts to get their replies.

    Each reply is written to the cache as soon as it arrives; failures are not cached. Several
    threads may call the judge at once. If a prompt occurs several times in a call, the request's
    cost belongs to its first reply. The other replies count as cached.

    Attributes:
        name: name of the model.
        send: function that sends distinct prompts and calls `arrived(index, reply)` for each reply.
        sampling: the sampling parameters, which are part of the cache's keys.
        totals: counters over all calls.
        cache: stores the replies; None: no cache.
    """

    name: str
    send: Send = field(repr=False)
    sampling: JsonMapping = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    cache: Cache | None = None

    def __post_init__(self) -> None:
        self.closed, self._lock = threading.Event(), threading.Lock()
        self._pending: dict[Prompt, Future[Reply]] = {}
        self._unstored: Failure | None = None  # set if a reply was not stored: nothing more is sent

    def close(self) -> None:
        """Send no more prompts and close the cache; requests in flight are not interrupted."""
        self.closed.set()
        if self.cache:
            self.cache.close()

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        if self.closed.is_set():
            failure = call_failure("stopped", "not sent, because the judge was closed before")
            return [Reply(None, failure)] * len(prompts)
        with self._lock:  # mark the prompts as pending, so that no other thread sends them too
            others = {
                prompt: self._pending[prompt] for prompt in prompts if prompt in self._pending
            }
            own = {prompt: Future[Reply]() for prompt in prompts if prompt not in others}
            self._pending.update(own)
        try:
            self._ask(own)
        except BaseException as error:
            for future in own.values():  # wake the threads that wait for these prompts
                if not future.done():
                    future.set_exception(error)
            raise
        finally:
            with self._lock:
                for prompt in own:
                    del self._pending[prompt]
        futures, seen, replies = {**own, **others}, set(others), []
        for prompt in prompts:
            reply = futures[prompt].result()
            if prompt in seen:  # only one request was sent, so its cost is counted once
                reply = replace(reply, cost=Cost() if reply.error else Cost(cached=1))
            replies.append(reply)
            seen.add(prompt)
        self.totals.add(cached=sum(reply.cost.cached for reply in replies))
        return replies

    def _ask(self, futures: Mapping[Prompt, Future[Reply]]) -> None:
        """Set the result of each future, from the cache or by sending its prompt."""
        keys = {}
        if cache := self.cache:
            keys = {prompt: cache.key(self.name, prompt, self.sampling) for prompt in futures}
            stored = cache.get(list(keys.values()))
            known = cache.probabilities(list(stored))
            for prompt, key in keys.items():
                # a stored reply may be unreadable for this version: send its prompt again
                text = checked_reply(prompt, stored[key]) if key in stored else None
                if isinstance(text, str):
                    futures[prompt].set_result(Reply(text, cost=Cost(cached=1), p=known.get(key)))
        unanswered = [prompt for prompt, future in futures.items() if not future.done()]

        def arrived(index: int, reply: Reply) -> Failure | None:
            prompt = unanswered[index]
            key, text = keys.get(prompt), None if reply.error else reply.text
            why = (
                cache.put(key, self.name, prompt.task, text, reply.p)
                if cache and key and text
                else None
            )
            if cache and why:
                message = f"not sent, because replies are not stored in '{cache.file}' ({why})"
                remedy = "free some space, or name another file"
                self._unstored = call_failure("cache", f"{message}: {remedy}")
            futures[prompt].set_result(reply)
            return self._unstored

        if self._unstored:
            for prompt in unanswered:
                futures[prompt].set_result(Reply(None, self._unstored))
        elif unanswered:
            self.send(unanswered, arrived)


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text: one per four characters.

    In non-Latin scripts the estimate is too low.
    """
    return (len(text) + 3) // 4


def call_failure(kind: str, message: str, raw: str = "") -> Failure:
    """Return a `Failure` of stage "judge", for a request without a usable reply.

    Args:
        kind: the kind of failure, such as "timeout".
        message: one line for the user.
        raw: the server's response, of which the beginning is stored.
    """
    return Failure("judge", kind, message, clip(raw))
