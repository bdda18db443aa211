"""The `Method` value: what scoring, training, the command line and the inspector need of one.

Each paper's folder (`workbench/methods/NAME/`) defines one; `workbench.methods.METHODS` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, Protocol

from workbench.data import check_trainable
from workbench.methods.bench import Bench
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.training.stage import Stage
from workbench.types import (
    TWO_FACETS,
    Checks,
    Grade,
    JsonMapping,
    JsonObject,
    Question,
    RewardFn,
    WorkbenchError,
)
from workbench.util.config import check_values, find, get, leaves, override, parts, scaled, setting
from workbench.util.config import settings as settings_of
from workbench.world.questions import KINDS

__all__ = ["AT_ONCE", "Method", "Prompts", "Training", "scaled"]


class MethodConfig(Protocol):
    """The settings of a method: a frozen dataclass with a part for each trainer."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    @property
    def prompts(self) -> Prompts: ...


Configs = Mapping[str, MethodConfig]  # by the method's name


@dataclass(frozen=True)
class Training:
    """How a config is trained.

    Attributes:
        trainer: the part of the last stage; its `steps` are the run's, and its `max_failed`, if
        it has one, holds for the run's evaluations.
        idle: parts and fields, by path, that the config is not trained by; setting them is
        refused.
        start: the checkpoint of the bench that a run starts from, unless a policy is named; None
        for the bench's own policy.
        resident_models: how many models of the policy's size the reward holds in memory.
    """

    trainer: str = "grpo"
    idle: Collection[str] = ()
    start: str | None = None
    resident_models: int = 0


@dataclass(frozen=True)
class Method:
    """A method as a value.

    Attributes:
        name: as the command line and stored rows have it; `title` as people write it.
        config: the frozen dataclass of its settings, the paper's by default; its fields are made
        by `workbench.util.config.setting`.
        reward: config -> the reward function of a row of feedback. Raises WorkbenchError for
        values that cannot work.
        checks: config -> the names of the checks whose verdicts the reward reads.
        sections: config -> the sections of a response whose claims are checked; none where no
        claim is looked at. Where methods are scored together all of theirs are checked, so a
        reward looks at each claim's `section` itself.
        stages: config and bench -> its training, ready to run; None for a method that only
        scores. A config that is trained has the part `prompts` and those of its trainers.
        parts: the parts of the reward -> what each is called and what it means.
        scales: the method's config at a bench, by the bench's name, where it is not the paper's.
        training: config -> how it is trained.
        input_digests: config and bench -> digests of the external inputs, by name; None
        for a missing input.
    """

    name: str
    title: str
    config: Callable[..., Any]
    reward: Callable[[Any], RewardFn]
    checks: Callable[[Any], tuple[str, ...]]
    sections: Callable[[Any], frozenset[str]] = lambda config: ANSWER_SECTIONS
    stages: Callable[[Any, Bench], Sequence[Stage]] | None = None
    parts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    scales: JsonMapping = field(default_factory=dict)
    training: Callable[[Any], Training] = lambda config: Training()
    input_digests: Callable[[Any, Bench], Mapping[str, str | None]] = lambda config, bench: {}

    def with_steps(self, config: MethodConfig, steps: int) -> list[str]:
        """Return the settings that make the last stage train for `steps` steps, not epochs."""
        path = self.training(config).trainer
        values = {name: value for name, value, _ in settings_of(get(config, path))}
        passes = isinstance(values.get("passes.epochs"), float)
        unset = [f"{self.name}.{path}.epochs=none"] if passes else []
        return [f"{self.name}.{path}.steps={steps}", *unset]

    def configure(self, scale: str | None = None, settings: Sequence[str] = ()) -> Any:
        """The config at a bench's scale, or the paper's, with `settings` ("name.field=value")
        applied.

        Raises:
            WorkbenchError: no such field, a value of the wrong type, one of a part that this
            config is not trained by, or one that could be meant of several parts.
        """
        config = override(self.scales.get(scale or "", self.config()), self.name, settings)
        idle = {leaf for path in self.training(config).idle for leaf in leaves(config, path)}
        for one in settings:
            path, _, value = one.strip().partition(".")[2].partition("=")
            field = path.strip().rpartition(".")[2]
            found = find(config, path.strip())
            used = sorted({name.partition(".")[0] for name in found if name not in idle})
            if not used:
                unused = ", ".join(sorted({name.partition(".")[0] for name in found}))
                raise WorkbenchError(
                    f"--set {one}: with the other settings {self.name} does not use {unused}; leave"
                    " it out"
                )
            if len(used) > 1:
                meant = " or ".join(f"{self.name}.{part}.{field}={value}" for part in used)
                raise WorkbenchError(
                    f"--set {one}: '{field}' is a setting of {' and of '.join(used)}: write {meant}"
                )
        return config

    def grader(self, config: MethodConfig, checks: Checks) -> Grade:
        """Responses -> feedback with the verdicts that the method reads and the reward under its
        name.
        """
        return assemble(
            checks, self.checks(config), {self.name: self.reward(config)}, self.sections(config)
        )


@dataclass(frozen=True)
class Prompts:
    """Which questions of a bench a method trains on, and which ones a policy is asked before and
    after.
    """

    kinds: str = setting(
        "", "question kinds to train on, separated by commas; empty for the bench's own"
    )
    eval_split: Literal["validation", "test", "ood"] = setting(
        "validation", "the split that is evaluated on"
    )
    eval_kinds: str = setting(
        "", "question kinds to evaluate on; empty for all that have gold answers"
    )
    eval_samples: int = setting(
        4, "sampled responses a question in an evaluation, beside the greedy one", least=0
    )
    system: str | None = setting(
        None,
        "what the policy is told before each question; empty: nothing; none: what the bench"
        " tells it",
    )

    def trained(self) -> list[str]:
        return _listed(self.kinds)

    def evaluated(self) -> list[str]:
        return _listed(self.eval_kinds)


def reward_settings(config: MethodConfig) -> JsonObject:
    """The fields of a method's config that can change what a row is paid: not those of its
    parts, nor those that only train.
    """
    left_out = {*parts(config), *(one.name for one in fields(config) if one.metadata.get("trains"))}
    return {name: value for name, value in asdict(config).items() if name not in left_out}


def training_questions(prompts: Prompts, bench: Bench, *, answered: bool = True) -> list[Question]:
    """What is trained on: the bench's "rl" questions of the kinds that `prompts` names, if
    `answered` those with gold answers.

    Raises:
        WorkbenchError: there is none, or one that must not be trained on.
    """
    prompted = bench.with_system_prompt(prompts.system)
    questions = chosen_questions(prompted, "rl", prompts.trained(), answered=answered)
    check_trainable(questions)
    return questions


def chosen_questions(
    bench: Bench,
    split: str,
    kinds: Collection[str] | None = None,
    lang: str = "en",
    *,
    answered: bool | None = None,
) -> list[Question]:
    """The questions of a split, those of `kinds` if any are named; if `answered` only those with
    gold answers, which is the default where no kinds are named.

    Raises:
        WorkbenchError: there is none, or none of a kind that is named.
    """
    answered = not kinds if answered is None else answered
    asked = bench.questions(split, tuple(kinds or ()) or None, lang)
    questions = [question for question in asked if question.answers or not answered]
    missing = sorted(set(kinds or ()) - {question.kind for question in questions})
    if missing or not questions:
        every = (*bench.questions(split, None, lang), *bench.questions(split, EVERY_KIND, lang))
        known = sorted({question.kind for question in every if question.answers or not answered})
        raise WorkbenchError(
            f"bench '{bench.name}' has no questions{' with answers' if answered else ''}"
            f"{' of kinds ' if missing else ''}{', '.join(missing)} in split '{split}'"
            f"{'' if lang == 'en' else f' in {lang!r}'}: choose among"
            f" {', '.join(known) or 'other splits, or give others'}"
        )
    return questions


def check_prompts(prompts: Prompts, bench: Bench) -> None:
    """Raise a WorkbenchError naming the field for what would only fail once a run is under way."""
    check_values(prompts)
    chosen_questions(bench, prompts.eval_split, prompts.evaluated())


def check_evidence(method: Method, config: MethodConfig, bench: Bench) -> None:
    """Raise a WorkbenchError if a language model must verify claims without passages."""
    if bench.llm_judge and "fact" in method.checks(config) and "fact" not in bench.checks.verify:
        raise WorkbenchError(
            f"{method.name} has claims verified against passages, and there are none: give the"
            ' questions "passages", or name an index with --store NAME'
        )


EVERY_KIND = (*KINDS, TWO_FACETS)
# A tiny model's pass: the whole batch, and all that its backward pass needs is kept.
AT_ONCE: JsonObject = {"micro_batch": None, "gradient_checkpointing": False}


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
