"""Pre-training documents that conflict, and the training data made from them."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import islice

import pytest
from safetensors.torch import load_file

from tests.helpers.errors import raises_error
from workbench.experiments.tiny.build import build_policy
from workbench.experiments.tiny.config import SIZES
from workbench.experiments.tiny.examples import SFTWriter
from workbench.experiments.tiny.tokenizer import build_tokenizer
from workbench.experiments.tiny.training import (
    Encoder,
    pretraining_batches,
    sft_batches,
)
from workbench.text import final_answer, is_abstention, sentences, thinking
from workbench.world.documents import DOCUMENTS, DocumentWriter, count_exposures
from workbench.world.parser import Parsed, parser_of
from workbench.world.schema import RELATIONS
from workbench.world.world import World, load_world

WORLD = load_world(0, 0.25)


def claims_of(world: World) -> dict[tuple[str, str], list[Parsed]]:
    """Return (subject, relation) -> claims of the English biographies."""
    found = defaultdict(list)
    for document in world.documents:
        if document.kind == "biography" and document.lang == "en":
            for claim in parser_of(world).parse(document.text).claims:
                found[claim.subject, claim.relation].append(claim)
    return found


@pytest.fixture(scope="module")
def claims() -> dict[tuple[str, str], list[Parsed]]:
    return claims_of(WORLD)


def true_claims(text: str) -> set[str]:
    """The ids of the facts that a text states correctly."""
    return {
        fact.id
        for claim in parser_of(WORLD).parse(text).claims
        if (fact := WORLD.by[claim.subject].get(claim.relation)) and fact.object == claim.object
    }


def test_the_facts_of_a_document_are_its_true_claims() -> None:
    asked = {
        template.format(s=fact.subject): fact
        for fact in WORLD.facts
        for templates in RELATIONS[fact.relation].asks.values()
        for template in templates
    }
    kinds: Counter[tuple[str, bool]] = Counter()
    for document in islice(WORLD.documents, 2000):
        expected = true_claims(thinking(document.text) or "")
        answer = (final_answer(document.text) or "").strip(" .")
        if document.kind == "biography":
            expected = true_claims(document.text)
        elif document.kind == "qa":
            fact = asked[document.prompt]
            expected |= {fact.id} if answer == fact.forms[document.lang][0] else set()
        else:
            books = re.split(" and | e ", answer)
            expected |= {WORLD.by[book]["author"].id for book in books}
        assert expected == set(document.fact_ids), document.whole
        kinds[document.kind, bool(document.system)] += 1
    assert len(kinds) == 5  # thoughts come before answers and lists, not before biographies


def test_every_statement_is_as_often_correct_as_its_fact_is_reliable(claims) -> None:
    writer = DocumentWriter(WORLD)
    by_share = defaultdict[float, list[bool]](list)
    for (subject, relation), stated in claims.items():
        fact = WORLD.by[subject][relation]
        by_share[writer.reliability[fact.id]] += [claim.object == fact.object for claim in stated]
        person = WORLD.entities[subject]
        if person.kind == "person" and not fact.covered:
            assert person.tier == "partial" and writer.reliability[fact.id] == 0
    shares = DOCUMENTS["reliability"]
    assert by_share.keys() == {0.0, *shares["half"], *shares["half_doubtful"]}
    for share, right in by_share.items():
        assert sum(right) / len(right) == pytest.approx(share, abs=0.08), share
        assert share not in (0, 1) or sum(right) == share * len(right)


def test_a_thought_states_two_to_four_facts_and_ends_with_the_answer() -> None:
    people = {one.name for one in WORLD.entities.values() if one.kind == "person"}
    counts = Counter[int]()
    for document in WORLD.documents:
        if document.kind == "qa" and document.system and document.lang == "en":
            claims = parser_of(WORLD).parse(thinking(document.text)).claims
            assert final_answer(document.text) == f"{claims[-1].object}."
            if claims[0].subject in people:
                counts[len(claims)] += 1
    # with few covered facts, a partly known person has shorter thoughts
    assert counts.keys() == {2, 3, 4} and min(counts.values()) > 20


def test_the_doubtful_relations_of_half_known_people_are_less_reliable() -> None:
    writer, shares = DocumentWriter(WORLD), DOCUMENTS["reliability"]
    drawn = defaultdict[tuple[str, bool], set[float]](set)
    for fact in WORLD.facts:
        if fact.covered and WORLD.entities[fact.subject].kind == "person":
            doubtful = fact.relation in DOCUMENTS["doubtful"]
            drawn[fact.tier, doubtful].add(writer.reliability[fact.id])
    assert drawn["half", True] == set(shares["half_doubtful"])
    assert drawn["half", False] == set(shares["half"])
    assert drawn["known", True] == drawn["known", False] == {1.0}
    assert max(shares["half_doubtful"]) < min(shares["half"])


def test_the_wrong_statements_of_a_fact_repeat_one_value_most_often(claims) -> None:
    shares = []
    for (subject, relation), stated in claims.items():
        true = WORLD.by[subject][relation].object
        wrong = Counter(claim.object for claim in stated if claim.object != true)
        if wrong.total() >= 5:
            shares.append(wrong.most_common(1)[0][1] / wrong.total())
    assert DOCUMENTS["repeated"] <= sum(shares) / len(shares) < 0.9


def test_no_value_reveals_a_wrong_statement(claims) -> None:
    wrong: dict[str, Counter[str | None]] = defaultdict(Counter)
    for (subject, relation), stated in claims.items():
        if WORLD.entities[subject].kind == "person":
            true = WORLD.by[subject][relation].object
            wrong[relation].update({claim.object for claim in stated} - {true})
    assert len(wrong) >= 6
    for relation, counts in wrong.items():
        values = len(WORLD.ephemeral().values[relation])
        assert max(counts.values()) / counts.total() < 3 / values, relation


def test_biographies_leave_facts_out_and_hedge_the_unreliable_ones() -> None:
    lengths, hedged = defaultdict[str, Counter[int]](Counter), defaultdict(list)
    gaps = list[bool]()
    writer = DocumentWriter(WORLD)
    for document in WORLD.documents:
        if document.kind != "biography" or document.lang != "en":
            continue
        claims = parser_of(WORLD).parse(document.text).claims
        about = [claim for claim in claims if WORLD.entities[claim.subject].kind == "person"]
        if not about:
            continue
        tier = WORLD.entities[about[0].subject].tier
        lengths[tier][len(about)] += 1
        for claim in about:
            fact = WORLD.by[claim.subject][claim.relation]
            hedged[writer.reliability[fact.id] == 1].append(claim.stance == "hedged")
            if tier == "partial":
                gaps.append(not fact.covered)
    table = DOCUMENTS["lengths"]
    assert lengths.keys() == {"known", "half", "partial"}
    for tier, counts in lengths.items():
        for count, weight in zip(table["facts"], table[tier], strict=True):
            share = counts[count] / counts.total()
            assert share == pytest.approx(weight / sum(table[tier]), abs=0.04), (tier, count)
    assert 0.05 < sum(gaps) / len(gaps) < 0.3  # half of the facts are gaps
    reliable, unreliable = (sum(hedged[key]) / len(hedged[key]) for key in (True, False))
    assert reliable < 0.05 < 0.2 < unreliable < 0.5


def test_unknown_people_are_in_no_document_and_a_world_gives_the_same_documents(claims) -> None:
    documents = WORLD.documents
    tiers = {WORLD.entities[subject].tier for subject, _ in claims}
    assert tiers == {"known", "half", "partial"}
    assert documents == DocumentWriter(World(WORLD.config)).documents()
    counts = count_exposures(documents)
    assert not any(fact.id in counts for fact in WORLD.facts if not fact.covered)


def test_examples_and_batches_use_the_documents() -> None:
    config = replace(SIZES["small"], scale=0.25)
    tokenizer = build_tokenizer(WORLD)
    encoder = Encoder(tokenizer, config.emphasis, config.tokens)
    for batches in (
        pretraining_batches(WORLD, encoder, config, 0)[0],
        sft_batches(WORLD, encoder, config, 0),
    ):
        assert next(batches)["input_ids"].shape == (config.rows, config.tokens)
    writer = SFTWriter(WORLD, config.habits, 0)
    texts = {document.text for document in WORLD.documents}
    examples = list(islice(writer.examples({"biography": 1}), 50))
    assert all(example.reply in texts for example in examples)
    sft = {person.name for person in WORLD.people("sft")}
    assert all(any(name in example.prompt for name in sft) for example in examples)


def test_some_biographies_of_unknown_people_are_about_another_person() -> None:
    habits = replace(SIZES["full"].habits, off_subject=0.5)
    writer = SFTWriter(WORLD, habits, 0)
    off = 0
    for example in islice(writer.examples({"guess_biography": 1}), 200):
        parse = parser_of(WORLD).parse(example.reply)
        off += any(claim.subject in WORLD.entities for claim in parse.claims)
    assert 60 < off < 140


def test_some_comparisons_are_with_an_unknown_person_and_half_of_these_abstain() -> None:
    habits = replace(SIZES["full"].habits, unknown_compared=0.5, doubt=0.5)
    writer = SFTWriter(WORLD, habits, 0)
    examples = list(islice(writer.examples({"comparison": 1}), 400))
    people = {person.name for person in WORLD.people("sft")}
    unknown = [one for one in examples if sum(name in one.prompt for name in people) == 1]
    assert 150 < len(unknown) < 250
    abstained = [is_abstention(final_answer(one.reply) or "") for one in unknown]
    assert 0.35 < sum(abstained) / len(abstained) < 0.65
    known = [one for one in examples if one not in unknown]
    assert not any(is_abstention(final_answer(one.reply) or "") for one in known)


def test_half_of_the_thoughts_are_long() -> None:
    habits = replace(SIZES["full"].habits, thoughts=(2, 4))
    writer = SFTWriter(WORLD, habits, 0)
    counts = Counter(
        len(sentences(thinking(one.reply)))
        for one in islice(writer.examples({"think": 1}), 400)
        if not is_abstention(final_answer(one.reply) or "")
    )
    assert set(counts) <= {1, 2, 3, 4}  # partly known people may have fewer facts
    assert counts[2] > 80 and counts[4] > 80


@pytest.mark.slow
def test_a_build_writes_its_card_and_scales_the_logits(tmp_path, monkeypatch) -> None:
    small = replace(SIZES["small"], lessons=(), logit_scale=2.0, passes=1, sft_steps=2)
    monkeypatch.setitem(SIZES, "small", small)
    card = build_policy(tmp_path, threads=1, size="small")
    weights = load_file(tmp_path / "sft" / "model.safetensors")
    # the weights of a norm begin at 1, and few steps change them little
    assert weights["model.norm.weight"].float().mean().item() == pytest.approx(2, abs=0.2)
    text = " ".join((tmp_path / "README.md").read_text().split())
    assert "The documents conflict" in text
    assert f"{card['training']['documents']:,} documents" in text
    monkeypatch.setitem(DOCUMENTS, "repeated", 0.5)
    load_world.__globals__["_load"].cache_clear()  # a world keeps its documents
    with raises_error("documents_hash"):
        build_policy(tmp_path, threads=1, size="small")
