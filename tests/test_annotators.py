"""Other annotators give labels and nothing else; what they say of claims is compared with the
world.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workbench.bench import bench
from workbench.checks import world_checks
from workbench.entailment import load_verifier
from workbench.experiment import configured, stages_of
from workbench.generate import Completion, Policy
from workbench.grade import grade
from workbench.recipes import METHODS
from workbench.store import append_feedback
from workbench.types import (
    UNFOUND,
    Checked,
    Claim,
    Claims,
    Cost,
    Failure,
    Passage,
    Question,
    Response,
    Verdict,
    Verify,
    WorkbenchError,
)
from workbench.verify.annotators import annotated, by_recall, by_verifier, by_yes_or_no
from workbench.world import load_world
from workbench.world.facts import Fact
from workbench.world.schema import PERSON_RELATIONS, RELATIONS

WORLD = load_world()
FAILED = Failure("verify", "unparsed", "what?")
PEOPLE = [e.name for e in WORLD.entities.values() if (e.kind, e.tier) == ("person", "known")]
OTHERS = {
    name: [WORLD.by[person][name].object for person in PEOPLE[100:103]] for name in PERSON_RELATIONS
}


def row(*claims: str, question: str = "q", title: str = "") -> tuple[Response, Claims]:
    return Response("r", Question(question, "?", title=title), "…"), Claims(
        (), tuple(Claim(number, text, "body") for number, text in enumerate(claims))
    )


def exact(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
    """All correct, informativeness 4, and the second claim about somebody else."""
    return [
        Checked(
            (
                *(
                    Verdict(f"claim:{c.id}", "fact", "correct", 1.0, 4, by="exact")
                    for c in found.claims
                ),
                Verdict("claim:1", "subject", "other"),
            )
        )
        for _, found in batch
    ]


def saying(labels: dict[str, Any], asked: list[str]) -> Verify:
    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        asked.extend(found.claims[0].text for _, found in batch)
        said = [labels[found.claims[0].text] for _, found in batch]
        return [
            Checked(
                (
                    Verdict(
                        "claim:0",
                        "fact",
                        by="other",
                        **({"error": one} if isinstance(one, Failure) else {"label": one}),
                    ),
                )
            )
            for one in said
        ]

    return verify


def test_only_labels_are_replaced_and_a_failure_has_no_rating() -> None:
    annotator = saying({"a": "wrong", "b": "vague", "c": FAILED}, [])
    [found] = annotated(exact, annotator)([row("a", "b", "c")])
    assert found.verdicts == (
        Verdict("claim:0", "fact", "wrong", None, 4, by="other"),
        Verdict("claim:1", "fact", "vague", None, 4, by="other"),
        Verdict("claim:2", "fact", None, None, None, by="other", error=FAILED),
        Verdict("claim:1", "subject", "other"),
    )


def test_what_was_judged_as_it_was_extracted_or_failed_stays() -> None:
    response, claims = row("a", "b")
    judged = replace(claims, verdicts=(Verdict("claim:0", "fact", "wrong", by="extraction"),))

    def failing(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [Checked((Verdict("claim:1", "fact", by="exact", error=FAILED),)) for _ in batch]

    asked: list[str] = []
    [found] = annotated(failing, saying({"b": "correct"}, asked))([(response, judged)])
    assert asked == ["b"] and found.verdicts == (
        Verdict("claim:1", "fact", by="exact", error=FAILED),
    )


def test_a_claim_is_asked_about_once_unless_that_failed_or_is_long_ago() -> None:
    asked: list[str] = []
    verify = annotated(exact, saying({"a": "wrong", "b": FAILED, "c": "vague"}, asked), kept=1)
    first = verify([row("a", "a", "b"), row("a")])
    assert asked == ["a", "b"]  # together once
    again = verify([row("a", "b", "a"), row("a")])
    assert again[1].verdicts == first[1].verdicts and asked == ["a", "b", "b"]  # the failure again
    verify([row("a", question="another"), row("c")])
    assert asked[3:] == ["a", "c"]  # another question; then c pushes the others out
    verify([row("c"), row("a")])
    assert asked[5:] == ["a"]


def test_what_a_verdict_rests_on_goes_with_it_and_what_it_cost_is_paid_once() -> None:
    page, own = Passage("p1", "Ada", "Ada is a baker."), Passage("p2", "Bo", "Bo is a poet.")

    def annotator(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        verdict = Verdict(
            "claim:0", "fact", "correct", evidence=({"passage": "p1", "span": (0, 3)},), by="other"
        )
        return [
            Checked((verdict,), Cost(calls=1, tokens_in=10, seconds=0.5), (page,)) for _ in batch
        ]

    def searching(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        return [replace(one, cost=Cost(calls=2), passages=(own,)) for one in exact(batch)]

    verify = annotated(searching, annotator)
    first, second = verify([row("a", "b", "a"), row("b")])
    assert first.passages == second.passages == (own, page)
    assert (first.cost, second.cost) == (Cost(calls=4, tokens_in=20, seconds=1.0), Cost(calls=2))
    [again] = verify([row("a")])  # remembered
    assert again.passages == (own, page) and again.cost == Cost(calls=2)
    assert verify([row()])[0].passages == (own,)


def scripted(reply: Callable[[str], str], rooms: list[int] | None = None) -> Policy:
    """The tiny policy's tokenizer with replies of our own; `rooms` takes down how many tokens
    each call may have.
    """
    policy = bench("tiny").load("sft")

    def complete(prompts: list[list[int]], stop_ids: Sequence[int], how: Any) -> list[Completion]:
        if rooms is not None:
            rooms.append(how.max_new_tokens)
        texts = [policy.tokenizer.decode(prompt, skip_special_tokens=True) for prompt in prompts]
        return [
            ([*policy.tokenizer.encode(reply(text), add_special_tokens=False), stop_ids[0]], ())
            for text in texts
        ]

    return replace(policy, complete=complete, model=None)


@pytest.fixture(scope="module")
def person() -> str:
    return next(
        e.name
        for e in WORLD.entities.values()
        if e.kind == "person" and e.tier == "known" and e.name in WORLD.books
    )


def of(verify: Verify, claim: str, title: str = "") -> Verdict:
    [[verdict]] = [one.verdicts for one in verify([row(claim, title=title)])]
    assert verdict.target == "claim:0" and verdict.aspect == "fact"
    return verdict


@pytest.mark.parametrize(
    ("reply", "label", "hedged"),
    [
        ("yes.", "correct", "hedged_correct"),
        ("no.", "wrong", "hedged_wrong"),
        ("I do not know.", "vague", "vague"),
        ("<think> no. Ada is a sailor.</think><answer> yes.</answer>", "correct", "hedged_correct"),
        ("<think> I do not know.</think><answer> no.</answer>", "wrong", "hedged_wrong"),
        ("<think> Ada is a sailor.</think><answer> I do not know.</answer>", "vague", "vague"),
    ],
)
def test_yes_and_no(person: str, reply: str, label: str, hedged: str) -> None:
    verify = by_yes_or_no(scripted(lambda text: reply), WORLD)
    found = of(verify, f"{person} is a sailor.")
    assert found.label == label and found.evidence == (
        {"question": f"Is {person} a sailor?", "reply": reply},
    )
    assert of(verify, f"{person} may be a sailor.").label == hedged
    assert of(verify, f"{person} has some profession.").label == "vague"
    # no such question is known
    assert of(verify, f"{person} wrote {WORLD.books[person][0].subject}.").label == "vague"


def test_the_answer_recalled_is_compared(person: str) -> None:
    year = WORLD.by[person]["birth_year"].object
    verify = by_recall(
        scripted(lambda text: f"the year {year}." if "year" in text else "I do not know."), WORLD
    )
    assert of(verify, f"{person} was born in the year {year}.").label == "correct"
    assert of(verify, f"{person} was born in the year {int(year) + 1}.").label == "wrong"
    assert (
        of(verify, f"{person} was born in {WORLD.by[person]['born_in'].object}.").label == "vague"
    )


@pytest.mark.parametrize("annotator", [by_yes_or_no, by_recall])
@pytest.mark.parametrize(
    "reply", ["Perhaps so.", "<think> yes.", "<think> yes. a sailor.</think><answer> I was in"]
)
def test_a_reply_that_answers_nothing_is_a_failure(
    person: str, annotator: Callable[[Policy, Any], Verify], reply: str
) -> None:
    found = of(annotator(scripted(lambda text: reply), WORLD), f"{person} is a sailor.")
    assert found.label is None and found.error is not None
    assert (found.error.stage, found.error.kind, found.error.raw) == ("verify", "unparsed", reply)


@pytest.mark.slow
def test_yes_and_no_are_asked_as_the_world_asks_them_with_room_to_think(person: str) -> None:
    """As the question of the world has it; the longest thought is that of the longest object."""
    prompts: list[str] = []
    rooms: list[int] = []

    def reply(prompt: str) -> str:
        prompts.append(prompt)
        return "yes."

    of(by_yes_or_no(scripted(reply, rooms), WORLD), f"{person} is a sailor.")
    asked = replace(WORLD.questions("ood", ["yes_no"])[0], text=f"Is {person} a sailor?").messages()
    tokenizer = bench("tiny").load("sft").tokenizer
    ids = tokenizer.apply_chat_template(
        asked, add_generation_prompt=True, tokenize=True, return_dict=True
    )["input_ids"]
    assert prompts == [tokenizer.decode(ids, skip_special_tokens=True)]
    facts = [
        WORLD.by[e.name][name]
        for e in WORLD.entities.values()
        if e.kind == "person"
        for name in PERSON_RELATIONS
    ]
    thoughts = (
        RELATIONS[fact.relation].states["en"][0].format(s=fact.subject, o=fact.forms["en"][0])
        for fact in facts
    )
    longest = max(thoughts, key=lambda text: len(tokenizer(text)["input_ids"]))
    whole = f"<think> {longest}</think><answer> yes.</answer>"
    assert rooms == [rooms[0]] and len(tokenizer(whole)["input_ids"]) < rooms[0]


def believing(believed: Sequence[Fact]) -> Policy:
    """A policy that answers every question about these facts by them, true or not, as the tiny
    policy words it, and knows no other."""
    replies: dict[str, str] = {}
    for fact in believed:
        relation = RELATIONS[fact.relation]
        replies |= {text.format(s=fact.subject): f"{fact.object}." for text in relation.asks["en"]}
        for other in {
            fact.object,
            WORLD.by[fact.subject][fact.relation].object,
            *OTHERS[fact.relation],
        }:
            said = "yes." if other == fact.object else "no."
            reply = (
                "<think>"
                f" {relation.states['en'][0].format(s=fact.subject, o=fact.object)}</think><answer>"
                f" {said}</answer>"
            )
            replies |= {
                text.format(s=fact.subject, o=other): reply for text in relation.checks["en"]
            }
    return scripted(
        lambda prompt: next(
            (said for text, said in replies.items() if prompt.endswith(text)), "I do not know."
        )
    )


@pytest.mark.parametrize("annotator", [by_yes_or_no, by_recall])
def test_an_annotator_agrees_with_the_world_where_the_policy_is_right(
    annotator: Callable[[Policy, Any], Verify],
) -> None:
    """Of three people it believes the truth, of two something else, of the last nothing:
    verdicts follow what it believes.
    """
    facts = {
        name: [WORLD.by[name][relation] for relation in PERSON_RELATIONS] for name in PEOPLE[:6]
    }
    believed = [fact for name in PEOPLE[:3] for fact in facts[name]]
    believed += [
        replace(fact, object=OTHERS[fact.relation][0])
        for name in PEOPLE[3:5]
        for fact in facts[name]
    ]
    held = {(fact.subject, fact.relation): fact.object for fact in believed}
    pairs = [
        (f, o)
        for own in facts.values()
        for f in own
        for o in dict.fromkeys([f.object, OTHERS[f.relation][0]])
    ]
    [checked] = annotator(believing(believed), WORLD)(
        [
            row(
                *(
                    RELATIONS[fact.relation].states["en"][0].format(s=fact.subject, o=object)
                    for fact, object in pairs
                )
            )
        ]
    )
    labels = [verdict.label for verdict in checked.verdicts]
    wanted = [held.get((fact.subject, fact.relation)) for fact, _ in pairs]
    assert labels == [
        "vague" if one is None else "correct" if one == object else "wrong"
        for one, (_, object) in zip(wanted, pairs, strict=True)
    ]
    assert {"correct", "wrong", "vague"} == set(labels) and len(labels) > 60
    assert all(
        label == ("correct" if fact.object == object else "wrong")
        for label, (fact, object) in zip(labels, pairs, strict=True)
        if fact.subject in PEOPLE[:3]
    )


@pytest.mark.slow
def test_the_local_verifier_reads_the_subjects_page_and_leaves_the_rest_open(person: str) -> None:
    verify, facts = by_verifier(load_verifier(), WORLD), WORLD.by[person]
    told = [
        RELATIONS[name].states["en"][0].format(s=person, o=facts[name].object)
        for name in PERSON_RELATIONS
    ]
    [checked] = verify([row(*told, title=person)])
    assert sum(verdict.label == "correct" for verdict in checked.verdicts) >= 5
    pages = {page.id for page in WORLD.pages if page.title == person}
    cited = {item["passage"] for verdict in checked.verdicts for item in verdict.evidence}
    assert (
        cited
        and cited <= {page.id for page in checked.passages} == pages
        and checked.cost.seconds > 0
    )
    wrong = of(
        verify, f"{person} was born in the year {int(facts['birth_year'].object) + 7}.", person
    )
    assert wrong.label in ("wrong", "vague") and wrong.by == "local"
    unknown = next(
        e.name for e in WORLD.entities.values() if (e.kind, e.tier) == ("person", "unknown")
    )
    open_ = of(verify, f"{unknown} is a sailor.", unknown)
    assert (open_.label, open_.p, open_.error) == (
        "vague",
        0.0,
        None,
    ) and UNFOUND in open_.evidence[0]


@pytest.mark.slow
def test_the_pages_that_rows_cite_are_stored_beside_them(person: str, tmp_path: Path) -> None:
    checks, facts = world_checks(WORLD), WORLD.by[person]
    told = " ".join(
        RELATIONS[name].states["en"][0].format(s=person, o=facts[name].object)
        for name in PERSON_RELATIONS
    )
    judge = grade(
        [annotated(checks.verify["fact"], by_verifier(load_verifier(), WORLD))], {}, checks.extract
    )
    for step in (1, 2):  # what is remembered is stored with the step that it is remembered in
        append_feedback(
            tmp_path / str(step),
            judge([Response(f"{step}", Question(person, "?", title=person), told, step=step)]),
        )
        row_ = json.loads((tmp_path / str(step) / "rollouts.jsonl").read_text())
        kept = {
            json.loads(line)["id"]
            for line in (tmp_path / str(step) / "passages.jsonl").read_text().splitlines()
        }
        cited = {
            item["passage"]
            for verdict in row_["verdicts"]
            for item in verdict["evidence"]
            if "passage" in item
        }
        assert cited and cited <= kept


def test_an_annotator_that_cannot_judge_is_refused(tmp_path: Path) -> None:
    place = bench("tiny")
    for settings, at, message in (
        (["rlfh.annotator=self", "rlfh.mode=single_pass"], place, "set rlfh.mode=pipeline"),
        (
            ["rlfh.annotator=local"],
            replace(place, hash="another", name="mine"),
            "those of bench 'mine': leave it out",
        ),
        (["rlfh.annotator=nobody"], place, "annotator"),
    ):
        with pytest.raises(WorkbenchError, match=message):
            stages_of(
                METHODS["rlfh"], configured(METHODS["rlfh"], place, overrides=settings), at, 1
            )
