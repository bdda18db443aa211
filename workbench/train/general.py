"""The general reward of KLCF (arXiv 2509.23765, section 2.3.3), as the check "general": a preference model's view of an answer.

Training from a base has no KL penalty, since the base is no model of how to answer; this term keeps the policy in form. The
paper's is Skywork-Reward-V2-Llama-3.2-1B: any classifier with one output can be named. In its place *(ours)* a reward model may
be trained from the base itself, of its own answers against the same ones spoilt, so that nothing from outside is needed: it
tells whether an answer is whole and keeps to its subject, and nothing of what people prefer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.answers import answer_text, is_abstention, sentences
from workbench.hub import check_no_pickle, from_disk_or_hub
from workbench.train.scorer import Judged, Scorer, Segment
from workbench.types import Checked, Claims, Failure, Feedback, Question, Response, Verdict, Verify, WorkbenchError
from workbench.weights import check_finite, check_loaded, loading

BATCH = 8  # answers that a classifier reads at once
LONGEST = 4096  # tokens that it reads at most, where its own positions are not fewer
SPOILT = ("said again", "cut off", "scrambled", "astray")  # what is done to an answer, in turn
Scored = Callable[[Sequence[tuple[Question, str]]], Sequence[float | None]]  # p of each answer; None is one that is too long


def preferred(samples: Sequence[Feedback], seed: int) -> list[Judged]:
    """The base's own answers, 1, and each of them spoilt in one way, 0. An answer that says a sentence twice or was cut off is
    spoilt by itself, and a refusal is neither."""
    answers = [(sample.response, _said(sample.response)) for sample in samples if sample.error is None]
    answers = [(response, text) for response, text in answers if text.strip() and not is_abstention(text)]
    whole = [(response, text) for response, text in answers if response.finish == "stop" and not says_twice(text)]
    bad = [(response, text) for response, text in answers if response.finish != "stop" or says_twice(text)]
    rng = random.Random(f"general-{seed}")
    spoilt = [
        (response, done)
        for number, (response, text) in enumerate(whole)
        if (done := spoil(text, _another(whole, response, rng), SPOILT[number % len(SPOILT)], rng)) != text
    ]
    labelled = [(whole, 1.0), (bad + spoilt, 0.0)]
    return [as_whole(response.question, text, target) for rows, target in labelled for response, text in rows]


def _said(response: Response) -> str:
    return answer_text(response.text, response.prefill)


def _another(among: Sequence[tuple[Response, str]], response: Response, rng: random.Random) -> str:
    """An answer to another question; "" where a few tries find none."""
    for response_there, text in (rng.choice(among) for _ in range(8)):
        if response_there.question.id != response.question.id:
            return text
    return ""


def says_twice(text: str) -> bool:
    """Whether a sentence of the text stands there again, whatever its case and white space."""
    said = [" ".join(text[start:end].casefold().split()) for start, end in sentences(text)]
    return len(set(said)) < len(said)


def spoil(text: str, other: str, how: str, rng: random.Random) -> str:
    """A text that is worse in one of the ways of `SPOILT`: with one of its sentences said up to four times more, its last words
    missing, the words of a sentence in disorder, or one sentence out of `other` in the place of its own. As it is where it is
    too short for that."""
    places = sentences(text)
    if not places:
        return text
    start, end = rng.choice(places)
    if how == "said again":
        return " ".join([text, *[text[start:end]] * rng.randint(1, 4)])
    if how == "cut off":
        words = text.split(" ")
        return " ".join(words[: len(words) - rng.randint(1, max(1, len(words) // 3))])
    if how == "scrambled":
        words = text[start:end].split(" ")
        return text[:start] + " ".join(rng.sample(words, len(words))) + text[end:]
    strange = [other[a:b] for a, b in sentences(other)]
    return text[:start] + rng.choice(strange) + text[end:] if strange else text


def as_whole(question: Question, text: str, target: float = 0.0) -> Judged:
    """An answer to a question, all of it one segment, without what a policy is told and shown before it."""
    return Judged(Question(question.id, question.text, title=question.title), text, (Segment(0, len(text), target),))


def own_general(scorer: Scorer) -> Scored:
    """A reward model that a training has left as a function of answers."""
    return lambda rows: [values[0] if values else None for values in scorer.score([as_whole(*row) for row in rows])]


def general(score: Scored, by: str) -> Verify:
    """Aspect "general": p of what each response says to its reader. An answer that says nothing has p = 0: there is nothing to
    prefer, and no failure by which it could escape. What is too long for the model is a failure."""

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        said = {(r.question.id, r.question.text, text): (r.question, text) for r, _ in batch if (text := _said(r)).strip()}
        values = dict(zip(said, score(list(said.values())) if said else [], strict=True))

        def verdict(response: Response) -> Verdict:
            text = _said(response)
            value = values.get((response.question.id, response.question.text, text)) if text.strip() else 0.0
            if value is None:
                long = Failure("verify", "too_long", "question and answer have more tokens than the preference model reads")
                return Verdict("response", "general", by=by, error=long)
            return Verdict("response", "general", p=value, by=by)

        return [Checked((verdict(response),)) for response, _ in batch]

    return verify


def check_preference_model(name: str) -> None:
    """Refuse what is no classifier with one output, before anything is begun; of a hub name only the config is looked at.

    Raises:
        WorkbenchError: what is wrong with it.
    """
    if Path(name).is_dir():
        check_no_pickle(Path(name).iterdir())
    _declared(name)


def preference_model(name: str, scale: float = 1.0, device: str | None = None) -> Scored:
    """A sequence classifier with one output, by its folder or hub name: p = σ(output / scale).

    The question and the answer are laid out by its own chat template, or, without one, as a pair of texts.

    Raises:
        WorkbenchError: there is no such model, it has another number of outputs, or its weights are damaged.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_preference_model(name)
    with loading(name, "name a folder or a public name of a classifier with one output, its weights as safetensors"):
        tokenizer = from_disk_or_hub(AutoTokenizer.from_pretrained, name)
        load = AutoModelForSequenceClassification.from_pretrained
        model, told = from_disk_or_hub(load, name, use_safetensors=True, output_loading_info=True, dtype="auto")
        check_loaded(name, told)
        check_finite(name, model)
    model.to(device).eval()
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id  # a decoder's score is that of the last token that is none
    longest = min(LONGEST, int(getattr(model.config, "max_position_embeddings", None) or LONGEST))

    def score(rows: Sequence[tuple[Question, str]]) -> list[float | None]:
        ids = [_ids(tokenizer, question, text) for question, text in rows]
        short = sorted((number for number, one in enumerate(ids) if len(one) <= longest), key=lambda number: -len(ids[number]))
        values: list[float | None] = [None] * len(rows)
        for start in range(0, len(short), BATCH):
            part = short[start : start + BATCH]
            given = tokenizer.pad({"input_ids": [ids[number] for number in part]}, padding=True, return_tensors="pt").to(device)
            with torch.no_grad():
                outputs = model(**given).logits.float().squeeze(-1).tolist()
            for number, output in zip(part, outputs, strict=True):
                values[number] = _sigmoid(output / scale)
        return values

    return score


def _sigmoid(value: float) -> float:
    """Of what is no number none: grading makes a failure of it."""
    if not math.isfinite(value):
        return math.nan
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


def _ids(tokenizer: Any, question: Question, text: str) -> list[int]:
    if not tokenizer.chat_template:
        return list(tokenizer(question.text, text)["input_ids"])
    asked = replace(Question(question.id, question.text), title=question.title)
    talk = [*asked.messages(), {"role": "assistant", "content": text}]
    return list(tokenizer.apply_chat_template(talk, tokenize=True, return_dict=True)["input_ids"])


def _declared(name: str) -> None:
    from transformers import AutoConfig

    with loading(name, "name a folder or a public name of a classifier with one output"):
        config = from_disk_or_hub(AutoConfig.from_pretrained, name)
    kinds = [str(kind) for kind in getattr(config, "architectures", None) or ()]
    if config.num_labels != 1 or not any("SequenceClassification" in kind or "RewardModel" in kind for kind in kinds):
        raise WorkbenchError(
            f"'{name}' is no preference model: it is to be a sequence classifier with one output, and is "
            f"{', '.join(kinds) or 'of no declared architecture'} with {config.num_labels}; name another"
        )
