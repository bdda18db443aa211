"""The values that the stages of the pipeline exchange, from `Question` to `Feedback`.

Conventions:

* Character positions count from 0 in `Response.text`. A span `(start, end)` excludes `end`.
* A field marked (T) has one entry per token of the response; it is empty if not recorded.
* Probabilities lie in [0, 1]. Log-probabilities are natural logarithms.
* `None` means "not known" or "not scored", never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

JsonObject = dict[str, Any]
JsonMapping = Mapping[str, Any]  # a JSON object that is only read

Span = tuple[int, int]  # (start, end) of characters
Spans = tuple[Span, ...]

SCHEMA = 1  # version of the stored row

# Labels, aspects and kinds of failure are declared only here; other modules import them.
SUPPORTED, REFUTED = ("correct", "hedged_correct"), ("hedged_wrong", "wrong")
CLAIM_LABELS = (*SUPPORTED, "vague", *REFUTED)  # from true to false; "vague": undecided
OUTCOMES = ("correct", "uncertain", "incorrect")
ITEM_LABELS = ("consistent", "contradictory", "missing")
REASONING = ("good", "poor")
KNOWLEDGE = ("known", "unknown")
SUBJECTS = ("asked", "other")  # what a claim is about: the question's subject, or another one
PREFERENCES = ("first", "second", "tie")
SECTIONS = ("think", "answer", "body")  # "body": no sections are marked
TWO_FACETS = "two_facets"  # kind of a question that compares two people, with passages
BY_PASSAGES = "passages"  # value of meta["evidence"]: claims are checked by the question's passages
USELESS = 1  # lowest informativeness (1 to 5): repeated, or irrelevant to the question

# Aspect of a verdict -> its possible labels; () if it has only a number, `p`. Comment: its target.
ASPECTS: Mapping[str, tuple[str, ...]] = {
    "fact": CLAIM_LABELS,  # a claim; the verdict also has the claim's informativeness
    "subject": SUBJECTS,  # a claim with the lowest informativeness, if the judge gives the reason
    "truth": (),  # a claim, by a truthfulness model
    "answer": OUTCOMES,  # the final answer
    "checklist": ITEM_LABELS,  # an item of the checklist, or a claim and the whole checklist
    "reasoning": REASONING,  # the thinking before the answer
    "factuality": (),  # a segment (sentence or claim) or the response, by a reward model
    "baseline": (),  # the response: mean factuality of the reference model's answers (FoRAG)
    "general": (),  # the response, by a preference model
    "out_of_knowledge": KNOWLEDGE,  # the response: whether the policy can know the answer
    "informativeness": (),  # the response; given only if the rating of its claims failed
}

# A claim that cannot be compared with evidence gets a verdict, not a failure, or a response could
# avoid the judge by its wording. Its evidence has the item {UNPARSED or UNFOUND: key of `REASONS`}.
UNPARSED = "unparsed"  # the judge cannot read the claim
UNFOUND = "unfound"  # the judge found no evidence
REASONS: Mapping[str, str] = {
    "form": "words in no form of a statement about the closed world",
    "subject": "its subject is no name of the closed world",
    "object": "its value is none that the closed world knows",
    "pronoun": "with a pronoun that refers to no name",
    "script": "in another script than the judge reads",
    "language": "in another language than the judge reads",
    "denial": "denies something in a form that the judge cannot read",
    "instruction": "addresses the judge instead of stating something",
    "circular": "gives its subject as its own value",
    "fragment": "a single word, or a sentence that lacks its end",
    "words": "no passage shares a word with the claim",
}

# Remarks of the local verifier are items of a verdict's evidence, but not passages:
# {OBJECTION: a key of `OBJECTIONS`, "text": the words concerned} or {THRESHOLD: number}.
OBJECTION = "objection"
OBJECTIONS: Mapping[str, str] = {
    "number": "a rule found no such number or date in the passages",
    "name": "a rule found no such name in the passages",
    "together": "no sentence of the passages has these values together",
}
# lowest P(true) of a claim that is labelled correct; stored only if the claim's P(true) is close
THRESHOLD = "threshold"

# Missing inputs are recorded as a `Failure` but not counted: its kind -> key in summaries.
LACKING: Mapping[str, str] = {
    "no_gold": "no gold answer",
    "no_checklist": "no checklist",
    "no_verdict": "no verdict that the reward asks for",
    "no_informativeness": "no informativeness",
    "no_tokens": "no tokens",
    "no_terms": "no term of the reward",
    "no_claims": "no claims",
    "not_extracted": "not read for claims",
    "not_logged": "no number logged",
    "not_asked": "not asked for",
}


@dataclass(frozen=True)
class Failure:
    """Why extraction, a check or a reward failed; rewards that need the failed part are None."""

    stage: str  # "extract", "verify", "judge", "reward", …
    kind: str  # a short identifier, such as "timeout" or a key of `LACKING`
    message: str  # one line for people
    raw: str = ""  # the judge's reply, if it could not be parsed


class WorkbenchError(ValueError):
    """An error that the user can fix. Its message is one line and names the remedy."""

    code = 2  # exit code of the command


@dataclass(frozen=True)
class Passage:
    """A piece of text that is evidence for claims."""

    id: str
    title: str
    text: str
    score: float | None = None  # relevance to a query, higher is better; None without a search


@dataclass(frozen=True)
class Question:
    """A prompt with its reference data.

    Attributes:
        answers: accepted forms of the gold answer; for kind "list", its items; () if unknown.
        title: subject of the question, such as a page's title; ";" separates several subjects.
        passages: evidence for checking claims; they are also part of the prompt.
        checklist: statements that a good answer contains (KLCF).
        kind: such as "single", "list", "yes_no" or "long_form".
        system: system prompt, for example an instruction to think first.
        meta: other fields, such as "lang", "split" and "tier" (how well known the subject is).
            "query_time" is put into the prompts of policy and judge (TruthRL, tables 9 to 11).
    """

    id: str
    text: str
    answers: tuple[str, ...] = ()
    title: str = ""
    passages: tuple[Passage, ...] = ()
    checklist: tuple[str, ...] = ()
    kind: str = "single"
    system: str = ""
    meta: JsonMapping = field(default_factory=dict)

    @property
    def titles(self) -> tuple[str, ...]:
        """The subjects in `title`: "Ana Bo; Toma Fel" → ("Ana Bo", "Toma Fel")."""
        return tuple(filter(None, map(str.strip, self.title.split(";"))))

    @property
    def dated_text(self) -> str:
        """The question's text, then a line "Query time: …" if `meta["query_time"]` is set."""
        time = self.meta.get("query_time")
        return f"{self.text}\nQuery time: {time}" if time else self.text

    def messages(self) -> list[dict[str, str]]:
        """Return the prompt as chat messages: system prompt (if any), passages and question."""
        several = len(self.passages) > 1
        materials = "".join(
            f"[{number}] {passage.text} " if several else f"{passage.text} "
            for number, passage in enumerate(self.passages, 1)
        )
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": f"{materials}{self.dated_text}"}]


# fields of `Response` with one number per token; a stored row has them under the same names
TOKEN_STATS = ("logprobs", "ref_logprobs", "values", "advantages", "ratios")


@dataclass(frozen=True)
class Response:
    """A text that a policy wrote, with its tokens. T is the number of tokens.

    Attributes:
        group: id of a group: the responses to one prompt in one step. GRPO compares their rewards.
        sample: number of the response in its group, from 0.
        step: training step that sampled it, from 1; None outside a training.
        prompt_ids: token ids of the prompt; not stored.
        token_ids: (T) sampled ids, or the ids of the encoded text; empty if `source` is "words".
        offsets: (T) the span of each token's characters in `text`.
        logprobs: (T) log-probability of each sampled token, under the policy that sampled it.
        ref_logprobs: (T) log-probability of each sampled token, under the reference policy.
        values: (T) the critic's value estimate before each token.
        advantages: (T) the advantage of each token, as used in the loss.
        ratios: (T) each token's probability at the last update / its probability at sampling.
        finish: "stop", or "length" if the response was cut off.
        source: the tokens are "sampled", "encoded" from the text, or the text's "words" (no ids).
        prefill: opening tag at the end of the prompt, such as "<think>\\n"; "" if there is none.
        given_claims: claims to verify, from the input; None to extract claims. Not stored.
    """

    id: str
    question: Question
    text: str
    group: str = ""
    sample: int = 0
    step: int | None = None
    prompt_ids: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()
    offsets: Spans = ()
    logprobs: tuple[float, ...] = ()
    ref_logprobs: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    advantages: tuple[float, ...] = ()
    ratios: tuple[float, ...] = ()
    finish: str = "stop"
    source: str = "sampled"
    prefill: str = ""
    given_claims: tuple[Claim, ...] | None = None


@dataclass(frozen=True)
class Claim:
    """An atomic statement of a response.

    Attributes:
        id: number, unique in the response; verdicts refer to the claim as "claim:ID".
        section: "think" or "answer", by the tags in the response; "body" without tags.
        sentence: index of the claim's sentence in `Claims.sentences`; None if no sentence is known.
        span: the characters of the response that match the claim; None if there is no match.
        end: position after the last matched character, where rewards are assigned; None: no match.
        coverage: share of the claim's words found in order in its sentence; None: not computed.
    """

    id: int
    text: str
    section: str = "body"
    sentence: int | None = None
    span: Span | None = None
    end: int | None = None
    coverage: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of one check of one target, such as a claim, or the failure of that check."""

    target: str  # "claim:0", "item:2", "segment:1", "outcome", "reasoning" or "response"
    aspect: str  # what was checked: a key of `ASPECTS`
    label: str | None = None  # one of the aspect's labels
    p: float | None = None  # P(true), or the score of a reward model
    informativeness: int | None = None  # of a claim: 1 (`USELESS`) to 5
    evidence: tuple[JsonMapping, ...] = ()  # passage ids with spans, and the judge's remarks
    by: str = ""  # the judge's name, "rule", or "given" for a label of the input
    error: Failure | None = None


@dataclass(frozen=True)
class Event:
    """A part of a reward, and the position in the response to which it is assigned.

    If `start` is None, `value` goes to one token: the token with the character before `end`.
    Otherwise `value` is divided equally among the tokens from `start` to `end`.
    """

    part: str  # name of the reward's term, such as "truth"
    value: float
    end: int | None = None  # a character position; None: the last token of the response
    claim: int | None = None  # id of the claim that caused the event
    start: int | None = None  # a character position


@dataclass(frozen=True)
class Reward:
    """The reward of one method for one response.

    Attributes:
        value: the scalar reward; None if the response was not scored, and `error` says why.
        parts: name -> number that explains the value, such as a term of the sum, or a count.
        events: the value, split into parts with positions. The events add up to `value`.
        tokens: (T) the reward of each token: the sum of its shares of the events.
        unplaced: ids of claims that were not found in the text. Their events are at the end of a
            sentence or of the response.
    """

    value: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    tokens: tuple[float, ...] = ()
    unplaced: tuple[int, ...] = ()
    error: Failure | None = None


@dataclass(frozen=True)
class Cost:
    """Cost of judging: requests, tokens and seconds."""

    calls: int = 0  # requests to a judge, without cached ones
    cached: int = 0  # replies from the cache
    tokens_in: int = 0  # tokens of the prompts, as the server counts them
    tokens_out: int = 0  # tokens of the replies
    seconds: float = 0.0  # sum of the calls' durations, also of calls that run in parallel

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in COSTS))


COSTS = tuple(field.name for field in fields(Cost))


@dataclass(frozen=True)
class Prompt:
    """One request to a judge: the name of its task (see `templates.TASKS`), and the full text."""

    task: str
    text: str


@dataclass(frozen=True)
class Reply:
    """A judge's unparsed reply to one prompt; `text` is None if the call failed."""

    text: str | None
    error: Failure | None = None
    cost: Cost = Cost()
    p: float | None = None  # P(the task's first label), if the server returns log-probabilities


@dataclass(frozen=True)
class Claims:
    """The claims that an extractor found in one response."""

    sentences: Spans = ()  # `Claim.sentence` is an index into these spans
    claims: tuple[Claim, ...] = ()
    verdicts: tuple[Verdict, ...] = ()  # only from an extractor that also judges (single pass)
    error: Failure | None = None  # set if extraction failed; a response without claims has None
    cost: Cost = Cost()


@dataclass(frozen=True)
class Checked:
    """The result of one check for one response: verdicts, cost and search results."""

    verdicts: tuple[Verdict, ...] = ()  # one per target; if a check failed, it has an `error`
    cost: Cost = Cost()
    passages: tuple[Passage, ...] = ()  # search results, to which the evidence refers by id


# fields of `Feedback` that a stored row has under the same names
STORED = ("sentences", "claims", "verdicts", "rewards", "error", "cost")
_SCALARS = {type(None), str, bool, int, float}  # JSON has them


@dataclass(frozen=True)
class Feedback:
    """A response with its claims, verdicts and rewards: the row that is stored and trained on.

    Attributes:
        sentences: the span of each sentence in the response's text.
        rewards: method's name -> reward. A trainer's logged rewards are "trl:NAME", "verl:NAME".
        error: why claims could not be extracted; None if extraction did not fail.
        passages: search results of the checks; () after `from_row`: they are in passages.jsonl.
    """

    response: Response
    sentences: Spans = ()
    claims: tuple[Claim, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    rewards: Mapping[str, Reward] = field(default_factory=dict)
    error: Failure | None = None
    cost: Cost = Cost()
    passages: tuple[Passage, ...] = field(default=(), compare=False, repr=False)

    def verdict(self, target: str, aspect: str | None = None) -> Verdict | None:
        """Return the first verdict on a target, such as "claim:0"; None if there is no verdict.

        `aspect` selects the kind of check, such as "fact" (see `ASPECTS`); None selects any kind.
        """
        verdicts = (verdict for verdict in self.verdicts if verdict.target == target)
        return next((verdict for verdict in verdicts if aspect in (None, verdict.aspect)), None)

    def to_row(self) -> JsonObject:
        """Return the stored form: a JSON object with the question's id in place of the question."""
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
                **{name: list(getattr(response, name)) for name in TOKEN_STATS},
            },
            **{name: _plain(getattr(self, name)) for name in STORED},
        }

    @staticmethod
    def from_row(row: JsonMapping, question: Question) -> Feedback:
        """Return the feedback that `to_row` stored in `row`; `question` is the row's question."""
        tokens = row["tokens"]
        stats: JsonObject = {name: tuple(tokens.get(name, ())) for name in TOKEN_STATS}
        response = Response(
            **{name: row[name] for name in ("id", "group", "sample", "step", "finish")},
            question=question,
            text=row["response"],
            token_ids=tuple(tokens["ids"]),
            offsets=_pairs(tokens["offsets"]),
            **stats,
            source=tokens["source"],
            prefill=row.get("prefill", ""),
        )
        return Feedback(
            response=response,
            sentences=_pairs(row["sentences"]),
            claims=tuple(
                Claim(**{**claim, "span": claim["span"] and tuple(claim["span"])})
                for claim in row["claims"]
            ),
            verdicts=tuple(
                Verdict(**{**v, "evidence": tuple(v["evidence"]), "error": _failure(v["error"])})
                for v in row["verdicts"]
            ),
            rewards={method: _reward(reward) for method, reward in row["rewards"].items()},
            error=_failure(row["error"]),
            cost=Cost(**row["cost"]),
        )


def _plain(value: object) -> Any:
    """Return `value` with dataclasses as dicts and tuples as lists; faster than `asdict`."""
    if isinstance(value, (tuple, list)):
        scalars = _SCALARS.issuperset(map(type, value))  # such as the rewards of tokens
        return list(value) if scalars else [_plain(item) for item in value]
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, (dict, Mapping)):
        return {k: v if type(v) in _SCALARS else _plain(v) for k, v in value.items()}
    return value


def _pairs(spans: Sequence[Sequence[int]]) -> Spans:
    return tuple((span[0], span[1]) for span in spans)


def _failure(row: JsonMapping | None) -> Failure | None:
    return None if row is None else Failure(**row)


def _reward(row: JsonMapping) -> Reward:
    return Reward(
        value=row["value"],
        parts=row["parts"],
        events=tuple(Event(**event) for event in row["events"]),
        tokens=tuple(row["tokens"]),
        unplaced=tuple(row["unplaced"]),
        error=_failure(row["error"]),
    )


# The functions of the pipeline. Each takes a batch and returns one result per item, in order.
Judge = Callable[[Sequence[Prompt]], list[Reply]]
Extract = Callable[[Sequence[Response]], list[Claims]]
Batch = Sequence[tuple[Response, Claims]]  # the argument of a `Verify`
Verify = Callable[[Batch], list[Checked]]
RewardFn = Callable[[Feedback], Reward]
Grade = Callable[[Sequence[Response]], list[Feedback]]  # extract, verify and reward
Write = Callable[[Sequence[Question]], list[Feedback]]  # writes planned answers (FoRAG)


@dataclass(frozen=True)
class Checks:
    """The functions of one judge: a language model, local verifier, or closed world of known facts.

    Attributes:
        extract: finds the claims of responses.
        verify: name -> check, for some of these: "fact" (of claims), "outcome" (of final answers),
            "reasoning", "checklist" (its items in the response), "claim_checklist" (claims in the
            checklist), "out_of_knowledge" (can the policy know the answer?). Reward models add
            "truth" (of claims), "factuality" (of segments or responses) and "general" (quality).
        single_pass: finds and labels claims in one call; None if the judge cannot do this.
        recognise: adds reference data, such as gold answers, to a question; None: no such data.
        write: writes answers with an outline (FoRAG) from passages; None if the judge cannot.
    """

    extract: Extract
    verify: Mapping[str, Verify]
    single_pass: Extract | None = None
    recognise: Callable[[Question], Question] | None = None
    write: Write | None = None


# names of the checks that read claims or sentences, so that extraction must run before them
OF_CLAIMS = frozenset(
    {"fact", "single_pass", "claim_checklist", "reasoning", "truth", "factuality"}
)
