"""Measure the knowledge and the skills of a tiny policy for its model card."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from workbench.experiments.evaluate import evaluation_grade, report
from workbench.experiments.tiny.skills import READINGS, SkillWriter, number_passages
from workbench.metrics.rows import share
from workbench.pipeline import grade
from workbench.policies.generate import Policy, generate
from workbench.text import final_answer, is_abstention
from workbench.types import Feedback, JsonObject, Question
from workbench.util.grouping import group_by
from workbench.verdicts import outcome
from workbench.verdicts.checks import world_checks
from workbench.world import schema
from workbench.world.documents import Exposures
from workbench.world.questions import SHORT_KINDS, select
from workbench.world.world import World

REASONED = ("two_hop", "comparison", "false_premise", "yes_no", "list")
SHORT, LONG = 16, 112  # most new tokens of a short answer and of any other
SAMPLES = 4  # sampled answers per short question
COUNT = 300  # questions with passages of each kind
SEED = 0  # fixed, so that cards of different builds are comparable

Rates = JsonObject  # {n, accuracy, abstention}: shares, None if undefined


def measure(policy: Policy, world: World, split: str, exposures: Exposures) -> JsonObject:
    """Measure a policy on one split of the closed world, and return the results by name.

    * `short`, `l2`: evaluation reports of short questions, in English and in the second language.
    * `partial`: rates on people about whom the training documents state only some facts: for these
      facts ("covered") and for the other facts ("gaps").
    * `exposure`: accuracy by the number of documents that state a fact, as a list of triples
      (number of documents, accuracy, number of questions).
    * `biography`, `two_facets`: evaluation reports of texts about one person, and about two.
    * `reading`: rates on questions with passages about invented people, by layout of the passages,
      such as "one" (one passage). For splits other than "validation", also "page": the rates on
      `page_questions`.
    * `reasoned`: rates on questions that need several steps, by kind, such as "two_hop".
    """
    grade_outcome = grade([outcome()], {})

    def ask(questions: Sequence[Question], new_tokens: int) -> list[Feedback]:
        return grade_outcome(generate(policy, questions, max_new_tokens=new_tokens, greedy=True))

    def report_of(greedy: Sequence[Feedback], sampled: Sequence[Feedback] = ()) -> JsonObject:
        return report(greedy, sampled, split=split, seeds=(SEED,))

    short = world.questions(split, SHORT_KINDS)
    greedy = ask(short, SHORT)
    sampled = grade_outcome(
        generate(policy, short, max_new_tokens=SHORT, samples=SAMPLES, seed=SEED)
    )
    readings = {kind: reading_questions(world, kind, COUNT, f"{split}-{SEED}") for kind in READINGS}
    if split != "validation":
        readings["page"] = page_questions(world)
    planned = [
        replace(question, system=schema.OUTLINE)
        for question in select(world.two_facets, split, None, "en")
    ]
    return {
        "short": report_of(greedy, sampled),
        "partial": {
            name: {
                "greedy": rates(_partial(greedy, covered)),
                "sampled": rates(_partial(sampled, covered)),
            }
            for name, covered in (("covered", True), ("gaps", False))
        },
        "exposure": by_exposure(greedy, exposures),
        "l2": report_of(ask(world.questions(split, SHORT_KINDS, "l2"), SHORT)),
        "biography": texts(policy, world, world.questions(split, ["biography"])),
        "two_facets": texts(policy, world, planned),
        "reading": {kind: rates(ask(questions, SHORT)) for kind, questions in readings.items()},
        "reasoned": reasoned(ask(reasoned_questions(world, split), LONG)),
    }


def texts(policy: Policy, world: World, questions: Sequence[Question]) -> JsonObject:
    """Return the evaluation report of the long texts with which a policy answers questions.

    Each question gets a greedy and a sampled text. The closed world's judge grades them.
    """
    judge = evaluation_grade(world_checks(world))
    greedy, sampled = (
        judge(generate(policy, questions, max_new_tokens=LONG, greedy=greedy, seed=SEED))
        for greedy in (True, False)
    )
    return report(greedy, sampled, seeds=(SEED,))


def _partial(feedbacks: Iterable[Feedback], covered: bool) -> Iterator[Feedback]:
    """Yield the answers about partly known people.

    They are about facts that the documents state if `covered`, else about facts that they leave
    out.
    """
    for feedback in feedbacks:
        meta = feedback.response.question.meta
        if meta["tier"] == "partial" and meta["covered"] == covered:
            yield feedback


def by_exposure(
    feedbacks: Sequence[Feedback], exposures: Exposures
) -> list[tuple[int, float, int]]:
    """Return triples (exposures, accuracy, number of questions), sorted by exposures.

    The exposures of a question are the number of documents, in both languages, that state its fact.
    """
    counts: dict[int, list[bool]] = {}
    for feedback in feedbacks:
        (fact_id,) = feedback.response.question.meta["fact_ids"]
        times = sum(exposures.get(fact_id, {}).values())
        verdict = feedback.verdict("outcome")
        counts.setdefault(times, []).append(verdict is not None and verdict.label == "correct")
    return [(times, sum(right) / len(right), len(right)) for times, right in sorted(counts.items())]


def rates(feedbacks: Iterable[Feedback]) -> Rates:
    """Return `{n, accuracy, abstention}`: the number of answers and two shares.

    `accuracy` is the share of correct answers among those with a judged outcome. It is None if no
    outcome was judged, for example without gold answers. `abstention` is the share of answers that
    abstain.
    """
    graded = list(feedbacks)
    verdicts = [feedback.verdict("outcome") for feedback in graded]
    labels = [verdict.label for verdict in verdicts if verdict and verdict.error is None]
    abstained = [is_abstention(final_answer(feedback.response.text) or "") for feedback in graded]
    return {
        "n": len(graded),
        "accuracy": share(labels.count("correct"), len(labels)),
        "abstention": share(sum(abstained), len(graded)),
    }


def reading_questions(world: World, kind: str, count: int, seed: int | str) -> list[Question]:
    """Return `count` questions with passages, about people who are in no training data.

    `kind` is the layout of the passages, such as "one" for one passage (see `SkillWriter.reading`).
    Questions of the kind "none" have no gold answers: their passages do not state the answer.
    """
    writer = SkillWriter(world.ephemeral(held_out=True), f"measure-{kind}-{seed}")
    questions = []
    for number in range(count):
        reading = writer.reading(kind)
        answers = () if reading.target is None else reading.target.forms["en"]
        passages = number_passages(reading.passages)
        questions.append(Question(f"{kind}-{number}", reading.question, answers, passages=passages))
    return questions


def page_questions(world: World) -> list[Question]:
    """Return questions about people who have a page but are in no training document.

    The page is the question's only passage, as if a search had found it. The questions are from the
    split "ood".
    """
    pages = {page.title: page.text for page in world.pages if not page.stale}
    return [
        replace(question, passages=number_passages([pages[question.title]]))
        for question in world.questions("ood", SHORT_KINDS)
        if question.meta["tier"] == "page_only"
    ]


def reasoned_questions(world: World, split: str) -> list[Question]:
    """Return the questions that need several steps, such as "two_hop", about people of a split.

    For each question with a false premise, a copy with a true premise is added (kind
    "true_premise").
    """
    people = {person.name for person in world.people(split)}
    source = split if split == "validation" else "ood"
    questions = [q for q in world.questions(source, REASONED) if people.intersection(q.titles[:1])]
    return [*questions, *(_true_twin(world, q) for q in questions if q.kind == "false_premise")]


def _true_twin(world: World, question: Question) -> Question:
    """Return a question with its false premise corrected, so that "invalid question" is wrong."""
    profession, target = (
        world.facts[int(fact_id.removeprefix("f"))] for fact_id in question.meta["fact_ids"]
    )
    form = schema.FALSE_PREMISE_ASKS.index(target.relation)
    text = schema.FALSE_PREMISE["en"][form].format(
        s=profession.subject, o=profession.forms["en"][0]
    )
    return replace(
        question,
        id=f"{question.id}-true",
        text=text,
        answers=target.forms["en"],
        kind="true_premise",
    )


def reasoned(feedbacks: Sequence[Feedback]) -> dict[str, Rates]:
    """Return kind of question -> `rates` of its answers: `{n, accuracy, abstention}`."""
    groups = group_by(feedbacks, lambda feedback: feedback.response.question.kind)
    return {kind: rates(group) for kind, group in groups.items()}
