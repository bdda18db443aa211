"""The general reward of KLCF (arXiv 2509.23765, section 2.3.3), as the check "general": a
preference model's view of an answer.

Training from a base has no KL penalty, since the base is no model of how to answer; this term
keeps the policy in form. The paper's is Skywork-Reward-V2-Llama-3.2-1B: any classifier with one
output can be named. In its place *(ours)* a reward model may be trained from the base itself, of
its own answers against the same ones spoilt, so that nothing from outside is needed: it tells
whether an answer is whole and keeps to its subject, and nothing of what people prefer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.methods.klcf.truth import Valued, text_values
from workbench.policies.weights import check_finite, check_loaded, loading
from workbench.text import answer_text, is_abstention, sentences
from workbench.training.scorer import Judged, as_whole, passes
from workbench.types import (
    Checked,
    Claims,
    Feedback,
    Question,
    Response,
    Verdict,
    Verify,
    WorkbenchError,
)
from workbench.util.hub import check_no_pickle, from_disk_or_hub

BATCH = 8  # answers that a classifier reads at once
LONGEST = 4096  # tokens that it reads at most, where its own positions are not fewer
SPOILT = ("said again", "cut off", "scrambled", "astray")  # what is done to an answer, in turn


def preferred(samples: Sequence[Feedback], seed: int, specials: Sequence[str] = ()) -> list[Judged]:
    """The base's own answers, 1, and each of them spoilt in one way, 0. An answer that says a
    sentence twice or was cut off is spoilt by itself, and a refusal is neither."""
    whole: list[tuple[Response, str]] = []
    bad: list[tuple[Response, str]] = []
    for sample in samples:
        response, text = sample.response, _said(sample.response)
        if sample.error is None and text.strip() and not is_abstention(text):
            good = response.finish == "stop" and not says_twice(text)
            (whole if good else bad).append((response, text))
    rng = random.Random(f"general-{seed}")
    spoilt = [
        (response, done)
        for number, (response, text) in enumerate(whole)
        if (done := spoil(text, _another(whole, response, rng), SPOILT[number % len(SPOILT)], rng))
        != text
    ]
    labelled = [(whole, 1.0), (bad + spoilt, 0.0)]
    return [
        as_whole(response.question, text, target, specials)
        for rows, target in labelled
        for response, text in rows
    ]


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
    """A text that is worse in one of the ways of `SPOILT`: with one of its sentences said up to
    four times more, its last words missing, the words of a sentence in disorder, or one sentence
    out of `other` in the place of its own. As it is where it is too short for that."""
    places = sentences(text)
    if not places:
        return text
    start, end = rng.choice(places)
    if how == "said again":
        return " ".join([text, *[text[start:end]] * rng.randint(1, 4)])
    if how == "cut off":
        gap = " " if " " in text.strip() else ""
        parts = text.split(" ") if gap else list(text)
        left = gap.join(parts[: len(parts) - rng.randint(1, max(1, len(parts) // 3))])
        return left if left.strip() else text
    if how == "scrambled":
        words = text[start:end].split(" ")
        return text[:start] + " ".join(rng.sample(words, len(words))) + text[end:]
    strange = [other[a:b] for a, b in sentences(other)]
    return text[:start] + rng.choice(strange) + text[end:] if strange else text


def general(score: Valued, by: str, specials: Sequence[str] = ()) -> Verify:
    """Aspect "general": p of what each response says to its reader. What says nothing, or is
    longer than the model reads, has p = 0: there is nothing to prefer, and no failure by which a
    response could escape."""

    def verify(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
        texts = [(response.question, _said(response)) for response, _ in batch]
        values = text_values(score, texts, specials)
        return [Checked((Verdict("response", "general", p=p, by=by),)) for p in values]

    return verify


@dataclass(frozen=True)
class Preference:
    """A named classifier: `score` gives p of whole answers, None for one that has more than
    `longest` tokens with its question; `specials` are its control tokens."""

    score: Valued
    longest: int
    specials: tuple[str, ...]


def preference_model(name: str, scale: float = 1.0, device: str | None = None) -> Preference:
    """A sequence classifier with one output, by its folder or hub name: p = σ(output / scale).

    The question and the answer are laid out by its own chat template, or, without one, as a pair
    of texts. One answer is read, so that what cannot work is told here.

    Raises:
        WorkbenchError: there is no such model, it has another number of outputs, or its files
        are damaged.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if Path(name).is_dir():
        check_no_pickle(Path(name).iterdir())
    _check_declared(name)
    with loading(
        name,
        "name a folder or a public name of a classifier with one output, its weights as"
        " safetensors",
    ):
        tokenizer = from_disk_or_hub(AutoTokenizer.from_pretrained, name)
        model, told = from_disk_or_hub(
            AutoModelForSequenceClassification.from_pretrained,
            name,
            use_safetensors=True,
            output_loading_info=True,
            dtype="auto",
        )
        check_loaded(name, told)
        check_finite(name, model)
        model.to(device).eval()
        # a decoder's score is that of the last token that is none
        model.config.pad_token_id = tokenizer.pad_token_id
        size = 1 if tokenizer.pad_token_id is None else BATCH
        longest = min(
            LONGEST,
            tokenizer.model_max_length,
            getattr(model.config, "max_position_embeddings", None) or LONGEST,
        )

        def score(rows: Sequence[Judged]) -> list[float | None]:
            read = [_read(tokenizer, row) for row in rows]
            values: list[float | None] = [None] * len(rows)
            for part in passes([len(one["input_ids"]) for one in read], longest, size, tokens=0):
                given = _together(tokenizer, [read[number] for number in part])
                with torch.no_grad():
                    inputs = {name: ids.to(device) for name, ids in given.items()}
                    outputs = model(**inputs).logits.double().flatten() / scale
                # not a number: grading makes a failure of it
                p = torch.where(outputs.isfinite(), outputs.sigmoid(), torch.nan)
                for number, value in zip(part, p.tolist(), strict=True):
                    values[number] = value
            return values

        score([as_whole(Question("trial", "Is it raining?"), "Yes.")])
    return Preference(score, longest, tuple(tokenizer.all_special_tokens))


def _read(tokenizer: Any, row: Judged) -> dict[str, list[int]]:
    """What the model is given of an answer: ids, and whatever else its tokenizer says of them."""
    if not tokenizer.chat_template:
        return dict(tokenizer(row.question.text, row.text))
    talk = [*row.question.messages(), {"role": "assistant", "content": row.text}]
    return dict(tokenizer.apply_chat_template(talk, tokenize=True, return_dict=True))


def _together(tokenizer: Any, read: Sequence[Mapping[str, list[int]]]) -> Mapping[str, Any]:
    """Answers as a batch; one alone needs no padding, which some tokenizers do not have."""
    import torch

    if len(read) == 1:
        return {name: torch.tensor([ids]) for name, ids in read[0].items()}
    return tokenizer.pad(list(read), return_tensors="pt")


def _check_declared(name: str) -> None:
    """Refuse by its config what is no classifier with one output."""
    from transformers import AutoConfig

    with loading(name, "name a folder or a public name of a classifier with one output"):
        config = from_disk_or_hub(AutoConfig.from_pretrained, name)
    kinds = [str(kind) for kind in getattr(config, "architectures", None) or ()]
    if config.num_labels != 1 or not any(
        "SequenceClassification" in kind or "RewardModel" in kind for kind in kinds
    ):
        raise WorkbenchError(
            f"'{name}' is no preference model: it is to be a sequence classifier with one output,"
            f" and is {', '.join(kinds) or 'of no declared architecture'} with {config.num_labels};"
            " name another"
        )
