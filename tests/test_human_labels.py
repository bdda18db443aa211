"""The human-label benchmark: readers and statistics on hand-written rows, and on slices of real
data if available.
"""

import hashlib
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import readme
from benchmarks.human import answers, claims, faithful, spans, stats, verdicts
from benchmarks.human_labels import table
from tests.helpers import ROOT, read_json
from tests.helpers.score_helpers import write
from workbench.verifier.verifier import Entailment, Settings

ONES = np.ones(4)


def test_balanced_accuracy_is_the_mean_recall() -> None:
    gold, said = np.array([True, True, True, False]), np.array([True, False, False, False])
    assert stats.balanced(gold, said, ONES) == pytest.approx((1 / 3 + 1) / 2)
    # a resample without the second class
    assert np.isnan(stats.balanced(gold, said, np.array([1.0, 1.0, 1.0, 0.0])))


def test_auroc_counts_ordered_pairs_and_weights_them() -> None:
    gold, score = np.array([True, True, False, False]), np.array([0.9, 0.5, 0.5, 0.1])
    assert stats.auroc(gold, score)(ONES) == pytest.approx(3.5 / 4)
    assert stats.auroc(gold, score)(np.array([0.0, 1.0, 1.0, 0.0])) == pytest.approx(0.5)


def test_ece_is_the_gap_in_each_bin() -> None:
    assert stats.ece(
        np.array([0.95, 0.95, 0.15, 0.15]), np.array([1, 0, 0, 0]), ONES
    ) == pytest.approx(0.5 * 0.45 + 0.5 * 0.15)


def test_interval_resamples_whole_groups() -> None:
    right = np.array([1.0] * 50 + [0.0] * 50)
    by_row = stats.interval(lambda w: stats.accuracy(right, w), list(range(100)), 0)
    by_half = stats.interval(lambda w: stats.accuracy(right, w), ["a"] * 50 + ["b"] * 50, 0)
    assert by_row["value"] == by_half["value"] == 0.5
    # a resample of two groups may contain only one of them
    assert (by_half["low"], by_half["high"]) == (0.0, 1.0)
    assert 0.35 < (by_row["low"] or 0) < 0.5 < (by_row["high"] or 0) < 0.65


def test_wilson_interval_at_zero_is_not_empty() -> None:
    found = stats.wilson(0, 10)
    assert (found["value"], found["low"]) == (0.0, 0.0) and found["high"] == pytest.approx(
        0.2775, abs=1e-4
    )
    assert stats.wilson(0, 0)["value"] is None


def test_claims_are_matched_one_to_one_best_first() -> None:
    ours = [Counter("ada was born in london".split()), Counter("ada was born".split())]
    theirs = [Counter("ada was born in london".split())]
    # the second claim's F1 is .75, but the fact is already matched
    assert claims.pairs(ours, theirs, 0.6) == {0: 0}
    assert claims.pairs(ours[1:], theirs, 0.6) == {0: 0}
    assert claims.pairs(ours[1:], theirs, 0.8) == {}


def test_biographies_are_read_with_their_facts(tmp_path: Path) -> None:
    fact = {"text": "Ada was born in London.", "label": "S"}
    done = {"text": "Ada was born in London.", "human-atomic-facts": [fact]}
    rows: list[dict[str, Any]] = [
        {
            "input": "Tell me.",
            "topic": "Ada",
            "output": "Ada was born in London.",
            "annotations": [done, {"text": "Ha!"}],
        },
        {"input": "Tell me.", "topic": "Bo", "output": "I do not know.", "annotations": None},
    ]
    (tmp_path / "factscore_human").mkdir()
    write(tmp_path / "factscore_human" / "M.jsonl", rows)
    ada, bo = claims.read(tmp_path)
    assert ada.facts == (("Ada was born in London.", "S"),) and not ada.declined
    assert bo.facts == () and bo.declined
    measured = claims.measure(tmp_path, None, 0)
    assert measured["responses"] == 1 and measured["rules"]["F1 ≥ 0.75"]["recall"]["value"] == 1.0


class Says:
    """A verifier that labels a claim correct if it equals one of its evidence texts."""

    settings = Settings()

    def check_all(self, pairs: Any) -> list[Entailment]:
        return [
            Entailment(*((0.9, 0.05, 0.05) if claim in texts else (0.1, 0.1, 0.8)))
            for claim, texts in pairs
        ]

    def label(self, check: Entailment) -> str:
        return "correct" if check.support > 0.5 else "vague"


def half(group: str) -> int:
    return int(group[0])


def test_claims_of_any_tuned_half_are_left_out_of_the_held_out_halves() -> None:
    """The repeated claim is in both halves of "one", in the second half of "two", and the only
    claim of "three".
    """
    seen, new = (
        verdicts.Pair("Ada wrote.", ("a",), 0, "0"),
        verdicts.Pair("Bo sang.", ("b",), 1, "1"),
    )
    again = replace(seen, claim="ada  wrote", group="1")
    found = verdicts.halves(
        {"one": [seen, again], "two": [again, new, new], "three": [again]}, half
    )
    assert {
        name: (list(one.pairs["tuned on"]), list(one.pairs["kept aside"]), one.left_out)
        for name, one in found.items()
    } == {"one": ([seen], [], 1), "two": ([], [new, new], 1), "three": ([], [], 1)}
    cut = verdicts.halves({"one": [new, seen], "two": [again]}, half, limit=1)
    # claims beyond the limit also count as seen
    assert cut["two"].left_out == 1 and cut["one"].pairs["tuned on"] == []


def test_halves_that_are_empty_or_of_one_class_have_counts_and_no_rates() -> None:
    one = verdicts.Pair("Bo sang.", ("Bo sang.",), 0, "1")
    given = verdicts.halves({"FEVER-Symmetric": [one]}, half)
    found = verdicts.measure_halves(given["FEVER-Symmetric"], Says())  # type: ignore[arg-type]
    none = {"balanced_accuracy": None, "of_label_correct": None, "auroc": None}
    counts = ("n", "claims", "supported", "called_correct", "both")
    assert found["kept aside"] == {**none, **dict.fromkeys(counts, 1), "left_out": 0}
    assert found["tuned on"] == {**none, **dict.fromkeys(counts, 0)}
    agreed = verdicts.agreement(given, Says())["one short text"]  # type: ignore[arg-type]
    assert agreed["correct"]["n"] == 1 and agreed["rest"]["value"] is None
    assert readme.share(agreed["rest"]) == "–"


def test_no_claim_of_the_slices_is_in_both_halves(slices: Path) -> None:
    sets = {name: data.read(slices) for name, data in verdicts.SETS.items()}
    found = verdicts.halves(sets, faithful.half)
    seen, kept = (
        {verdicts.same(pair.claim) for one in found.values() for pair in one.pairs[name]}
        for name in verdicts.HALVES
    )
    assert seen and kept and not seen & kept
    assert {name for names in verdicts.EVIDENCE.values() for name in names} == set(sets)
    assert found["Fool Me Twice, retrieved"].left_out > 30


def test_stored_results_are_of_the_shipped_verifier_and_make_a_table() -> None:
    results = read_json(ROOT / "benchmarks" / "results" / "human_labels.json")
    adapter = (ROOT / "data" / "verifier" / "adapter.safetensors").read_bytes()
    assert results["verifier"]["sha256"] == hashlib.sha256(adapter).hexdigest()
    assert results["limit"] is None
    lines = table(results).split("\n\n")[0].splitlines()
    assert {line.count("|") for line in lines} == {6} and len(lines) > 20


def test_slices_are_in_the_form_the_readers_expect(slices: Path) -> None:
    assert all(data.read(slices) for data in verdicts.SETS.values())
    for read in spans.SETS.values():
        marked = read(slices)
        assert all(
            0 <= start < end <= len(one.response.text) for one in marked for start, end in one.spans
        )
        assert any(one.spans for one in marked)
    found = answers.measure_abstention(slices, 5)
    assert found["SelfAware, gold answers (should be 0)"]["value"] == 0.0
    assert len(answers.efficientqa(slices)) > 500


def test_docs_numbers_has_the_stored_rates_of_claims_by_rules() -> None:
    """The rates of the draws in docs/numbers.md are those of the stored results."""
    draws = read_json(ROOT / "benchmarks/results/human_labels.json")["faithful"]["kept aside"][
        "draws"
    ]
    [row] = re.findall(r"^\| nine samples .*\|$", (ROOT / "docs/numbers.md").read_text(), re.M)
    assert [cell.strip() for cell in row.split("|")[3:5]] == [
        ", ".join(f"{100 * draw[when]['value']:.0f}" for draw in draws)
        for when in ("first", "before")
    ]
