"""The benchmark against people's labels: readers and arithmetic on rows written here, and on
slices where there are any.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks import readme
from benchmarks.human import altered, answers, claims, faithful, spans, stats, systems, verdicts
from benchmarks.human_labels import table
from workbench.entailment import Check, Settings
from workbench.types import Claim, Feedback, Passage, Question, Response, Verdict

ROOT = Path(__file__).resolve().parent.parent
ONES = np.ones(4)


def write(path: Path, rows: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


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
    # two groups: all of one, or all of the other
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
    # the second one's F1 is .75, but the fact is taken
    assert claims.pairs(ours, theirs, 0.6) == {0: 0}
    assert (
        claims.pairs(ours[1:], theirs, 0.6) == {0: 0} and claims.pairs(ours[1:], theirs, 0.8) == {}
    )


def test_biographies_are_read_with_their_facts(tmp_path: Path) -> None:
    fact = {"text": "Ada was born in London.", "label": "S"}
    done = {"text": "Ada was born in London.", "human-atomic-facts": [fact]}
    rows = [
        {
            "input": "Tell me.",
            "topic": "Ada",
            "output": "Ada was born in London.",
            "annotations": [done, {"text": "Ha!"}],
        },
        {"input": "Tell me.", "topic": "Bo", "output": "I do not know.", "annotations": None},
    ]
    write(tmp_path / "factscore_human" / "M.jsonl", rows)
    ada, bo = claims.read(tmp_path)
    assert ada.facts == (("Ada was born in London.", "S"),) and not ada.declined
    assert bo.facts == () and bo.declined
    measured = claims.measure(tmp_path, None, 0)
    assert measured["responses"] == 1 and measured["rules"]["F1 ≥ 0.75"]["recall"]["value"] == 1.0


def test_claims_of_factcheck_gpt_have_all_their_evidence(tmp_path: Path) -> None:
    sentence = {
        "claims": ["A.", "B."],
        "auto_evidence": [["one", "two"], []],
        "claims_factuality_label": [False, "unknown"],
    }
    write(
        tmp_path / "factcheck_gpt" / "factcheck-GPT-benchmark.jsonl",
        [{"prompt": "q", "sentences": {"sentence1": sentence}}],
    )
    assert verdicts.factcheck_claims(tmp_path) == [verdicts.Pair("A.", ("one", "two"), 1, "q")]


def test_retrieved_evidence_holds_the_gold_evidence_once(tmp_path: Path) -> None:
    extracts = [{"text": "one", "section_header": "x"}, {"text": "two", "section_header": "x"}]
    row = {
        "text": "A.",
        "label": "REFUTES",
        "wikipedia_page": "P",
        "retrieved_evidence": extracts,
        "gold_evidence": extracts[:1],
    }
    write(tmp_path / "fool_me_twice" / "dev.jsonl", [row])
    [pair] = verdicts.fool_me_twice_retrieved(tmp_path)
    assert pair.passages == (Passage("0", "P", "one"), Passage("1", "P", "two")) and pair.label == 1


def test_overlap_is_the_share_of_the_claims_words() -> None:
    assert verdicts.overlap("The bridge is red", ["the bridge", "is green"]) == pytest.approx(0.75)
    assert verdicts.overlap("Ada", [Passage("1", "Ada", "She wrote.")]) == 1.0


def test_tokens_are_found_in_order() -> None:
    assert spans.token_spans("to go to", ["to", "go", "TO", "to"]) == [(0, 2), (3, 5), None, (6, 8)]


def test_errors_are_where_the_bad_claims_are() -> None:
    text = "It is red. It is tall and old."
    found = (
        Claim(0, "It is red.", sentence=0, span=(0, 9)),
        Claim(1, "It is tall", sentence=1, span=(11, 21)),
        Claim(2, "It is old", sentence=1, span=(11, 29)),
    )
    labels = (("correct", 0.9), ("wrong", 0.2), ("vague", 0.5))
    verdicts_ = tuple(
        Verdict(f"claim:{n}", "fact", label, p) for n, (label, p) in enumerate(labels)
    )
    row = Feedback(Response("1", Question("q", "?"), text), ((0, 10), (11, 30)), found, verdicts_)
    assert spans.claim_spans(row, spans.WRONG) == [(11, 21)]
    assert spans.sentence_spans(row, spans.UNSUPPORTED) == [(11, 30)]
    suspicion = spans.suspicion(row)
    assert (suspicion[0], suspicion[9], suspicion[12], suspicion[25]) == (
        pytest.approx(0.1),
        0,
        0.8,
        0.5,
    )
    gold = spans.mask(text, [(3, 9)])  # 5 of the first sentence's 10 characters
    assert (
        spans.marked_units(row.sentences, gold, 0.5) == [(0, 10)]
        and spans.marked_units(row.sentences, gold, 0.6) == []
    )
    assert [one.tolist() for one in spans.oracle([row], [row.sentences], [gold])] == [
        spans.mask(text, [(0, 10)]).tolist()
    ]


def test_squads_exact_match() -> None:
    em, contains = answers.MATCHERS["squad_em"], answers.MATCHERS["contains"]
    assert em("The  Beatles!", ["beatles"], "") and not em("the Beatles band", ["beatles"], "")
    assert contains("the Beatles band", ["Beatles"], "") and not contains("beat", ["Beatles"], "")


def test_matching_counts_each_judgement() -> None:
    rows = [
        answers.Judged("q1", ("1907",), "in 1907", "definitely correct"),
        answers.Judged("q1", ("1907",), "1908", "definitely incorrect"),
        answers.Judged("q2", ("Lyon",), "France", "possibly correct"),
    ]
    found = answers.measure_matching(rows, 0)
    assert [found["contains"]["accepted"][said]["value"] for said in answers.JUDGEMENTS] == [
        1.0,
        0.0,
        0.0,
    ]
    assert (
        found["contains"]["agreement"]["value"] == 1.0
        and found["squad_em"]["agreement"]["value"] == 0.5
    )


def test_claims_are_altered_in_one_thing_that_their_evidence_has() -> None:
    pair = verdicts.Pair(
        "The hall of 1931 has 420 seats, and cost $1900.",
        ("Opened in 1931, it has 420 seats; 1900 dollars.",),
        0,
        "g",
    )
    years = {altered.another_year(pair, Random(n)) for n in range(8)}
    assert years == {pair.claim.replace("1931", "1930"), pair.claim.replace("1931", "1932")}
    assert altered.another_year(replace(pair, passages=("Opened in 1932.",)), Random(0)) is None
    numbers = [altered.another_number(pair, Random(n)) for n in range(20)]
    assert all(one is None or ("1931" in one and one != pair.claim) for one in numbers) and any(
        numbers
    )


def test_an_absent_name_has_as_many_words_and_is_not_in_the_evidence() -> None:
    pair = verdicts.Pair("In 1931 Ada Kern met Bo.", ("Ada Kern met Bo in Leeds in 1931.",), 0, "g")
    texts = {altered.absent_name(pair, Random(n)) for n in range(20)}
    assert texts == {pair.claim.replace("Ada Kern", name) for name in altered.ABSENT[2]}
    assert altered.absent_name(replace(pair, passages=("It rained.",)), Random(0)) is None


def test_exchanged_roles_differ_from_the_true_claims() -> None:
    pairs = altered.exchanged_roles()
    assert len(pairs) == 80 and all(pair.claim != text and pair.label == 0 for pair, text in pairs)


class Says:
    """Calls a claim correct that its evidence holds whole; nothing else of a verifier is needed
    here.
    """

    settings = Settings()

    def check_all(self, pairs: Any) -> list[Check]:
        return [
            Check(*((0.9, 0.05, 0.05) if claim in texts else (0.1, 0.1, 0.8)))
            for claim, texts in pairs
        ]

    def label(self, check: Check) -> str:
        return "correct" if check.support > 0.5 else "vague"


def half(group: str) -> int:
    return int(group[0])


def test_a_claim_of_the_tuned_half_of_any_set_is_not_kept_aside() -> None:
    """In "one" it stands in both halves, by its words, and in "two" in the second half alone;
    "three" has nothing else.
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
    } == {
        "one": ([seen], [], 1),
        "two": ([], [new, new], 1),
        "three": ([], [], 1),
    }
    cut = verdicts.halves({"one": [new, seen], "two": [again]}, half, limit=1)
    # what is not measured was seen all the same
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


def test_people_agree_with_a_verdict_by_claim() -> None:
    """A. is called correct of three texts, rightly of one; B. is, rightly. C., which people
    support, is not called so; D. is not, and rightly. By claim: (1/3 + 1) / 2 of "correct", and
    1/2 of the rest."""
    rows = [
        ("A.", "A.", 0),
        ("A.", "A.", 1),
        ("A.", "A.", 2),
        ("B.", "B.", 0),
        ("C.", "-", 0),
        ("D.", "-", 1),
    ]
    pairs = [verdicts.Pair(claim, (text,), label, "1") for claim, text, label in rows]
    found = verdicts.agreement(verdicts.halves({"FEVER-Symmetric": pairs}, half), Says())[
        "one short text"
    ]  # type: ignore[arg-type]
    correct, rest = found["correct"], found["rest"]
    assert (correct["value"], correct["n"], correct["verdicts"]) == (
        pytest.approx(2 / 3, abs=1e-4),
        2,
        4,
    )
    assert (rest["value"], rest["n"], rest["verdicts"]) == (0.5, 2, 2)
    assert rest["low"] < 0.1 and rest["high"] > 0.9


def test_the_readme_tells_costs_and_what_was_left_out() -> None:
    ways = ("as it is", "without rules", "and without a deciding window")
    cells = {"altered": dict.fromkeys(ways, stats.wilson(0, 10))}
    cells |= {"whole": dict.fromkeys(ways, stats.wilson(5, 10))}
    halves = {
        way: {"FEVER-Symmetric": {"kept aside": {"both": both, "left_out": 3}}}
        for way, both in (("as it is", 7), ("without rules", 9))
    }
    by = {title: stats.wilson(n, 10) for title, n in (("correct", 8), ("rest", 7))}
    text = readme.verdicts(
        {
            "verdicts_halves": halves,
            "agreement": {way: {"one short text": by} for way in ways},
            "altered": {"a year by one": {"kept aside": cells}},
        }
    )
    assert "| *correct* (one short text) | 10 | 80% [49%, 94%] |" in text
    row = "| a year by one | 10 | 0% [0%, 28%] | 0% [0%, 28%] | 50% [24%, 76%] | 50% [24%, 76%] |"
    assert row in text
    assert "3 pairs" in text and "Of 9 right verdicts *correct* the rules took away 2." in text


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
    results = json.loads(
        (ROOT / "benchmarks" / "results" / "human_labels.json").read_text(encoding="utf-8")
    )
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


def test_claims_that_say_what_their_text_does_not_are_counted_by_label(tmp_path: Path) -> None:
    """Two responses with the claims a and b; c is wrong, and the rules make it no more."""
    file = tmp_path / "labels.tsv"
    rows = [("1", "a", 1, 1, 1), ("1", "c", 0, 1, 1), ("2", "b", 1, 0, 1), ("2", "d", 0, 1, 0)]
    lines = [
        ("response", "claim", "said", "before", "first"),
        *((i, faithful.digest(text), *rest) for i, text, *rest in rows),
    ]
    file.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")
    known = faithful.labels(file)
    told = faithful._draw(
        [Response("1", Question("q", "?"), ""), Response("2", Question("q", "?"), "")], known, 0
    )
    assert {
        name: (rate["claims"], rate["wrong"], rate["value"]) for name, rate in told.items()
    } == {
        "before": (3, 2, pytest.approx(2 / 3, abs=1e-4)),  # a, c and d
        "first": (3, 1, pytest.approx(1 / 3, abs=1e-4)),  # a, b and c
    }


def test_the_labels_of_claims_are_of_responses_that_say_them_or_not() -> None:
    """No text is in the file: ids, digests and marks alone; no claim is labelled twice, and
    every draw has its responses.
    """
    known = faithful.labels()
    rows = [row for some in known.values() for row in some]
    assert len(known) == 373 and all(re.fullmatch("[0-9a-f]{16}", row["claim"]) for row in rows)
    assert {row[mark] for row in rows for mark in ("said", "before", "first")} == {"0", "1"}
    assert len({(row["response"], row["claim"]) for row in rows}) == len(rows)


def test_the_pages_say_how_far_claims_by_rules_are_to_be_trusted() -> None:
    """The rates of the draws in docs/numbers.md are those of the stored results."""
    draws = json.loads((ROOT / "benchmarks/results/human_labels.json").read_text())["faithful"][
        "kept aside"
    ]["draws"]
    page = " ".join((ROOT / "docs/numbers.md").read_text().split())
    for when, said in (
        ("first", "of all kinds: {} of 100 claims"),
        ("before", "before they were mended {}."),
    ):
        *some, last = [f"{100 * draw[when]['value']:.0f}" for draw in draws]
        assert said.format(f"{', '.join(some)} and {last}") in page


def test_the_read_responses_are_in_the_slices(slices: Path) -> None:
    known = faithful.labels()
    drawn = [
        one.id
        for draws in faithful.GROUPS.values()
        for draw in draws
        for one in faithful.sample(slices, draw)
    ]
    assert set(drawn) == set(known) and len(drawn) == len(known)


def test_systems_come_in_peoples_order_or_not() -> None:
    """By people a is above b, 1 and 0.5; b's false statement is none of our claims, so that by
    these both have 1: no order.
    """
    rome, bonn = "Rome is the capital of Italy", "Bonn is the capital of Italy"
    rows = [
        ("a", "q", f"{rome}.", ((rome, True),)),
        ("b", "q", f"{rome}.", ((rome, True), ("Nothing like it was ever said", False))),
    ]
    told = systems.measure_set(rows, 0)
    assert [told["systems"][name]["people"]["value"] for name in "ab"] == [1.0, 0.5]
    assert [told["systems"][name]["ours"]["value"] for name in "ab"] == [1.0, 1.0] and told[
        "pairs"
    ] == {"n": 1, "same": 0}
    told = systems.measure_set(
        [rows[0], ("b", "q", f"{bonn}.", ((bonn, False),)), ("b", "q2", "!", ((bonn, True),))], 0
    )
    assert told["systems"]["b"]["ours"] == {"value": 0.0, "low": 0.0, "high": 0.0, "n": 1}
    assert told["systems"]["b"]["people"]["value"] == 0.5 and told["pairs"] == {"n": 1, "same": 1}


def test_what_asking_in_doubt_takes_and_brings() -> None:
    """Of six answers three are doubtful, two from 0.2 on; of three right ones two are refused;
    both, or one, are seen.
    """
    told = answers._asking(
        [0.99, 0.3, 0.3, 0.15, 0.03, 0.03], [True, True, False, True, False, False]
    )
    assert [told[band]["calls"]["value"] for band in answers.BANDS] == [0.5, round(2 / 6, 4)]
    assert [told[band]["asked of the right ones refused"]["value"] for band in answers.BANDS] == [
        1.0,
        0.5,
    ]
