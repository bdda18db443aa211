"""Define `Run`: the questions of a FoRAG training run, and the functions that grade responses."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.claims import rules
from workbench.methods.bench import Bench
from workbench.methods.forag.config import FoRAG
from workbench.methods.forag.reward import reward
from workbench.methods.forag.segments import baseline, factuality, reference_values
from workbench.methods.method import training_questions
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.runs.store import iter_feedback
from workbench.training.collect import SAMPLES, collect_in_stage
from workbench.training.scorer import MODEL, load_reward_model
from workbench.training.settings import check_trainer
from workbench.training.stage import Job
from workbench.types import TWO_FACETS, Checks, Feedback, Grade, Question, WorkbenchError

BY_RULES = rules()  # the extractor in training if `Run.model_alone`


@dataclass(frozen=True)
class Run:
    """The config, questions and checks that the stages of a training run share.

    Attributes:
        questions: the questions for PPO or GRPO. Earlier stages use a part of them.
        checks: the checks of the bench's judge.
        model_alone: whether RL with a reward model works without calls of the judge: rules extract
            the claims. True if the judge is a language model.
    """

    config: FoRAG
    questions: Sequence[Question]
    checks: Checks
    model_alone: bool = False

    def judge_grade(self) -> Grade:
        """Return a function that rewards responses by the judge's verdicts on their claims.

        The reward is the sum of the segments' factuality. No baseline is subtracted.
        """
        # only a later stage computes the baseline
        return assemble(
            self.checks,
            ["fact"],
            {"forag": reward(replace(self.config, baseline=None))},
            ANSWER_SECTIONS,
        )

    def cold_questions(self, seed: int) -> list[Question]:
        # in another order than RL's: otherwise RL's first steps would use the same questions
        return self._shuffled(seed)[: self.config.cold.cold_questions]

    def judged_questions(self, seed: int) -> list[Question]:
        # from the end of the order, so that few of them are also in the cold start
        return self._shuffled(seed)[::-1][: self.config.drawn.questions]

    def _shuffled(self, seed: int) -> list[Question]:
        """Return the questions in a random order, which differs from their order in RL."""
        rng = random.Random(f"forag-questions-{seed}")
        return rng.sample(list(self.questions), len(self.questions))

    def judged_samples(self, job: Job) -> list[Feedback]:
        drawn, questions = self.config.drawn, self.judged_questions(job.seed)
        return collect_in_stage(
            job, questions, self.judge_grade(), drawn.sampling, drawn.samples, method="forag"
        )

    def training_grade(self, job: Job, compared: bool = False) -> Grade:
        """Return a function that rewards responses in RL, by the reward model or by the judge.

        Args:
            job: has the folders of the earlier stages. The reward model is in "reward_model", the
                graded answers of the reference model are in "reference".
            compared: if True, subtract the mean factuality of the reference model's answers to the
                question from the factuality of each segment.
        """
        config, checks, names = replace(self.config, baseline=None), self.checks, ["fact"]
        if config.rewarded == "model":
            scorer = load_reward_model(job.stages["reward_model"] / MODEL)
            names = ["factuality"] if self.model_alone else ["fact", "factuality"]
            checks = replace(
                checks,
                extract=BY_RULES if self.model_alone else checks.extract,
                verify={**checks.verify, "factuality": factuality(scorer, config.evaluation)},
            )
        if compared:
            values = reference_values(iter_feedback(job.stages["reference"] / SAMPLES))
            checks = replace(checks, verify={**checks.verify, "baseline": baseline(values)})
            config, names = replace(config, baseline=True), [*names, "baseline"]
        return assemble(checks, names, {"forag": reward(config)}, ANSWER_SECTIONS)


def prepare(config: FoRAG, bench: Bench) -> Run:
    """Check a config and its bench, and return the `Run` that the stages share.

    Raises:
        WorkbenchError: invalid settings, no questions, a question without passages to answer from,
            or a judge that cannot verify claims or, if `cold.writer` is "judge", write answers.
    """
    reward(config)  # checks the values
    if config.fractional and config.reward_model.loss == "log":
        raise WorkbenchError(
            "forag.reward_model.loss is log, which needs targets of 0 or 1, but forag.aggregate is"
            " mean, whose targets lie between 0 and 1: leave forag.reward_model.loss out, or set"
            " forag.aggregate=min"
        )
    check_trainer(config.reward_model, trl=False)
    questions = training_questions(config.prompts, bench, answered=False)
    if bare := next((question for question in questions if not question.passages), None):
        raise WorkbenchError(
            f"question '{bare.id}' has no passages, and FoRAG answers from passages: add"
            ' "passages" to the questions (`workbench data show --store NAME` searches an index for'
            f" them), or on the tiny bench set forag.prompts.kinds={TWO_FACETS}"
        )
    # with `model_alone`, RL sends no request to a language model for each response
    run = Run(config, questions, bench.checks, bench.llm_judge is not None)
    run.judge_grade()  # raises if the judge cannot verify facts
    if config.cold.cold_samples and config.cold.writer == "judge" and bench.checks.write is None:
        raise WorkbenchError(
            f"forag.cold.writer is \"judge\", and bench '{bench.name}' has no judge that writes"
            " answers: name one with --judge URL --judge-model NAME, or leave forag.cold.writer out"
        )
    return run
