"""Working ahead: order, how far, and what is raised where."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from workbench.score.ahead import ahead


def test_ahead_keeps_order_and_takes_no_more_than_its_workers() -> None:
    taken: list[int] = []
    gate = threading.Event()

    def pieces() -> Any:
        for number in range(6):
            taken.append(number)
            yield number

    def work(number: int) -> int:
        if number == 0:
            assert gate.wait(5)
        return -number

    results = ahead(work, pieces(), 2)
    threading.Timer(0.05, gate.set).start()
    assert next(results) == 0
    assert taken == [0, 1]
    assert list(results) == [-1, -2, -3, -4, -5]
    assert list(ahead(lambda n: n + 1, [1, 2, 3], 1)) == [2, 3, 4]


def test_ahead_raises_where_the_result_would_stand() -> None:
    def work(number: int) -> int:
        if number == 1:
            raise OSError("full")
        return number

    results = ahead(work, [0, 1, 2], 2)
    assert next(results) == 0
    with pytest.raises(OSError, match="full"):
        next(results)
