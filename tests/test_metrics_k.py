"""K of recall@K, F1@K and VeriScore: which there may be, and whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_metrics import FAST, file, stored
from workbench.metrics import compare_files
from workbench.metrics.claims import f1_at
from workbench.types import WorkbenchError


@pytest.mark.parametrize(
    ("k", "supported", "n"), [(0, 1, 1), (-1, 1, 1), (0, 0, 0), (4, -1, 3), (4, 0, -1), (4, 3, 2)]
)
def test_f1_of_impossible_counts_is_refused(k: int, supported: int, n: int) -> None:
    with pytest.raises(WorkbenchError, match=r"K is at least 1|no more can be than there are"):
        f1_at(k, supported, n)


def test_veriscore_k_is_that_of_the_files_compared(tmp_path: Path) -> None:
    """Numbers of claims 4, 4 and 2, 2, 2: the median of the five is 2, in whichever order the
    files are named.
    """
    a = file(tmp_path / "a.jsonl", [stored("a", "cccc"), stored("b", "cccw")])
    b = file(tmp_path / "b.jsonl", [stored("a", "cc"), stored("b", "cw"), stored("b", "ww")])
    there, back = compare_files(a, b, **FAST), compare_files(b, a, **FAST)
    assert there["veriscore_k"] == there["other"]["veriscore_k"] == back["veriscore_k"] == 2
    assert there["veriscore"] == back["other"]["veriscore"] and there["reference"] == f"{a} + {b}"
