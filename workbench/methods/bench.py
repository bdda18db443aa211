"""Define `Bench`, an initial policy with questions and a judge. `bench(name)` returns a bench.

* "tiny": questions about the closed world (generated people and places), and a policy that is in
  the repository. It needs no download.
* "small": a model of the Hugging Face hub, and questions from the table of real facts, from a data
  set or from a file.
* "paper": a larger model of the hub. The user must name a data set or a file of questions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

from workbench.data import SPLITS, load
from workbench.data.real_facts import pages
from workbench.data.real_facts import questions as real_questions
from workbench.policies.generate import Policy
from workbench.policies.load import Engine, adapter_folder, check_policy_name, load_policy
from workbench.retrieval import Search, from_passages
from workbench.runs.folder import read_json
from workbench.types import TWO_FACETS, Checks, JsonObject, Passage, Question, WorkbenchError
from workbench.verdicts.checks import real_checks, rule_checks, world_checks
from workbench.verdicts.llm_judge import REPLIES, LLMJudge, NamedJudge
from workbench.world import load_world
from workbench.world.questions import SHORT_KINDS, select

# only in a clone of the repository, not in an installed package
DATA = Path(__file__).resolve().parents[2] / "data"
TINY_POLICY = DATA / "tiny-policy"
DEFAULT_POLICY = "sft"  # checkpoint that training starts from by default
# fine-tuned checkpoint -> its pre-trained model
PRETRAINED = {DEFAULT_POLICY: "base"}
# file in a run's folder; names the policy, made by an earlier stage, from which the last stage
# starts
START_FILE = "start.json"
NEW_TOKENS = 2048  # the paper's longest response
ANSWER_TOKENS = 112  # tokens of the tiny policy's longest answers
# One instruction for each kind of question: with "yes or no" among the allowed forms, a 0.5B model
# answers "Yes" to every question.
NAME_ALONE = 'Answer with the name alone. If you are not sure, answer "I don\'t know".'
YES_OR_NO = 'Answer with yes or no alone. If you are not sure, answer "I don\'t know".'
LONG_KINDS = ("biography", "long_form", TWO_FACETS)
THINK_THEN_BOX = (
    "Reason about the question between <think> and </think>. Then give the final answer in"
    " \\boxed{}. If you are not sure of the answer, write \\boxed{I don't know}."
)
# added to the prompts of a data set in which some questions have a false premise
MAY_BE_INVALID = " If the question assumes something false, write \\boxed{invalid question}."


@dataclass(frozen=True)
class Scale:
    """The initial policy and the token limits of the bench "tiny", "small" or "paper".

    Attributes:
        policy: folder or hub name of the initial policy.
        longest: token limit of an answer in an evaluation.
        prompt: assumed number of tokens of a prompt, for memory estimates (`workbench plan`).
    """

    policy: str
    longest: int
    prompt: int

    @property
    def checkpoints(self) -> dict[str, str]:
        # Qwen's base model has the instruct model's name without the suffix
        return {"sft": self.policy, "base": self.policy.removesuffix("-Instruct")}


SCALES = {
    "tiny": Scale(str(TINY_POLICY / DEFAULT_POLICY), ANSWER_TOKENS, 128),
    "small": Scale("Qwen/Qwen2.5-0.5B-Instruct", 512, 512),
    "paper": Scale("Qwen/Qwen2.5-7B-Instruct", NEW_TOKENS, 512),
}
NAMES = tuple(SCALES)


@dataclass(frozen=True)
class Bench:
    """An initial policy, questions and a judge: all that a training or evaluation needs.

    `a -> b` describes a function or a mapping from a to b.

    Attributes:
        policy: the initial policy: a key of `checkpoints`, a folder or a hub name.
        questions: (split, kinds=None, lang="en") -> list of questions. `kinds=None` selects the
            bench's default kinds.
        max_new_tokens: token limit of an answer in an evaluation.
        hash: digest of the closed world or of the questions. A run can be resumed only on a bench
            with the same digest.
        judge: () -> the judge's functions that extract and check claims. It is called when they are
            first needed.
        checkpoints: policy name, such as "sft" -> folder or hub name.
        long_new_tokens: token limit of an answer to a question that asks for a long text; 0:
            `max_new_tokens`.
        shown: question -> number of the base model's training documents that state the answer; None
            if unknown.
        named_judge: the judge that replaces the bench's own one, such as that of `--judge`. None:
            the bench's own judge is used.
        search: () -> function that searches the bench's pages, which are texts about the subjects
            of its questions. It finds passages for prompts, and evidence for `named_judge`. None
            if the bench has no pages.
        questions_hash: question kinds -> digest of the questions that `hash` does not cover, for
            example of the kind "two_facets"; None if `hash` covers all questions of these kinds.
    """

    name: str
    policy: str
    questions: Callable[..., list[Question]]
    max_new_tokens: int
    hash: str
    judge: Callable[[], Checks]
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    long_new_tokens: int = 0
    shown: Callable[[Question], int | None] = lambda question: None
    named_judge: NamedJudge | None = None
    search: Callable[[], Search] | None = None
    questions_hash: Callable[[Iterable[str]], str | None] = lambda kinds: None

    @cached_property
    def checks(self) -> Checks:
        # computed only when first used, because a judge may load a model
        return self.judge()

    @property
    def llm_judge(self) -> LLMJudge | None:
        """The judge that the user named, if it is a language model; otherwise None."""
        return self.named_judge if isinstance(self.named_judge, LLMJudge) else None

    @property
    def judge_identity(self) -> JsonObject:
        """The entry {"judge": settings} for a run's config.json; {} if `named_judge` is None."""
        return {"judge": self.named_judge.identity()} if self.named_judge else {}

    def with_judge(self, judge: NamedJudge | None) -> Bench:
        """Return a copy of the bench with another judge; the bench itself if `judge` is None.

        Raises:
            WorkbenchError: this is the tiny bench, which has an exact judge.
        """
        if judge is None:
            return self
        if self.name == "tiny":
            raise WorkbenchError(
                "the tiny bench has an exact judge of its own: leave --judge out, or choose another"
                " --bench"
            )
        passages = (question.passages for split in SPLITS for question in self.questions(split))
        # without evidence, every verdict of the check "fact" would be a failure
        evidence = judge.store is not None or self.search is not None or any(passages)
        search = self.search
        return replace(
            self, named_judge=judge, judge=lambda: judge.checks(search and search(), evidence)
        )

    def with_cache_dir(self, folder: Path) -> Bench:
        """Return a copy of the bench whose language model judge stores its replies in `folder`.

        Return the bench itself if it has no such judge, or if the judge already has a cache.
        """
        if self.llm_judge is None or self.llm_judge.cache:
            return self
        return self.with_judge(replace(self.llm_judge, cache=folder / REPLIES))

    def with_policy(self, policy: str | None) -> Bench:
        """Return a copy of the bench with another initial policy.

        Args:
            policy: a name that the bench has for a checkpoint (a key of its field `checkpoints`), a
                folder or a hub name. None: return the bench itself.

        Raises:
            WorkbenchError: the policy is an adapter, not a whole model.
        """
        if policy is not None and adapter_folder(Path(self.path(policy))):
            raise WorkbenchError(
                f"'{policy}' is an adapter, and training starts from a whole model: name a model's"
                " folder or hub name"
            )
        return self if policy is None else replace(self, policy=policy)

    def with_system_prompt(self, system: str | None) -> Bench:
        """Return a copy of the bench in which all questions have this system prompt.

        Return the bench itself if `system` is None.
        """
        if system is None:
            return self

        return replace(
            self,
            questions=lambda *args, **kwargs: [
                replace(question, system=system) for question in self.questions(*args, **kwargs)
            ],
        )

    def with_retrieved(self, count: int) -> Bench:
        """Return a copy of the bench whose prompts contain passages from the closed world's pages.

        Return the bench itself if `count` is 0. Questions that have passages of their own are
        unchanged.

        Args:
            count: number of passages for each question. The question is the query of a BM25 search;
                the best passages come first.

        Raises:
            WorkbenchError: this is not the tiny bench. On other benches, the passages in the prompt
                are also the evidence for claims, so wrong passages would lead to wrong verdicts.
        """
        if not count:
            return self
        if self.name != "tiny" or self.search is None:
            raise WorkbenchError(
                f"retrieved is {count}, but bench '{self.name}' takes a question's passages as"
                " evidence for its claims: set retrieved=0, and add passages to the file of"
                " questions (`workbench data show FILE --store NAME --out FILE`)"
            )
        search = self.search()

        def questions(*args: object, **kwargs: object) -> list[Question]:
            found = self.questions(*args, **kwargs)
            passages = search([question.text for question in found], count)
            return [
                replace(question, passages=question.passages or tuple(own))
                for question, own in zip(found, passages, strict=True)
            ]

        return replace(self, questions=questions)

    def longest(self, questions: Iterable[Question]) -> int:
        """Return the token limit of an answer when a policy is evaluated on these questions."""
        long = any(question.kind in LONG_KINDS for question in questions)
        return max(self.max_new_tokens, self.long_new_tokens) if long else self.max_new_tokens

    @property
    def pretrained(self) -> str | None:
        """The pre-trained model of the initial policy, a key of `checkpoints`; None if unknown."""
        name = PRETRAINED.get(self.policy)
        return name if name in self.checkpoints else None

    def path(self, policy: str) -> str:
        """Return the folder or hub name of a policy such as "sft" or "base".

        A name that is not a key of `checkpoints` is returned unchanged.

        Raises:
            WorkbenchError: the checkpoint was built for another closed world than the bench's.
        """
        if policy not in self.checkpoints:
            return policy
        path = self.checkpoints[policy]
        folder = Path(path).parent
        card = read_json(folder / "card.json") or {}
        built = card.get("world_hash")
        if built not in (None, self.hash):
            raise WorkbenchError(
                f"the policy '{policy}' in '{folder}' was built on the world {built}, not"
                f" {self.hash}: delete that folder and run `workbench world build --out {folder}"
                f" --size {card.get('size', 'full')}`"
            )
        return path

    def base(self, policy: str) -> str | None:
        """Return the model to which a run's adapter belongs, as a folder or hub name.

        This is the model from which the last stage of the run's training started.

        Args:
            policy: folder of a run on this bench. For other policies, such as "sft" or a hub name,
                the result is None.
        """
        path = Path(self.path(policy))
        # an earlier stage may have made the policy from which the last stage started
        if started := (read_json(path / START_FILE) or {}).get("start"):
            return str(path / started)
        # a run stores the name of its initial policy, which stays valid if the checkout is moved
        run = read_json(path / "config.json") or {}
        return (
            self.path(run["policy"]) if run.get("bench") == self.name and "policy" in run else None
        )

    def load(self, policy: str, engine: Engine = "hf") -> Policy:
        """Load a policy to generate text. If it is a run's adapter, load its base model too.

        Args:
            policy: a key of `checkpoints`, a folder or a hub name.
            engine: the library that generates text.
        """
        path = self.path(policy)
        check_policy(policy, path)
        return replace(load_policy(path, base=self.base(policy), engine=engine), name=policy)


def check_policy(name: str, path: str) -> None:
    """Check that a policy exists, without loading it.

    Args:
        name: the policy's name, for the error message.
        path: its folder or hub name.

    Raises:
        WorkbenchError: there is no such folder, and `path` cannot be a hub name.
    """
    if Path(path).is_relative_to(TINY_POLICY) and not Path(path).is_dir():
        raise WorkbenchError(
            f"the tiny bench's policy '{name}' is missing: run `workbench world build --out"
            f" {TINY_POLICY}`, or work in a clone of the repository, which has it, with"
            " `pip install -e .` (an installed package does not)"
        )
    check_policy_name(path)


def bench(name: str | Bench, questions: str | Path | None = None) -> Bench:
    """Return the bench called `name`, which is an initial policy with questions and a judge.

    Args:
        name: "tiny" (a policy of 1M parameters, and questions about generated facts), "small" (a
            model of 0.5B parameters) or "paper" (7B). A `Bench` is returned unchanged.
        questions: name of a data set, or path of a file, with the questions of "small" or "paper".
            None: "small" uses the table of real facts (folder `data/real-facts` of the repository),
            and "paper" raises an error. "tiny" ignores this argument.

    Raises:
        WorkbenchError: no bench has this name, or its questions are missing or cannot be read.
    """
    if isinstance(name, Bench):
        return name
    if name not in NAMES:
        raise WorkbenchError(f"no bench '{name}': choose one of {', '.join(NAMES)}")
    if name == "tiny":
        return _tiny()
    return _real() if name == "small" and questions is None else _hub(name, questions)


@cache
def _tiny() -> Bench:
    world = load_world()

    def questions(
        split: str, kinds: Sequence[str] | None = None, lang: str = "en"
    ) -> list[Question]:
        """Return the questions of a split.

        If `kinds` is None, the kinds are "single" and "numeric", on which RL trains. In the split
        "ood", which RL never uses, they are all kinds except "two_facets". Questions of the kind
        "two_facets" ask about two people and have excerpts of their pages.
        """
        own = world.questions(split, kinds or (None if split == "ood" else SHORT_KINDS), lang)
        return (
            [*own, *select(world.two_facets, split, None, lang)]
            if TWO_FACETS in (kinds or ())
            else own
        )

    return Bench(
        name="tiny",
        policy=DEFAULT_POLICY,
        questions=questions,
        max_new_tokens=48,  # enough to think first; training asks only for short answers
        long_new_tokens=ANSWER_TOKENS,
        shown=world.shown,
        questions_hash=lambda kinds: (
            questions_hash(world.two_facets) if TWO_FACETS in kinds else None
        ),
        hash=world.hash,
        judge=lambda: world_checks(world),
        search=cache(
            lambda: (
                from_passages([Passage(one.id, one.title, one.text) for one in world.pages]).search
            )
        ),
        checkpoints={
            "sft": SCALES["tiny"].policy,
            "base": str(TINY_POLICY / "base"),
        },
    )


@cache
def _real() -> Bench:
    """Return the bench "small" with questions from the table of real facts.

    By default, `Bench.questions` returns only questions with gold answers, which are short. It
    returns questions that ask for a long text only if `kinds` names their kind.
    """
    systems = {"yes_no": YES_OR_NO, **dict.fromkeys(LONG_KINDS, "")}
    prompted = [
        replace(question, system=systems.get(question.kind, NAME_ALONE))
        for question in real_questions()
    ]

    def questions(
        split: str, kinds: Sequence[str] | None = None, lang: str = "en"
    ) -> list[Question]:
        return [
            question
            for question in prompted
            if question.meta["split"] == split
            and question.meta["lang"] == lang
            and (
                not {question.kind, question.meta["relation"]}.isdisjoint(kinds)
                if kinds
                else question.answers
            )
        ]

    return Bench(
        name="small",
        policy=DEFAULT_POLICY,
        questions=questions,
        max_new_tokens=32,
        long_new_tokens=256,
        hash=questions_hash(prompted),
        judge=real_checks,
        search=lambda: from_passages(pages()).search,
        checkpoints=SCALES["small"].checkpoints,
    )


def _hub(name: str, source: str | Path | None) -> Bench:
    if source is None:
        raise WorkbenchError(
            f"bench '{name}' has no questions of its own: give --questions NAME|FILE, a data"
            ' set\'s name (`workbench data show`) or a file of {"id", "question", "answers",'
            ' "kind"?}'
        )
    read = load(source)
    # the prompt offers the answer "invalid question" only if it can be correct
    invalid = any(question.kind == "false_premise" for question in read)
    system = THINK_THEN_BOX + MAY_BE_INVALID * invalid
    loaded = [replace(question, system=system) for question in read]

    def questions(
        split: str, kinds: Sequence[str] | None = None, lang: str = "en"
    ) -> list[Question]:
        if lang != "en":
            raise WorkbenchError(
                f"the questions of bench '{name}' are in one language: leave lang='{lang}' out"
            )
        return [q for q in loaded if q.meta["split"] == split and (not kinds or q.kind in kinds)]

    return Bench(
        name=name,
        policy=DEFAULT_POLICY,
        questions=questions,
        max_new_tokens=SCALES[name].longest,
        hash=questions_hash(loaded),
        judge=rule_checks,
        checkpoints=SCALES[name].checkpoints,
    )


def questions_hash(questions: Sequence[Question]) -> str:
    """Return a SHA-256 digest of all fields of the questions, in the given order."""
    digest = hashlib.sha256()
    for question in questions:
        row = {
            **vars(question),
            "passages": [vars(passage) for passage in question.passages],
            "meta": dict(question.meta),
        }
        digest.update(json.dumps(row, sort_keys=True, default=str).encode())
    return digest.hexdigest()
