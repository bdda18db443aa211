"""Call a judge: send each distinct prompt once, cache the replies and count the requests."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from workbench.judge.cache import Cache
from workbench.judge.templates import count
from workbench.judge.wire import read
from workbench.types import Cost, Failure, JsonMapping, Prompt, Reply

# (prompt, its reply) -> None, or the failure because of which sending must stop. It is called once
# per prompt, in any order, from one thread.
Arrived = Callable[[Prompt, Reply], Failure | None]
Send = Callable[[Sequence[Prompt], Arrived], None]


@dataclass(eq=False)
class BatchJudge:
    """A judge that sends each distinct prompt once. Call it with prompts to get their replies.

    Each reply is written to the cache as soon as it arrives; failures are not cached. Several
    threads may call the judge at once. If a prompt occurs several times in a call, the cost of its
    request is in the first of its replies only. The others have the cost of a cached reply.

    Attributes:
        name: name of the model.
        send: (prompts, arrived) -> None. Sends distinct prompts, and calls `arrived(prompt, reply)`
            when the reply to a prompt is there.
        sampling: the sampling parameters, which are part of the cache's keys.
        cache: stores the replies; None: no cache.
        totals: sum of the costs of all replies so far.
    """

    name: str
    send: Send = field(repr=False)
    sampling: JsonMapping = field(default_factory=dict)
    cache: Cache | None = None
    totals: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: dict[Prompt, Future[Reply]] = {}
        self._stopped: Failure | None = None  # if set, no more prompts are sent

    def close(self) -> None:
        """Send no more prompts and close the cache; requests in flight are not interrupted."""
        self._stopped = Failure("judge", "stopped", "prompt not sent: the judge was already closed")
        if self.cache:
            self.cache.close()
            self.cache = None

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
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
        with self._lock:
            self.totals = sum((reply.cost for reply in replies), self.totals)
        return replies

    def _ask(self, futures: Mapping[Prompt, Future[Reply]]) -> None:
        """Set the result of each future, from the cache or by sending its prompt."""
        keys = {}
        if cache := self.cache:
            keys = {prompt: cache.key(self.name, prompt, self.sampling) for prompt in futures}
            stored = cache.get(list(keys.values()))
            for prompt, key in keys.items():
                text, p = stored.get(key, ("", None))
                # the reply may be missing, or unreadable for this version
                if not isinstance(read(prompt.task, text, count(prompt)), Failure):
                    futures[prompt].set_result(Reply(text, cost=Cost(cached=1), p=p))
        unanswered = [prompt for prompt, future in futures.items() if not future.done()]

        def arrived(prompt: Prompt, reply: Reply) -> Failure | None:
            if cache and reply.text:
                why = cache.put(keys[prompt], self.name, prompt.task, reply.text, reply.p)
                if why:
                    message = f"prompt not sent: '{cache.file}' cannot store replies ({why})"
                    remedy = "free some space, or name another file"
                    self._stopped = Failure("judge", "cache", f"{message}: {remedy}")
            futures[prompt].set_result(reply)
            return self._stopped

        if self._stopped:
            for prompt in unanswered:
                futures[prompt].set_result(Reply(None, self._stopped))
        elif unanswered:
            self.send(unanswered, arrived)
