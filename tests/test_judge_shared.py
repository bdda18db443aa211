"""Prompts that several threads ask at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from workbench.judge.shared import Shared
from workbench.types import Cost, Prompt, Reply


def test_what_another_thread_asks_is_waited_for() -> None:
    started, gate = threading.Event(), threading.Event()
    asked: list[list[str]] = []

    def judge(prompts: Sequence[Prompt]) -> list[Reply]:
        asked.append([prompt.text for prompt in prompts])
        if len(asked) == 1:
            started.set()
            assert gate.wait(5)
        return [Reply(prompt.text.upper(), cost=Cost(calls=1)) for prompt in prompts]

    shared, found = Shared(judge), dict[str, list[Reply]]()
    a, b, c = (Prompt("verify", text) for text in "abc")
    first = threading.Thread(target=lambda: found.update(first=shared([a, b])))
    first.start()
    assert started.wait(5)
    second = threading.Thread(target=lambda: found.update(second=shared([b, c, b])))
    second.start()
    gate.set()
    for thread in (first, second):
        thread.join(5)
    assert sorted(asked) == [["a", "b"], ["c"]]
    assert [reply.text for reply in found["second"]] == ["B", "C", "B"]
    assert [reply.cost for reply in found["second"]] == [
        Cost(cached=1),
        Cost(calls=1),
        Cost(cached=1),
    ]
    assert [reply.text for reply in shared([a])] == ["A"]  # it is over: asked anew


def test_once_closed_nothing_more_is_asked() -> None:
    asked: list[Prompt] = []

    def judge(prompts: Sequence[Prompt]) -> list[Reply]:
        asked.extend(prompts)
        return [Reply("yes") for _ in prompts]

    shared = Shared(judge)
    one, other = Prompt("verify", "a"), Prompt("verify", "b")
    assert [reply.text for reply in shared([one])] == ["yes"]
    shared.close()
    refused = shared([one, other])
    assert [reply.text for reply in refused] == [None, None] and asked == [one]
    assert all(reply.error and reply.error.kind == "stopped" for reply in refused)
