"""Define `Method`: the settings, reward and training of one method.

Each folder `workbench/methods/NAME/` defines a `Method`. Scoring, training, the command line and
the inspector read these values. `workbench.methods.METHODS` lists the methods.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, Protocol

from workbench.data import check_trainable
from workbench.methods.bench import Bench
from workbench.pipeline import ANSWER_SECTIONS, SECTIONS, assemble
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
    """Type of a method's config: a frozen dataclass of settings.

    The field `prompts` selects the questions. The settings of a trainer have a field of their own,
    such as `grpo` for GRPO.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    @property
    def prompts(self) -> "Prompts": ...


Configs = Mapping[str, MethodConfig]  # name of the method -> config


@dataclass(frozen=True)
class Training:
    """How a method trains the policy with a given config.

    Attributes:
        trainer: name of the config's field with the trainer's settings, such as "grpo".
        idle: settings that have no effect in this config, such as "ppo" if the trainer is GRPO.
            Setting one of them is an error.
        start: policy that training starts from if the user names none: a key of
            `Bench.checkpoints`, such as "base". None: the bench's initial policy.
        resident_models: number of models that the reward keeps in memory, each as large as the
            policy.
    """

    trainer: str = "grpo"
    idle: Collection[str] = ()
    start: str | None = None
    resident_models: int = 0


@dataclass(frozen=True)
class Method:
    """A method: its settings, its reward and its training.

    `a -> b` describes a function or a mapping from a to b. A bench is an initial policy with
    questions and a judge.

    Attributes:
        name: the name on the command line and in stored rows.
        title: the name in headings.
        config: frozen dataclass of the settings, with the paper's defaults. Its fields are made
            with `workbench.util.config.setting`.
        reward: config -> reward function. Raises WorkbenchError for invalid values.
        checks: config -> names of the checks whose verdicts the reward reads.
        sections: config -> sections of a response ("think", "answer", "body") whose claims are
            verified. A stored row may also have claims of other sections, because another method
            needs them. The reward must ignore these claims.
        stages: config, bench -> training stages, in order. None for a method without training.
        parts: name of a part of the reward -> (its title, its meaning).
        scales: bench name -> config for that bench, such as settings for a tiny policy. Benches
            that are not listed use the paper's settings.
        training: config -> how the policy is trained with this config.
        input_digests: config, bench -> {name: digest} of the files and models that the config
            names. The digest of a missing input is None. A run can be resumed only with the same
            digests.
        needs_tokens: config -> "" if the reward can be computed from the text alone. Otherwise it
            reads the number of tokens of a response or whether the response was cut off, and the
            result is the setting without which it does not, such as "l_max=none".

    Raises:
        WorkbenchError: `checks` or `sections` returns a wrong type or an unknown section, or there
            are `stages` but the config lacks `prompts` or the trainer's field.
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
    needs_tokens: Callable[[Any], str] = lambda config: ""

    def __post_init__(self) -> None:
        # without this check, a wrong method of another package would fail only in training
        config = self.config()
        for name, kind in (("checks", tuple | list), ("sections", Set)):
            value = getattr(self, name)(config)
            if not isinstance(value, kind) or not all(isinstance(one, str) for one in value):
                raise WorkbenchError(
                    f"method '{self.name}': {name} must return names in a"
                    f" {'set' if kind is Set else 'tuple'}, not {value!r}"
                )
        if unknown := sorted(self.sections(config) - SECTIONS):
            raise WorkbenchError(
                f"method '{self.name}': there is no section '{unknown[0]}': sections are"
                f" {', '.join(sorted(SECTIONS))}"
            )
        needed = ("prompts", self.training(config).trainer) if self.stages else ()
        if missing := [name for name in needed if not hasattr(config, name)]:
            raise WorkbenchError(
                f"method '{self.name}' has stages, but its config has no '{missing[0]}': add the"
                " field prompts (Prompts) and a field for the trainer, such as grpo (GRPO)"
            )

    def with_steps(self, config: MethodConfig, steps: int) -> list[str]:
        """Return settings that limit a training to `steps` steps: ["truthrl.grpo.steps=10"].

        If the config sets a number of epochs, a second setting unsets it, such as
        "klcf.dpo.epochs=none".
        """
        path = self.training(config).trainer
        values = {name: value for name, value, _ in settings_of(get(config, path))}
        passes = isinstance(values.get("passes.epochs"), float)
        # a config with both steps and epochs would be refused
        unset = [f"{self.name}.{path}.epochs=none"] if passes else []
        return [f"{self.name}.{path}.steps={steps}", *unset]

    def configure(self, scale: str | None = None, settings: Sequence[str] = ()) -> Any:
        """Return the method's config for a bench, changed by `settings`.

        Args:
            scale: name of the bench; None for the paper's settings.
            settings: changes such as "truthrl.grpo.steps=10", which begin with the method's name.

        Raises:
            WorkbenchError: a value has the wrong type, or a setting is unknown, ambiguous (several
                parts of the config have a field of this name) or without effect in this config.
        """
        config = override(self.scales.get(scale or "", self.config()), self.name, settings)
        idle = {leaf for path in self.training(config).idle for leaf in leaves(config, path)}
        for one in settings:
            path, _, value = one.strip().partition(".")[2].partition("=")
            field = path.strip().rpartition(".")[2]
            paths = find(config, path.strip())
            used = sorted({name.partition(".")[0] for name in paths if name not in idle})
            if not used:
                unused = ", ".join(sorted({name.partition(".")[0] for name in paths}))
                raise WorkbenchError(
                    f"--set {one}: {self.name} does not use {unused} with its other settings: leave"
                    " this setting out"
                )
            if len(used) > 1:
                choices = " or ".join(f"{self.name}.{part}.{field}={value}" for part in used)
                raise WorkbenchError(
                    f"--set {one}: {' and '.join(used)} have a setting '{field}': write {choices}"
                )
        return config

    def grader(self, config: MethodConfig, checks: Checks) -> Grade:
        """Return a function that grades responses with the method's checks and its reward."""
        return assemble(
            checks, self.checks(config), {self.name: self.reward(config)}, self.sections(config)
        )


@dataclass(frozen=True)
class Prompts:
    """Settings that select questions, and their prompts, for training and evaluation.

    A run evaluates the policy before and after training.
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
        4, "sampled responses per question in an evaluation, besides the greedy response", least=0
    )
    system: str | None = setting(None, "system prompt; empty: no system prompt; none: the bench's")
    retrieved: int = setting(
        0,
        "passages added to a prompt without any, found by a search in the closed world's pages",
        least=0,
        most=3,  # longer prompts leave the tiny policy no positions for an answer
    )

    def trained(self) -> list[str]:
        return listed(self.kinds)

    def evaluated(self) -> list[str]:
        return listed(self.eval_kinds)


def reward_settings(config: MethodConfig) -> JsonObject:
    """Return a dict of the settings that can change the reward of a stored response.

    Settings that only training uses are left out.
    """
    # the nested settings of trainers, and the fields that only training uses
    left_out = {*parts(config), *(one.name for one in fields(config) if one.metadata.get("trains"))}
    return {name: value for name, value in asdict(config).items() if name not in left_out}


def training_questions(
    prompts: "Prompts", bench: Bench, *, answered: bool = True
) -> list[Question]:
    """Return the bench's questions for training, from the split "rl".

    Args:
        prompts: selects the kinds of questions, such as "single" or "biography", the system prompt,
            and the number of retrieved passages in each prompt.
        answered: if True, return only questions with gold answers.

    Raises:
        WorkbenchError: there are no such questions, or a question is for evaluation only.
    """
    # the prompt is part of a question, so training and evaluation use the same one
    prompted = bench.with_system_prompt(prompts.system).with_retrieved(prompts.retrieved)
    questions = chosen_questions(prompted, "rl", prompts.trained(), answered=answered)
    check_trainable(questions)
    return questions


def chosen_questions(
    bench: Bench,
    split: str,
    kinds: Collection[str] | None,
    lang: str = "en",
    *,
    answered: bool | None = None,
) -> list[Question]:
    """Return the bench's questions of one split and one language.

    Args:
        kinds: question kinds to return, such as "single" or "biography". For questions about real
            facts, a relation, such as "capital", can be given too. None: the bench's default kinds.
        answered: if True, return only questions with gold answers; if False, all. None means False
            if `kinds` are given, else True.

    Raises:
        WorkbenchError: no question is left, or one of the `kinds` has no question.
    """
    answered = not kinds if answered is None else answered
    # a bench chooses its default kinds if it gets None, not ()
    loaded = bench.questions(split, tuple(kinds or ()) or None, lang)
    questions = [question for question in loaded if question.answers or not answered]
    found = {
        name for question in questions for name in (question.kind, question.meta.get("relation"))
    }
    missing = sorted(set(kinds or ()) - found)
    if missing or not questions:
        every = (*bench.questions(split, None, lang), *bench.questions(split, EVERY_KIND, lang))
        known = sorted({question.kind for question in every if question.answers or not answered})
        raise WorkbenchError(
            f"bench '{bench.name}' has no questions{' with answers' if answered else ''}"
            f"{' of kinds ' if missing else ''}{', '.join(missing)} in split '{split}'"
            f"{'' if lang == 'en' else f' in {lang!r}'}: choose"
            f" {'among ' + ', '.join(known) if known else 'another split, or other questions'}"
        )
    return questions


def check_prompts(prompts: "Prompts", bench: Bench) -> None:
    """Check, before training, that the settings are valid and the bench has evaluation questions.

    Raises:
        WorkbenchError: invalid settings, or no questions to evaluate on.
    """
    check_values(prompts)
    chosen_questions(bench, prompts.eval_split, prompts.evaluated())


def check_evidence(method: Method, config: MethodConfig, bench: Bench) -> None:
    """Check that there are passages to verify claims against, if a language model is the judge.

    Nothing is checked if the judge is not a language model, or the method does not verify claims.

    Raises:
        WorkbenchError: the judge has no passages to compare claims with.
    """
    if bench.llm_judge and "fact" in method.checks(config) and "fact" not in bench.checks.verify:
        raise WorkbenchError(
            f"{method.name} verifies claims against passages, but there are none: give the"
            ' questions "passages", or name an index with --store NAME'
        )


EVERY_KIND = (*KINDS, TWO_FACETS)
# settings for tiny models, which need neither micro-batches nor gradient checkpointing
AT_ONCE: JsonObject = {"micro_batch": None, "gradient_checkpointing": False}


def listed(text: str) -> list[str]:
    """Return the items of a text that are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
