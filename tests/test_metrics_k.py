"""K of recall@K, F1@K and VeriScore: which there may be, and whose it is."""

from __future__ import annotations

import pytest

from workbench.metrics.claims import f1_at
from workbench.types import WorkbenchError


@pytest.mark.parametrize(
    ("k", "supported", "n"), [(0, 1, 1), (-1, 1, 1), (0, 0, 0), (4, -1, 3), (4, 0, -1), (4, 3, 2)]
)
def test_f1_of_impossible_counts_is_refused(k: int, supported: int, n: int) -> None:
    with pytest.raises(WorkbenchError, match=r"K is at least 1|no more can be than there are"):
        f1_at(k, supported, n)
