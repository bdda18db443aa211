"""Tables written from stored results, and their placeholders before a run."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import readme
from benchmarks.findings_training import _curve
from tests.helpers import examples, write_json

[STUDY] = examples("study")


def page(*names: str) -> str:
    return "# Page\n\n" + "\n".join(f"<!-- {name} -->\nold\n<!-- end -->\n" for name in names)


def test_a_table_without_results_is_a_placeholder(tmp_path: Path) -> None:
    text = readme.rendered(page("rlfh_findings", "rlfh_variants_arms", "unknown"), tmp_path)
    assert text.count("*Not run yet.*") == 2 and "<!-- unknown -->\nold\n" in text
    assert readme.rendered(text, tmp_path) == text


def test_the_tables_of_a_study(tmp_path: Path) -> None:
    write_json(tmp_path / "rlfh_variants.json", STUDY)
    names = ("rlfh_variants_findings", "rlfh_variants_arms")
    lines = readme.rendered(page(*names), tmp_path).splitlines()
    assert (
        "| R4 | **holds** | They trade off. (figure 9) | supported_claims on sampled: ppo − a2_b.5,"
        " at least 0.1 | +0.500 [+0.200, +0.800] |" in lines
    )
    none = " –" + " | –" * 6
    assert f"| start | 0.400 |{none} | 2.500 | – | – | – | – |" in lines
    assert (
        f"| a2_b.5 | 0.500 |{none} | – | – | 0.250 | 1 | `rlfh.alpha=2` `rlfh.beta=0.5` |" in lines
    )


def test_every_table_has_a_place_on_a_page() -> None:
    text = "".join(path.read_text() for path in readme.PAGES)
    assert [name for name in readme.TABLES if f"<!-- {name} -->" not in text] == []


def test_the_tables_of_the_pages_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["readme.py", "--check"])
    with pytest.raises(SystemExit) as ended:
        readme.main()
    assert ended.value.code == 0


def test_curves_are_means_over_seeds_at_each_step(tmp_path: Path) -> None:
    """Two seeds at step 1, one of them at step 2. Metrics without any value are left out."""
    for seed, rows in (
        ("a", [{"step": 1, "reward": 1.0, "kl": None}, {"step": 2, "reward": 4.0}]),
        ("b", [{"step": 1, "reward": 2.0}]),
    ):
        (tmp_path / seed).mkdir()
        (tmp_path / seed / "metrics.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows)
        )
        (tmp_path / seed / "rollouts.jsonl").touch()
    assert _curve([tmp_path / "a", tmp_path / "b"]) == {
        "step": [1, 2],
        "reward": [1.5, 4.0],
    }
    (tmp_path / "tuned").mkdir()  # trained on rows, without rollouts
    (tmp_path / "tuned" / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n')
    assert _curve([tmp_path / "tuned"]) == {"step": [1]}
