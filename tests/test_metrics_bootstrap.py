"""The draws of a bootstrap."""

from __future__ import annotations

import pytest

from workbench.metrics import bootstrap
from workbench.metrics.bootstrap import draws


def test_draws_that_are_kept_are_those_that_would_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(questions: int, seed: int) -> list[list[float]]:
        return [
            row.tolist() for piece in draws(questions, 0, resamples=30, seed=seed) for row in piece
        ]

    monkeypatch.setattr(bootstrap, "CELLS", 3000)  # in pieces
    kept = [told(300, 1), told(300, 2), told(300, 1)]
    monkeypatch.setattr(bootstrap, "KEPT", 0)
    assert kept == [told(300, 1), told(300, 2), told(300, 1)] and kept[0] == kept[2] != kept[1]
    assert len(kept[0]) == 30 and all(sum(row) == 300 for row in kept[0])
    assert told(1, 3) == [[1.0]] * 30
