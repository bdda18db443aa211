"""Define `KLCFRun`: the settings and questions of a KLCF training run, and its grading function."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.methods.bench import Bench
from workbench.methods.klcf.confidence import context, load_confidence
from workbench.methods.klcf.config import KLCF
from workbench.methods.klcf.general import general, preference_model
from workbench.methods.klcf.prepared import (
    Prepared,
    Source,
    digest,
    read_prepared,
    samples_digest,
    source_of,
)
from workbench.methods.klcf.reward import checks, reward
from workbench.methods.klcf.truth import scorer_of, truth
from workbench.pipeline import ANSWER_SECTIONS, assemble
from workbench.policies.load import load_policy
from workbench.runs.folder import policy_hash
from workbench.training.scorer import MODEL, check_room, load_reward_model, longest_input
from workbench.training.stage import Job
from workbench.types import Grade, Question, Verify, WorkbenchError

PREPARE, TRUTH_MODEL, GENERAL = "prepare", "truth", "general"  # names of the stages


@dataclass(frozen=True)
class KLCFRun:
    """The config and bench of a training run.

    Attributes:
        bench: the initial policy, the questions and the judge.
        allowed: the bench's training questions. Prepared data about other questions is an error,
            because these may be held out.
    """

    config: KLCF
    bench: Bench
    allowed: Sequence[Question]

    @property
    def source(self) -> Source:
        return source_of(self.bench, self.config.base)

    def prepared(self, job: Job) -> Prepared:
        return read_prepared(job.stages[PREPARE], self.source, self.allowed)

    def questions(self, job: Job) -> list[Question]:
        """Return the training questions that have a checklist in the prepared data.

        Args:
            job: contains the folder of the prepared data.

        Raises:
            WorkbenchError: no question has a checklist.
        """
        # even if the checklist has weight 0, so that all weights train on the same questions
        if questions := self.prepared(job).questions:
            return questions
        raise WorkbenchError(
            "the evidence supports no claim of the base model about the training questions: see"
            f" '{job.stages[PREPARE]}', and give other questions or raise klcf.prepare.samples"
        )

    def grade(self, job: Job) -> Grade:
        """Return the function that grades responses in training with KLCF's reward.

        The judge compares answers with checklists. The setting `rewarded` selects the source of
        P(true): the truthfulness model, the base model's confidence or the judge.

        Args:
            job: contains the folders of the trained models.
        """
        bench, config = self.bench, self.config
        verify = dict(bench.checks.verify)
        if config.models_truth:
            verify["truth"] = self._truth(job.stages[TRUTH_MODEL])
        if config.w_general:
            verify["general"] = self._general(job)
        names = checks(config, "fact" if config.rewarded == "judge" else "truth")
        if not bench.llm_judge and "fact" in verify and "fact" not in names:
            names = (*names, "fact")  # only for the metrics; without a language model it is cheap
        rewards = {"klcf": reward(config)}
        return assemble(replace(bench.checks, verify=verify), names, rewards, ANSWER_SECTIONS)

    def _truth(self, stage: Path) -> Verify:
        if self.config.rewarded == "model":
            model = load_reward_model(stage / MODEL)
            specials = model.tokenizer.all_special_tokens
            return truth(scorer_of(model), "truthfulness model", specials)
        confidence = load_confidence(stage, load_policy(self.source.base))
        specials = confidence.policy.tokenizer.all_special_tokens
        return truth(confidence.score, "the base's confidence", specials)

    def _general(self, job: Job) -> Verify:
        if name := self.config.general:
            named = preference_model(name)
            return general(named.score, name, named.specials)
        model = load_reward_model(job.stages[GENERAL] / MODEL)
        by = "the base's own answers, whole or corrupted"
        return general(scorer_of(model), by, model.tokenizer.all_special_tokens)

    def check_prepared(self) -> None:
        """Check, before training, that the base model and the prepared data can be used.

        The data is in the folder `klcf.prepare.folder`. Without this setting, the run prepares its
        own data, and only the base model is checked.

        Raises:
            WorkbenchError: the base model or the folder is missing, the folder lacks samples that
                the run needs, or it was prepared for another base model or bench.
        """
        source, folder = self.source, self.config.prepare.folder
        if folder:
            read_prepared(Path(folder), source, self.allowed)
            if self.config.trains_general and samples_digest(Path(folder)) is None:
                raise WorkbenchError(
                    f"'{folder}' has no samples, but the model for klcf.w_general is trained on"
                    " them: name a model with klcf.general, or prepare another folder"
                )

    def check_lengths(self) -> None:
        """Check that the reward models can read the longest answers in training.

        The models read the question and an answer, or a claim that may be as long as the answer. If
        the setting `klcf.general` names a preference model, it is loaded to get the length of its
        context.

        Raises:
            WorkbenchError: a model's context is too short, or the preference model cannot be
                loaded.
        """
        config = self.config
        last = config.drawn if config.trainer == "dpo" else config.grpo
        most = last.sampling.max_new_tokens
        # without passages and system prompt, which these models do not read
        bare = [Question(question.id, question.text) for question in self.allowed]
        if config.w_general and config.general:
            named = preference_model(config.general)
            needed = max(map(named.prompt_tokens, bare)) + most
            if named.longest < needed:
                raise WorkbenchError(
                    f"klcf.general: '{config.general}' reads up to {named.longest} tokens, but the"
                    f" longest question with an answer of {most} tokens has {needed}: name another"
                    " model, or lower max_new_tokens"
                )
        if config.models_truth and config.rewarded == "confidence":
            longest, needed = context(self.source.base), longest_input(self.source.base, bare, most)
            if longest < needed:
                raise WorkbenchError(
                    f"klcf.rewarded is confidence: the base model reads up to {longest} tokens, but"
                    f" the longest question with a claim of {most} tokens has {needed}: lower"
                    " max_new_tokens, or set klcf.rewarded to model or judge"
                )
        models = {}
        if config.models_truth and config.rewarded == "model":
            models["klcf.truth_model"] = config.truth_model
        if config.trains_general:
            models["klcf.general_model"] = config.general_model
        check_room(self.source.base, bare, most, models)


def input_digests(config: KLCF, bench: Bench) -> dict[str, str | None]:
    """Return name -> digest of the models and files that a run reads.

    The initial policy and the questions are not included.

    * `base_hash`: the base model, if its weights are on disk and differ from the initial policy's
    * `prepared_hash`, `samples_hash`: the folder `klcf.prepare.folder` and its samples, if used
    * `general_hash`: the preference model, if one is named

    The digest of a missing file, or of a preference model on the hub, is None.
    """
    digests: dict[str, str | None] = {}
    base = policy_hash(source_of(bench, config.base).base)
    if base and base != policy_hash(bench.path(bench.policy)):
        digests["base_hash"] = base
    if folder := config.prepare.folder:
        digests["prepared_hash"] = digest(Path(folder))
        if config.trains_general:
            digests["samples_hash"] = samples_digest(Path(folder))
    if config.general:
        digests["general_hash"] = policy_hash(config.general)
    return digests
