"""RLFH annotators replace only labels; their labels are compared with the closed world."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.helpers import examples
from tests.helpers.errors import raises_error
from tests.helpers.world_names import names
from workbench.methods.bench import bench
from workbench.methods.rlfh.annotators import OPPOSITE, annotated, by_verifier, flipped
from workbench.methods.rlfh.config import RLFH
from workbench.methods.rlfh.reward import reward
from workbench.methods.rlfh.self_judging import by_recall, by_yes_or_no
from workbench.policies.generate import Completion, Policy
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
)
from workbench.verifier import load_verifier
from workbench.world import load_world
from workbench.world.parser import parser_of
from workbench.world.schema import PERSON_RELATIONS, RELATIONS

WORLD = load_world()
FAILED = Failure("verify", "unparsed", "what?")
PEOPLE = names(WORLD, "person", "known")
OTHERS = {  # per relation, an object that the first three people do not have
    name: next(
        WORLD.by[other][name].object
        for other in PEOPLE[100:]
        if WORLD.by[other][name].object not in {WORLD.by[one][name].object for one in PEOPLE[:3]}
    )
    for name in PERSON_RELATIONS
}


def row(*claims: str, question: str = "q", title: str = "") -> tuple[Response, Claims]:
    return Response("r", Question(question, "?", title=title), "…"), Claims(
        (), tuple(Claim(number, text, "body") for number, text in enumerate(claims))
    )


def exact(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
    """Label all claims correct, informativeness 4, and the second claim off-subject."""
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


def saying(labels: dict[str, str | Failure], asked: list[str]) -> Verify:
    def judged(text: str) -> Verdict:
        asked.append(text)
        found, verdict = labels[text], Verdict("claim:0", "fact", by="other")
        if isinstance(found, Failure):
            return replace(verdict, error=found)
        return replace(verdict, label=found)

    return lambda batch: [Checked((judged(found.claims[0].text),)) for _, found in batch]


def test_only_labels_are_replaced_and_a_failure_has_no_rating() -> None:
    annotator = saying({"a": "wrong", "b": "vague", "c": FAILED}, [])
    [found] = annotated(exact, annotator)([row("a", "b", "c")])
    assert found.verdicts == (
        Verdict("claim:0", "fact", "wrong", None, 4, by="other"),
        Verdict("claim:1", "fact", "vague", None, 4, by="other"),
        Verdict("claim:2", "fact", None, None, None, by="other", error=FAILED),
        Verdict("claim:1", "subject", "other"),
    )


def test_labels_are_cached_and_failures_are_retried() -> None:
    asked: list[str] = []
    verify = annotated(exact, saying({"a": "wrong", "b": FAILED}, asked))
    first = verify([row("a", "a", "b"), row("a")])
    assert asked == ["a", "b"]  # once per batch
    again = verify([row("a", "b", "a"), row("a")])
    assert again[1].verdicts == first[1].verdicts and asked == ["a", "b", "b"]  # a retry
    verify([row("a", question="another")])
    assert asked[3:] == ["a"]


def test_cached_verdicts_keep_their_passages_and_costs_are_counted_once() -> None:
    page, own = Passage("p1", "Ada", "Ada is a baker."), Passage("p2", "Bo", "Bo is a poet.")

    def annotator(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        verdict = Verdict(
            "claim:0", "fact", "correct", evidence=({"passage": "p1", "span": (0, 3)},), by="other"
        )
        return [
            Checked((verdict,), Cost(calls=1, tokens_in=10, seconds=0.5), (page,)) for _ in batch
        ]

    verify = annotated(
        lambda batch: [replace(one, cost=Cost(calls=2), passages=(own,)) for one in exact(batch)],
        annotator,
    )
    first, second = verify([row("a", "b", "a"), row("b")])
    assert first.passages == second.passages == (own, page)
    assert (first.cost, second.cost) == (Cost(calls=4, tokens_in=20, seconds=1.0), Cost(calls=2))
    [again] = verify([row("a")])  # cached
    assert again.passages == (own, page) and again.cost == Cost(calls=2)
    assert verify([row()])[0].passages == (own,)


def scripted(reply: Callable[[str], str], asked: list[str] | None = None) -> Policy:
    """The tiny policy with scripted replies; `asked` gets the prompts."""
    policy = bench("tiny").load("sft")

    def complete(prompts: list[list[int]], stop_ids: Sequence[int], how: Any) -> list[Completion]:
        texts = [policy.tokenizer.decode(prompt, skip_special_tokens=True) for prompt in prompts]
        if asked is not None:
            asked.extend(texts)
        return [
            ([*policy.tokenizer.encode(reply(text), add_special_tokens=False), stop_ids[0]], ())
            for text in texts
        ]

    return replace(policy, complete=complete, model=None)


@pytest.fixture(scope="module")
def person() -> str:
    return next(name for name in PEOPLE if name in WORLD.books)


def of(verify: Verify, claim: str, title: str = "") -> Verdict:
    [[verdict]] = [one.verdicts for one in verify([row(claim, title=title)])]
    assert verdict.target == "claim:0" and verdict.aspect == "fact"
    return verdict


@pytest.mark.parametrize(("reply", "label", "hedged"), examples("yes_and_no"))
def test_yes_and_no(person: str, reply: str, label: str, hedged: str) -> None:
    prompts: list[str] = []
    verify = by_yes_or_no(scripted(lambda text: reply, prompts), WORLD)
    [checked] = verify([row(f"{person} is a sailor.")])
    [found], [passage] = checked.verdicts, checked.passages
    stated = parser_of(WORLD).parse(passage.text).claims
    assert [(one.subject, one.relation) for one in stated] == [(person, "profession")]
    assert found.label == label and found.evidence[0] == {
        "question": f"Is {person} a sailor?",
        "reply": reply,
    }
    assert found.evidence[1]["passage"] == passage.id
    [prompt] = prompts
    assert passage.text in prompt
    assert of(verify, f"{person} may be a sailor.").label == hedged
    assert of(verify, f"{person} has some profession.").label == "vague"
    unknown = names(WORLD, "person", "unknown")[0]  # has no page
    assert of(verify, f"{unknown} is a sailor.").label == "vague"
    # this claim has no yes/no question
    assert of(verify, f"{person} wrote {WORLD.books[person][0].subject}.").label == "vague"


@pytest.mark.parametrize("annotator", [by_yes_or_no, by_recall])
@pytest.mark.parametrize(
    "reply", ["Perhaps so.", "<think> yes.", "<think> yes. a sailor.</think><answer> I was in"]
)
def test_a_reply_without_an_answer_is_a_failure(
    person: str, annotator: Callable[[Policy, Any], Verify], reply: str
) -> None:
    found = of(annotator(scripted(lambda text: reply), WORLD), f"{person} is a sailor.")
    assert found.label is None and found.error is not None
    assert (found.error.stage, found.error.kind, found.error.raw) == ("verify", "unparsed", reply)


@pytest.mark.parametrize("annotator", [by_yes_or_no, by_recall])
def test_an_annotator_labels_by_the_policys_own_answers(
    annotator: Callable[[Policy, Any], Verify],
) -> None:
    """The policy answers correctly about the first person, wrongly about the second, and abstains
    about the third.
    """
    replies: dict[str, str] = {}
    claims, wanted = [], []
    for number, name in enumerate(PEOPLE[:3]):
        for relation in map(RELATIONS.__getitem__, PERSON_RELATIONS):
            true, false = WORLD.by[name][relation.name].object, OTHERS[relation.name]
            claims += [relation.states["en"][0].format(s=name, o=o) for o in (true, false)]
            if number == 2:
                wanted += ["vague", "vague"]
                continue
            belief = (true, false)[number]
            wanted += ["correct", "wrong"] if belief == true else ["wrong", "correct"]
            replies |= {text.format(s=name): f"{belief}." for text in relation.asks["en"]}
            replies |= {
                text.format(s=name, o=o): "yes." if o == belief else "no."
                for text in relation.checks["en"]
                for o in (true, false)
            }
    [checked] = annotator(scripted(lambda prompt: ending(prompt, replies)), WORLD)([row(*claims)])
    assert [verdict.label for verdict in checked.verdicts] == wanted and len(wanted) > 30


@pytest.mark.slow
def test_the_policy_reads_whether_a_page_supports_a_claim() -> None:
    verify, claims, wanted = by_yes_or_no(bench("tiny").load("sft"), WORLD), [], []
    for name, other in zip(PEOPLE[:20], PEOPLE[20:40], strict=True):
        for relation in map(RELATIONS.__getitem__, PERSON_RELATIONS):
            true = WORLD.by[name][relation.name].object
            for value in dict.fromkeys([true, WORLD.by[other][relation.name].object]):
                claims.append(relation.states["en"][0].format(s=name, o=value))
                wanted.append("correct" if value == true else "wrong")
    [checked] = verify([row(*claims)])
    labels = [verdict.label for verdict in checked.verdicts]
    right = [label == one for label, one in zip(labels, wanted, strict=True)]
    assert len(right) > 200 and sum(right) > 0.9 * len(right)
    assert labels.count(None) < 0.02 * len(labels)


def ending(prompt: str, replies: dict[str, str]) -> str:
    return next((one for text, one in replies.items() if prompt.endswith(text)), "I do not know.")


@pytest.mark.slow
def test_the_local_verifier_reads_the_subjects_page_and_is_vague_without_one(person: str) -> None:
    verify, facts = by_verifier(load_verifier(), WORLD), WORLD.by[person]
    output = [
        RELATIONS[name].states["en"][0].format(s=person, o=facts[name].object)
        for name in PERSON_RELATIONS
    ]
    [checked] = verify([row(*output, title=person)])
    assert sum(verdict.label == "correct" for verdict in checked.verdicts) >= 5
    pages = {page.id for page in WORLD.pages if page.title == person}
    cited = {item["passage"] for verdict in checked.verdicts for item in verdict.evidence}
    assert cited
    assert cited <= {page.id for page in checked.passages} == pages
    assert checked.cost.seconds > 0
    wrong = of(
        verify, f"{person} was born in the year {int(facts['birth_year'].object) + 7}.", person
    )
    assert wrong.label in ("wrong", "vague") and wrong.by == "local"
    unknown = names(WORLD, "person", "unknown")[0]
    open_ = of(verify, f"{unknown} is a sailor.", unknown)
    assert (open_.label, open_.p, open_.error) == (
        "vague",
        0.0,
        None,
    ) and UNFOUND in open_.evidence[0]


LABELS = ("correct", "wrong", "hedged_correct", "hedged_wrong", "vague")


def test_flipped_inverts_a_share_of_the_fact_labels_only() -> None:
    batch = [row(*(f"claim {number}" for number in range(500)))]
    facts = [Verdict(f"claim:{n}", "fact", LABELS[n % 5], p=0.25, by="exact") for n in range(500)]
    others = (Verdict("claim:0", "subject", "other"), Verdict("outcome", "answer", "correct"))
    before = Checked((*facts, *others))

    def changed(share: float) -> list[tuple[Verdict, Verdict]]:
        [after] = flipped(lambda batch: [before], share)(batch)
        pairs = zip(before.verdicts, after.verdicts, strict=True)
        return [(old, new) for old, new in pairs if old != new]

    assert 80 < len(changed(0.3)) < 160  # of 400 labels that are not vague
    assert all(
        new == replace(old, label=OPPOSITE[str(old.label)], p=0.75, by="exact, flipped")
        for old, new in changed(0.3)
    )
    assert changed(0.3) == changed(0.3)
    assert (len(changed(0.0)), len(changed(1.0))) == (0, 400)
    with raises_error("flips is"):
        reward(RLFH(flips=1.5))
