"""What every judge does around its calls: ask each distinct prompt once, look in the cache,
store and count what arrives.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from workbench.judge.cache import Cache
from workbench.judge.wire import clip, settle
from workbench.types import Cost, Failure, Judge, Prompt, Reply, WorkbenchError

Arrived = Callable[[int, Reply], None]  # called once for each prompt, in any order, from one thread
Send = Callable[[Sequence[Prompt], Arrived], None]
Limits = tuple[int | None, int | None, float | None]  # calls, tokens, money
# how many prompts of this batch are done, how many there are, how many failed
OnReply = Callable[[int, int, int], None]


HIDDEN = ("lock", "prices", "failures", "unstored")  # fields of `Totals` that are no plain counters


@dataclass
class Totals:
    """What a judge has used since it was made; `calls` = distinct prompts sent + `retries`.

    `retries` counts every repeated request, `reasks` those among them that were made because a
    reply could not be read; `cached` the prompts that needed no request; `estimated` the calls
    whose tokens no server counted (four characters are taken as one token); `seconds` is the sum
    over calls, many of which run at the same time; `money` needs `prices`, for a million tokens
    in and out.
    """

    calls: int = 0
    cached: int = 0
    retries: int = 0
    reasks: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    estimated: int = 0
    seconds: float = 0.0
    # by kind, one for each prompt of a batch that got no verdict
    failures: Counter[str] = field(default_factory=Counter)
    prices: tuple[float, float] | None = None
    # the cache that could not keep a reply: what is paid for is then no longer asked
    unstored: str = ""
    lock: Any = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def money(self) -> float | None:
        if self.prices is None:
            return None
        return money(self.tokens_in, self.tokens_out, self.prices)

    def begin(self, limits: Limits, again: bool) -> str | None:
        """Count a call that is about to be made, unless a limit is reached: then say which, and
        count nothing.
        """
        with self.lock:
            used = (self.calls, self.tokens, self.money or 0.0)
            for name, limit, amount in zip(("calls", "tokens", "money"), limits, used, strict=True):
                if limit is not None and amount >= limit:
                    return f"{amount:g} of {limit:g} {name}"
            self.calls += 1
            self.retries += again
        return None

    def add(self, **amounts: float) -> None:
        with self.lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)

    def to_row(self) -> dict[str, Any]:
        """The counters as JSON; without the prices."""
        with self.lock:
            row = {
                counter.name: getattr(self, counter.name)
                for counter in fields(self)
                if counter.name not in HIDDEN
            }
            return {
                **row,
                "seconds": round(self.seconds, 3),
                "money": self.money,
                "failures": dict(self.failures),
            }


@dataclass(frozen=True)
class BatchJudge:
    """A `Judge`. `send` asks a list of different prompts and reports each reply, already read
    strictly, as it arrives.

    A reply is in the cache before it is counted as done, so a process that is killed loses only
    what was under way. Failures are not stored. The cost of a prompt that stands in a batch
    several times is with its first; the others are `cached`. `on_reply` is called from the
    judge's own thread.
    """

    name: str
    send: Send = field(repr=False)
    # what decides a reply besides model and prompt
    sampling: Mapping[str, Any] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    cache: Cache | None = None
    on_reply: OnReply | None = field(default=None, repr=False)

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        replies: dict[Prompt, Reply] = {}
        sizes = Counter(prompts)
        done = failed = 0

        def note(prompt: Prompt, reply: Reply) -> None:
            nonlocal done, failed
            assert prompt not in replies, prompt.task
            replies[prompt] = reply
            copies = sizes[prompt]
            done += copies
            if reply.error:
                failed += copies
                with self.totals.lock:
                    self.totals.failures[reply.error.kind] += copies
            self.totals.add(cached=0 if reply.error else copies - 1 + reply.cost.cached)
            if self.on_reply:
                self.on_reply(done, len(prompts), failed)

        unanswered = self._known(list(sizes), note)
        if unanswered:
            self.send(
                unanswered,
                lambda index, reply: note(unanswered[index], self._store(unanswered[index], reply)),
            )
        return _in_order(prompts, replies)

    def _known(self, prompts: list[Prompt], note: Callable[[Prompt, Reply], None]) -> list[Prompt]:
        """Note what the cache has; returns the rest. A stored reply that is not readable (any
        more) is asked for again.
        """
        if not self.cache:
            return prompts
        keys = {prompt: self.cache.key(self.name, prompt, self.sampling) for prompt in prompts}
        stored = self.cache.get(list(keys.values()))
        rest = []
        for prompt, key in keys.items():
            text = settle(prompt, stored[key]) if key in stored else None
            if isinstance(text, str):
                note(prompt, Reply(text, cost=Cost(cached=1)))
            else:
                rest.append(prompt)
        return rest

    def _store(self, prompt: Prompt, reply: Reply) -> Reply:
        if self.cache and reply.text is not None and reply.error is None:
            key = self.cache.key(self.name, prompt, self.sampling)
            if not self.cache.put(key, self.name, prompt.task, reply.text):
                self.totals.unstored = str(self.cache.file)
        return reply


def cached(judge: Judge, file: Path | str, name: str | None = None) -> BatchJudge:
    """`judge` with its readable replies kept in `file`: the same prompts, asked again, make no
    call.

    Replies are kept by (model, task, prompt, sampling), an endpoint's by its address too. A
    judge made by `endpoint` or `local_model` stores each reply as it arrives; any other callable
    at the end of each batch, and needs a `name` for its model. Its replies are read strictly
    too.

    Raises:
        WorkbenchError: the file is no cache of ours or cannot be written, or the judge has no
        name.
    """
    if isinstance(judge, BatchJudge):
        return replace(judge, cache=Cache(file))
    name = name or getattr(judge, "name", None)
    if not name:
        raise WorkbenchError(
            "a judge without a name cannot be cached: give cached(…, name=) one that changes with"
            " the judge"
        )
    totals = Totals()
    return BatchJudge(str(name), _from_callable(judge, totals), totals=totals, cache=Cache(file))


def _from_callable(judge: Judge, totals: Totals) -> Send:
    def send(prompts: Sequence[Prompt], arrived: Arrived) -> None:
        replies = judge(prompts)
        assert len(replies) == len(prompts), (len(replies), len(prompts))
        for index, (prompt, reply) in enumerate(zip(prompts, replies, strict=True)):
            used = reply.cost
            totals.add(
                calls=used.calls,
                tokens_in=used.tokens_in,
                tokens_out=used.tokens_out,
                seconds=used.seconds,
            )
            if reply.error is None:
                text = settle(prompt, reply.text or "")
                reply = (
                    Reply(None, text, used) if isinstance(text, Failure) else Reply(text, cost=used)
                )
            arrived(index, reply)

    return send


def _in_order(prompts: Sequence[Prompt], replies: Mapping[Prompt, Reply]) -> list[Reply]:
    ordered: list[Reply] = []
    seen = set()
    for prompt in prompts:
        reply = replies[prompt]
        again = Cost() if reply.error else Cost(cached=1)
        ordered.append(replace(reply, cost=again) if prompt in seen else reply)
        seen.add(prompt)
    return ordered


def money(tokens_in: float, tokens_out: float, prices: tuple[float, float]) -> float:
    """What tokens cost at the prices of a million of them, in and out."""
    return (tokens_in * prices[0] + tokens_out * prices[1]) / 1e6


def estimate_tokens(text: str) -> int:
    """About four characters of English make a token; other scripts take more."""
    return (len(text) + 3) // 4


def lost(kind: str, message: str, raw: str = "") -> Failure:
    """A call that gave nothing to read."""
    return Failure("judge", kind, message, clip(raw))
