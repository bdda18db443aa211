"""The common part of all judges: distinct prompts, cache, totals and threads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from workbench.judge.cache import Cache
from workbench.judge.wire import checked_reply, clip
from workbench.types import Cost, Failure, JsonMapping, Prompt, Reply

Arrived = Callable[[int, Reply], None]  # called once per prompt, in any order, from one thread
Send = Callable[[Sequence[Prompt], Arrived], None]


@dataclass
class Totals:
    """Counters of a judge since it was made.

    `calls` counts distinct prompts sent plus `retries`, which are all repeated requests. `cached`
    counts prompts without a request. If the server counts no tokens, four characters are one token.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    # prompts without a reply, by the kind of failure
    failures: Counter[str] = field(default_factory=Counter)
    unstored: str = ""  # the cache file that could not store a reply; sending then stops

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def add(self, **amounts: float) -> None:
        with self.lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)


@dataclass(frozen=True)
class BatchJudge:
    """A `Judge` that sends each distinct prompt once and caches the replies.

    A reply is cached before it counts as done, so a killed process loses only the requests in
    flight. Failures are not cached. Several threads may call the judge: a prompt that another
    thread has sent is not sent again. If a prompt repeats, only the first reply has the cost of the
    request; the later ones are marked as `cached`.

    Attributes:
        send: sends distinct prompts and passes on each parsed reply as it arrives.
        sampling: the sampling parameters; with model and prompt they form the key of the cache.
    """

    name: str
    send: Send = field(repr=False)
    sampling: JsonMapping = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    cache: Cache | None = None
    closed: threading.Event = field(default_factory=threading.Event, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _pending: dict[Prompt, Future[Reply]] = field(default_factory=dict, repr=False, compare=False)

    def close(self) -> None:
        """Stop sending. Requests in flight may end."""
        self.closed.set()
        if self.cache:
            self.cache.close()

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        if self.closed.is_set():
            return [
                Reply(None, call_failure("stopped", "not sent, because the work has stopped"))
            ] * len(prompts)
        with self._lock:  # claim prompts at once, so that no other thread sends them, too
            pending = self._pending
            others = {prompt: pending[prompt] for prompt in prompts if prompt in pending}
            own = {prompt: Future[Reply]() for prompt in prompts if prompt not in others}
            pending.update(own)
        try:
            self._ask(own, Counter(prompt for prompt in prompts if prompt in own))
        except BaseException as error:
            for future in own.values():  # wake the threads that wait for these prompts
                if not future.done():
                    future.set_exception(error)
            raise
        finally:
            with self._lock:
                for prompt in own:
                    del pending[prompt]
        futures, seen = {**own, **others}, set(others)
        replies = []
        for prompt in prompts:
            reply = futures[prompt].result()
            if prompt in seen:  # the first reply to the prompt has the cost
                reply = replace(reply, cost=Cost() if reply.error else Cost(cached=1))
            replies.append(reply)
            seen.add(prompt)
        return replies

    def _ask(self, futures: Mapping[Prompt, Future[Reply]], copies: Counter[Prompt]) -> None:
        """Set the result of each future, from the cache or by sending its prompt."""

        def done(prompt: Prompt, reply: Reply) -> None:
            if reply.error:
                with self.totals.lock:
                    self.totals.failures[reply.error.kind] += copies[prompt]
            else:
                # every copy after the first is free
                self.totals.add(cached=copies[prompt] - 1 + reply.cost.cached)
            futures[prompt].set_result(reply)

        def arrived(index: int, reply: Reply) -> None:
            prompt = unanswered[index]
            if self.cache and reply.text is not None and reply.error is None:
                key = self.cache.key(self.name, prompt, self.sampling)
                if not self.cache.put(key, self.name, prompt.task, reply.text):
                    self.totals.unstored = str(self.cache.file)
            done(prompt, reply)

        unanswered = list(futures)
        if self.cache:
            keys = {p: self.cache.key(self.name, p, self.sampling) for p in unanswered}
            stored = self.cache.get(list(keys.values()))
            for prompt, key in keys.items():
                # a stored reply may be unreadable for this version: send its prompt again
                text = checked_reply(prompt, stored[key]) if key in stored else None
                if isinstance(text, str):
                    done(prompt, Reply(text, cost=Cost(cached=1)))
            unanswered = [prompt for prompt in futures if not futures[prompt].done()]
        if unanswered:
            self.send(unanswered, arrived)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: one per four characters. Non-Latin scripts have more."""
    return (len(text) + 3) // 4


def call_failure(kind: str, message: str, raw: str = "") -> Failure:
    """Return the failure of a call without a usable reply."""
    return Failure("judge", kind, message, clip(raw))
