"""The types every stage speaks. A `Feedback` row, as stored, is described by `Feedback.to_row`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

SCHEMA = 1

# What checks may say. Labels, aspects and kinds of failure are declared here alone; other modules
# import them.
SUPPORTED = ("correct", "hedged_correct")
REFUTED = ("hedged_wrong", "wrong")
CLAIM_LABELS = (*SUPPORTED, "vague", *REFUTED)  # from true to false
OUTCOMES = ("correct", "uncertain", "incorrect")
ITEM_LABELS = ("consistent", "contradictory", "missing")
REASONING = ("good", "poor")
KNOWLEDGE = ("known", "unknown")
# what a claim is about: what the question asks about, or something else
SUBJECTS = ("asked", "other")
PREFERENCES = ("first", "second", "tie")
SECTIONS = ("think", "answer", "body")
# a question's kind: it compares two people and brings passages to answer from
TWO_FACETS = "two_facets"
# the value of meta["evidence"] where answers are held against the question's own passages
BY_PASSAGES = "passages"
USELESS = 1  # the lowest informativeness: repeated, or about nothing that was asked

# The labels of each aspect; none where a verdict is a probability alone.
ASPECTS: Mapping[str, tuple[str, ...]] = {
    "fact": CLAIM_LABELS,  # of a claim, with how informative it is
    "subject": SUBJECTS,  # of a claim that is of no use, where the judge can tell why
    "truth": (),  # of a claim, by a truthfulness model
    "answer": OUTCOMES,  # of the outcome
    "checklist": ITEM_LABELS,  # of an item, or of a claim against the whole checklist
    "reasoning": REASONING,
    "factuality": (),  # of a segment or of the response, by a reward model
    "baseline": (),  # of the response: the mean factuality of the reference's own segments
    "general": (),  # of the response, by a preference model
    # of the response: whether the policy can be expected to know the answer
    "out_of_knowledge": KNOWLEDGE,
    "informativeness": (),  # of the response, only where the rating of its claims failed
}

# Why a claim is vague, or wrong, though nobody compared it with anything: keys of an item of its
# verdict's evidence, with one of `REASONS`. What a response itself causes is such a verdict and no
# failure, or to write so would escape the judge.
UNPARSED = "unparsed"  # its judge cannot read it
UNFOUND = "unfound"  # nothing was found to compare it with
REASONS: Mapping[str, str] = {
    "form": "words in no form of a statement about the closed world",
    "subject": "about a name that nobody bears in the closed world",
    "object": "with a value that nothing has in the closed world",
    "pronoun": "with a pronoun for nobody",
    "script": "in another script than the judge reads",
    "words": "no passage shares a word with it",
}

# What a judge adds to a label: items of a verdict's evidence that are no passage.
# one of `OBJECTIONS`, what a rule has against the claim; `text`: the words it is about
OBJECTION = "objection"
OBJECTIONS: Mapping[str, str] = {
    "number": "a rule found no such number or date in the passages",
    "name": "a rule found no such name in the passages",
    # in files of earlier versions
    "role": "a rule found it the other way round, or of something else, in the passages",
}
THRESHOLD = "threshold"  # the P(true) from which a claim is correct, where this one is close to it

# What an input gives nothing for is recorded as a failure is and is none: its kinds, in words.
LACKING: Mapping[str, str] = {
    "no_gold": "no gold answer",
    "no_checklist": "no checklist",
    "no_verdict": "no verdict that the reward asks for",
    "no_informativeness": "no informativeness",
    "no_tokens": "no tokens",
    "no_terms": "no term of the reward",
    "not_extracted": "not read for claims",
    "not_logged": "no number logged",
    "not_asked": "not asked for",
}


@dataclass(frozen=True)
class Failure:
    """A step that could not be done. It is data on its row: never a verdict, never a reward of
    0.
    """

    stage: str
    kind: str
    message: str
    raw: str = ""


class WorkbenchError(ValueError):
    """A user's mistake. The message is one line and names the remedy; the command line exits
    with `code`.
    """

    code = 2


@dataclass(frozen=True)
class Passage:
    id: str
    title: str
    text: str
    score: float | None = None


@dataclass(frozen=True)
class Question:
    """One prompt with whatever is known about its right answer.

    `answers` holds accepted forms of one answer, or, for `kind="list"`, the items that all have
    to be named. `system` is an optional instruction (for example to think first); `passages` are
    shown to the policy in the prompt.
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    title: str = ""
    passages: tuple[Passage, ...] = ()
    checklist: tuple[str, ...] = ()
    kind: str = "single"
    system: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)

    def messages(self) -> list[dict[str, str]]:
        """The conversation a policy is prompted with: passages first, numbered where there are
        several, then the question.
        """
        several = len(self.passages) > 1
        materials = "".join(
            f"[{number}] {passage.text} " if several else f"{passage.text} "
            for number, passage in enumerate(self.passages, 1)
        )
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": f"{materials}{self.text}"}]


@dataclass(frozen=True)
class Response:
    """What a policy wrote. `token_ids` are the sampled ids; `offsets[t]` is token t's half-open
    character range in `text`.
    """

    id: str
    question: Question
    text: str
    group: str = ""
    sample: int = 0
    step: int | None = None
    prompt_ids: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()
    offsets: tuple[tuple[int, int], ...] = ()
    logprobs: tuple[float, ...] = ()  # of the sampled tokens, under the policy that sampled them
    ref_logprobs: tuple[float, ...] = ()  # under the reference policy
    values: tuple[float, ...] = ()  # a critic's value before each token
    advantages: tuple[float, ...] = ()  # what the loss was given for each token
    # of each token's probability in the last update with it to that when it was sampled
    ratios: tuple[float, ...] = ()
    finish: str = "stop"  # "stop" or "length"
    source: str = "sampled"  # where the tokens come from: "sampled", "encoded" or "words"
    # the end of the prompt that the text goes on with: the tag it leaves open, such as "<think>\n"
    prefill: str = ""


@dataclass(frozen=True)
class Claim:
    """An atomic statement of a response. `span`/`end` are character positions in the response;
    None = not found there.
    """

    id: int
    text: str
    section: str = "body"  # "think", "answer" or "body"
    sentence: int | None = None
    span: tuple[int, int] | None = None
    end: int | None = None
    coverage: float | None = None


@dataclass(frozen=True)
class Verdict:
    """One check's label for one target, from that check's own declared set; or the error that
    prevented it.
    """

    target: str  # "claim:0", "item:2", "segment:1", "outcome", "reasoning" or "response"
    aspect: str
    label: str | None = None
    p: float | None = None
    informativeness: int | None = None
    evidence: tuple[Mapping[str, Any], ...] = ()
    by: str = ""
    error: Failure | None = None


@dataclass(frozen=True)
class Event:
    """A reward value that ends at character `end` of the response; `end=None` means the end of
    the response.

    It is paid to the token that holds the last of these characters; with a `start`, it is spread
    evenly over the tokens from there to `end`.
    """

    part: str
    value: float
    end: int | None = None
    claim: int | None = None
    start: int | None = None


@dataclass(frozen=True)
class Reward:
    """What one method pays for one response. `value=None` means it was not scored, and `error`
    says why.
    """

    value: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    tokens: tuple[float, ...] = ()
    unplaced: tuple[int, ...] = ()
    error: Failure | None = None


@dataclass(frozen=True)
class Cost:
    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in COSTS))


COSTS = tuple(field.name for field in fields(Cost))


@dataclass(frozen=True)
class Prompt:
    """One request to a judge. `task` names what is asked (see `workbench.judge`); `text` is the
    whole prompt.
    """

    task: str
    text: str


@dataclass(frozen=True)
class Reply:
    """A judge's reply to one prompt, not yet read; or the error that prevented it."""

    text: str | None
    error: Failure | None = None
    cost: Cost = Cost()


@dataclass(frozen=True)
class Claims:
    """What an extractor found in one response.

    `sentences` are character spans in the response; claims refer to them by position. An
    extractor that judges as it reads (single-pass mode) also gives `verdicts`. With an `error`
    nothing was found out, which is not the same as no claims.
    """

    sentences: tuple[tuple[int, int], ...] = ()
    claims: tuple[Claim, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    error: Failure | None = None
    cost: Cost = Cost()


@dataclass(frozen=True)
class Checked:
    """What one verifier found out about one response; a check that failed is a verdict with an
    error.

    `passages` are those that it searched for: what evidence refers to by id.
    """

    verdicts: tuple[Verdict, ...] = ()
    cost: Cost = Cost()
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True)
class Feedback:
    """One response with everything that was found out about it: the row that is stored, plotted
    and trained on.

    `passages`, those that were searched for, are stored beside the row, as its question is, and
    not read back with it.
    """

    response: Response
    sentences: tuple[tuple[int, int], ...] = ()
    claims: tuple[Claim, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    rewards: Mapping[str, Reward] = field(default_factory=dict)
    error: Failure | None = None
    cost: Cost = Cost()
    passages: tuple[Passage, ...] = field(default=(), compare=False, repr=False)

    def verdict(self, target: str, aspect: str | None = None) -> Verdict | None:
        """The first verdict on `target` (of one aspect, where it is named), or None."""
        found = (verdict for verdict in self.verdicts if verdict.target == target)
        return next((verdict for verdict in found if aspect in (None, verdict.aspect)), None)

    def with_reward(self, method: str, reward: Reward) -> Feedback:
        return replace(self, rewards={**self.rewards, method: reward})

    def to_row(self) -> dict[str, Any]:
        """The stored form: one JSON object (the question is stored once, beside it, by its id).
        A row has "prefill" only where the prompt left a tag open for the response to go on with;
        no position counts its characters."""
        response = self.response
        return {
            "schema": SCHEMA,
            "id": response.id,
            "question_id": response.question.id,
            "group": response.group,
            "sample": response.sample,
            "step": response.step,
            "response": response.text,
            "finish": response.finish,
            **({"prefill": response.prefill} if response.prefill else {}),
            "tokens": {
                "source": response.source,
                "ids": list(response.token_ids),
                "offsets": [list(offset) for offset in response.offsets],
                "logprobs": list(response.logprobs),
                "ref_logprobs": list(response.ref_logprobs),
                "values": list(response.values),
                "advantages": list(response.advantages),
                "ratios": list(response.ratios),
            },
            "sentences": [list(span) for span in self.sentences],
            "claims": _plain(self.claims),
            "verdicts": _plain(self.verdicts),
            "rewards": _plain(self.rewards),
            "error": _plain(self.error),
            "cost": _plain(self.cost),
        }

    @staticmethod
    def from_row(row: Mapping[str, Any], question: Question) -> Feedback:
        """Rebuild a row written by `to_row`; `question` is the one its `question_id` names."""
        tokens = row["tokens"]
        response = Response(
            id=row["id"],
            question=question,
            text=row["response"],
            group=row["group"],
            sample=row["sample"],
            step=row["step"],
            token_ids=tuple(tokens["ids"]),
            offsets=_pairs(tokens["offsets"]),
            logprobs=tuple(tokens.get("logprobs", ())),
            ref_logprobs=tuple(tokens.get("ref_logprobs", ())),
            values=tuple(tokens.get("values", ())),
            advantages=tuple(tokens.get("advantages", ())),
            ratios=tuple(tokens.get("ratios", ())),
            finish=row["finish"],
            source=tokens["source"],
            prefill=row.get("prefill", ""),
        )
        return Feedback(
            response=response,
            sentences=_pairs(row["sentences"]),
            claims=tuple(
                Claim(**{**claim, "span": _pair(claim["span"])}) for claim in row["claims"]
            ),
            verdicts=tuple(
                Verdict(**{**v, "evidence": tuple(v["evidence"]), "error": _failure(v["error"])})
                for v in row["verdicts"]
            ),
            rewards={method: _reward(reward) for method, reward in row["rewards"].items()},
            error=_failure(row["error"]),
            cost=Cost(**row["cost"]),
        )


def _plain(value: Any) -> Any:
    """As `dataclasses.asdict`, with lists for tuples; many times as fast, since it copies no
    leaf and asks for it first.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, (dict, Mapping)):
        return {key: _plain(item) for key, item in value.items()}
    return (
        {name: _plain(item) for name, item in vars(value).items()} if is_dataclass(value) else value
    )


def _pair(span: Sequence[int] | None) -> tuple[int, int] | None:
    return None if span is None else (span[0], span[1])


def _pairs(spans: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((span[0], span[1]) for span in spans)


def _failure(row: Mapping[str, Any] | None) -> Failure | None:
    return None if row is None else Failure(**row)


def _reward(row: Mapping[str, Any]) -> Reward:
    return Reward(
        value=row["value"],
        parts=row["parts"],
        events=tuple(Event(**event) for event in row["events"]),
        tokens=tuple(row["tokens"]),
        unplaced=tuple(row["unplaced"]),
        error=_failure(row["error"]),
    )


Judge = Callable[[Sequence[Prompt]], list[Reply]]  # one reply for each prompt, in order
Extract = Callable[[Sequence[Response]], list[Claims]]
Verify = Callable[[Sequence[tuple[Response, Claims]]], list[Checked]]
RewardFn = Callable[[Feedback], Reward]
Grade = Callable[[Sequence[Response]], list[Feedback]]  # all that a trainer uses
# Questions -> for each a planned answer with its form, or a failure.
Write = Callable[[Sequence[Question]], list[Feedback]]


@dataclass(frozen=True)
class Checks:
    """What a judge can do: `extract` reads claims, `verify` has its checks by name ("fact",
    "outcome", "checklist", "claim_checklist", "reasoning", "out_of_knowledge"). A trained model
    ("truth", "factuality", "general") or a probe can be added to `verify` under its name.

    `single_pass` extracts and labels claims in one call. `recognise` adds to a question what the
    judge knows about it. `write` writes planned answers to questions from their passages.
    """

    extract: Extract
    verify: Mapping[str, Verify]
    single_pass: Extract | None = None
    recognise: Callable[[Question], Question] | None = None
    write: Write | None = None


# The checks that look at claims, or at the sentences that are found with them.
OF_CLAIMS = frozenset(
    {"fact", "single_pass", "claim_checklist", "reasoning", "truth", "factuality"}
)


# values by name: a JSON object, and its read-only view
JsonObject = dict[str, Any]
JsonMapping = Mapping[str, Any]
