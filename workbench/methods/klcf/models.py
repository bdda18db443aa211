"""The stages that train KLCF's reward models: the truthfulness model and the model of good form."""

from workbench.methods.held_out import HELD_OUT, split_held_out, train_with_held_out
from workbench.methods.klcf.confidence import calibrated
from workbench.methods.klcf.general import quality_rows
from workbench.methods.klcf.run import PREPARE, KLCFRun
from workbench.methods.klcf.truth import scorer_of, truth_examples
from workbench.methods.klcf.truth_metrics import measured
from workbench.policies.load import load_policy, load_tokenizer
from workbench.runs.store import iter_feedback
from workbench.training.collect import SAMPLES
from workbench.training.stage import Job, Status
from workbench.types import WorkbenchError
from workbench.util.jsonl import write_json


def train_truth(run: KLCFRun, job: Job) -> Status:
    """Train the truthfulness model on the prepared claims, or calibrate the base model's confidence
    on them. Measure the result and the untuned base model on held-out questions.
    """
    config, base, claims = run.config, run.source.base, run.prepared(job).truth
    if not claims:
        raise WorkbenchError(
            f"'{job.stages[PREPARE]}' has no claims to train on, two supported claims to each"
            " refuted one: prepare more questions or samples, or set klcf.rewarded=judge"
        )
    rows = truth_examples(claims, tuple(load_tokenizer(base).all_special_tokens))
    if config.rewarded == "model":
        return train_with_held_out(
            config.truth_model,
            rows,
            config.held_out,
            base,
            job.out,
            seed=job.seed,
            measure=lambda model, *split: measured(scorer_of(model), load_policy(base), *split),
        )
    policy, split = load_policy(base), split_held_out(rows, config.held_out, job.seed)
    confidence = calibrated(policy, split[0])
    confidence.save(job.out)
    write_json(job.out / HELD_OUT, measured(confidence.score, policy, *split))
    return "done"


def train_general(run: KLCFRun, job: Job) -> Status:
    """Train a model of good form on the base's answers to training questions and corrupted copies;
    measure it on held-out questions.
    """
    config, base = run.config, run.source.base
    allowed = {question.id for question in run.allowed}
    samples = [
        sample
        for sample in iter_feedback(job.stages[PREPARE] / SAMPLES)
        if sample.response.question.id in allowed
    ]
    rows = quality_rows(samples, job.seed, tuple(load_tokenizer(base).all_special_tokens))
    training, _ = split_held_out(rows, config.held_out, job.seed)
    if {row.segments[0].target for row in training} != {0.0, 1.0}:
        raise WorkbenchError(
            f"'{job.stages[PREPARE]}' has no whole answers to learn good form from: prepare more"
            " questions or samples, or name a preference model with klcf.general"
        )
    return train_with_held_out(
        config.general_model, rows, config.held_out, base, job.out, seed=job.seed
    )
