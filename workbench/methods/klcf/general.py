"""The check "general" of KLCF (arXiv 2509.23765, section 2.3.3): a score of the whole answer.

Training from a base model has no KL penalty. This score keeps answers well formed instead. The
paper's score is from the preference model Skywork-Reward-V2-Llama-3.2-1B; see `preference_model`.

If no model is named, a reward model is trained on the base model's own answers and on corrupted
copies of them *(ours)*. This is called the model of good form. It scores whether an answer is whole
and on subject, not whether people prefer it.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.methods.klcf.truth import TextScorer, text_values, verdict
from workbench.policies.weights import check_finite, check_loaded, check_prompts, loading
from workbench.text import answer_text, is_abstention, sentences
from workbench.training.scorer import Judged, as_whole, passes
from workbench.types import (
    Batch,
    Checked,
    Feedback,
    Question,
    Response,
    Verify,
    WorkbenchError,
)
from workbench.util.hub import check_no_pickle, from_disk_or_hub

# ways to corrupt an answer, used in turn; see `corrupt`
CORRUPTIONS = ("said again", "cut off", "scrambled", "off subject")


def general(score: TextScorer, by: str, specials: Sequence[str] = ()) -> Verify:
    """Return the check "general": a function from responses to one verdict on each response.

    The verdict's `p` is the model's score of the answer, from 0 to 1. The thinking is not scored.
    `p` is 0 if the answer is empty. If the answer is too long for the model, the verdict is a
    failure.

    Args:
        score: the model: a preference model, or the reward model trained on `quality_rows`.
        by: name of the model, which the verdicts store.
        specials: the model's control tokens. In an answer, spaces are put between the characters of
            such a token, so that the model reads it as text.
    """
    # an empty answer gets p = 0, because with a failed verdict it would avoid a low reward

    def verify(batch: Batch) -> list[Checked]:
        texts = [
            (response.question, answer_text(response.text, response.prefill))
            for response, _ in batch
        ]
        values = text_values(score, texts, specials)
        return [Checked((verdict("response", "general", value, by),)) for value in values]

    return verify


def quality_rows(
    samples: Sequence[Feedback], seed: int, specials: Sequence[str] = ()
) -> list[Judged]:
    """Return training rows for the model of good form, from samples of the base model.

    This reward model learns to tell well-formed answers from corrupted ones.

    * Answers that are complete and repeat no sentence have target 1.
    * Corrupted copies of these answers (see `corrupt`), cut-off answers, and answers that repeat a
      sentence have target 0.
    * Abstentions, empty answers and samples whose extraction failed are left out.
    """
    good, bad = list[tuple[Response, str]](), list[tuple[Response, str]]()
    for sample in samples:
        response = sample.response
        text = answer_text(response.text, response.prefill)
        if sample.error is None and text.strip() and not is_abstention(text):
            whole = response.finish == "stop" and not has_repeated_sentence(text)
            (good if whole else bad).append((response, text))
    rng = random.Random(f"general-{seed}")
    for number, (response, text) in enumerate(good):
        # an answer to another question; "" if a few tries find none
        others = (rng.choice(good) for _ in range(8))
        other = next((t for r, t in others if r.question.id != response.question.id), "")
        copy = corrupt(text, other, CORRUPTIONS[number % len(CORRUPTIONS)], rng)
        if copy != text:
            bad.append((response, copy))
    return [
        as_whole(response.question, text, target, specials)
        for rows, target in ((good, 1.0), (bad, 0.0))
        for response, text in rows
    ]


def has_repeated_sentence(text: str) -> bool:
    """Return whether a sentence occurs twice in the text. Case and white space are ignored."""
    texts = [" ".join(text[start:end].casefold().split()) for start, end in sentences(text)]
    return len(set(texts)) < len(texts)


def corrupt(text: str, other: str, how: str, rng: random.Random) -> str:
    """Return a corrupted copy of a text. A text that cannot be corrupted is returned unchanged.

    Args:
        other: an answer to another question.
        how: the kind of corruption:

            * "said again": copies of a sentence are added at the end, at most four
            * "cut off": the last words are removed
            * "scrambled": the words of a sentence are shuffled
            * "off subject": a sentence is replaced by a sentence of `other`
    """
    spans = sentences(text)
    if not spans:
        return text
    start, end = rng.choice(spans)
    if how == "said again":
        return " ".join([text, *[text[start:end]] * rng.randint(1, 4)])
    if how == "cut off":
        gap = " " if " " in text.strip() else ""  # some scripts have no spaces
        words = text.split(" ") if gap else list(text)
        left = gap.join(words[: len(words) - rng.randint(1, max(1, len(words) // 3))])
        return left if left.strip() else text
    if how == "scrambled":
        words = text[start:end].split(" ")
        return text[:start] + " ".join(rng.sample(words, len(words))) + text[end:]
    strange = [other[a:b] for a, b in sentences(other)]
    return text[:start] + rng.choice(strange) + text[end:] if strange else text


if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

BATCH = 8  # answers in a forward pass
MOST_TOKENS = 4096  # most tokens of a question and an answer, if the model has that many positions
REMEDY = "name a folder or a public name of a classifier with one output and safetensors weights"


@dataclass(frozen=True)
class Preference:
    """A preference model, which scores answers.

    Attributes:
        score: answers -> a score in [0, 1] for each; None for an answer that is too long.
        longest: largest number of tokens of question and answer together.
        specials: the tokenizer's control tokens.
        prompt_tokens: question -> number of its tokens, with those of the chat template.
    """

    score: TextScorer
    longest: int
    specials: tuple[str, ...]
    prompt_tokens: Callable[[Question], int]


def preference_model(name: str) -> Preference:
    """Load a preference model: a sequence classifier with one output. Its score is σ(output).

    The model's chat template formats question and answer. Without a template, the tokenizer gets
    them as a pair of texts.

    Args:
        name: folder or hub name.

    Raises:
        WorkbenchError: the model does not exist, is not a classifier with one output, or has
            damaged files.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if Path(name).is_dir():
        check_no_pickle(Path(name).iterdir())
    _check_architecture(name)
    with loading(name, REMEDY):
        tokenizer = from_disk_or_hub(AutoTokenizer.from_pretrained, name)
        if tokenizer.chat_template:
            check_prompts(name, tokenizer)
        model, report = from_disk_or_hub(
            AutoModelForSequenceClassification.from_pretrained,
            name,
            use_safetensors=True,
            output_loading_info=True,
            dtype="auto",
        )
        check_loaded(name, report)
        check_finite(name, model)
        model.to(device).eval()
        # a decoder takes the score at the last token that is not padding
        model.config.pad_token_id = tokenizer.pad_token_id
        size = 1 if tokenizer.pad_token_id is None else BATCH
        positions = getattr(model.config, "max_position_embeddings", None) or MOST_TOKENS
        longest = min(MOST_TOKENS, tokenizer.model_max_length, positions)

        def score(rows: Sequence[Judged]) -> list[float | None]:
            encoded = [_encode(tokenizer, row) for row in rows]
            values: list[float | None] = [None] * len(rows)
            for part in passes([len(one["input_ids"]) for one in encoded], longest, size, tokens=0):
                batch = _collate(tokenizer, [encoded[number] for number in part])
                with torch.no_grad():
                    inputs = {key: tensor.to(device) for key, tensor in batch.items()}
                    outputs = model(**inputs).logits.double().flatten()  # (B,)
                # grading turns NaN into a failure
                p = torch.where(outputs.isfinite(), outputs.sigmoid(), torch.nan)
                for number, value in zip(part, p.tolist(), strict=True):
                    values[number] = value
            return values

        # a broken model raises an error here
        score([as_whole(Question("trial", "Is it raining?"), "Yes.")])
    return Preference(
        score,
        longest,
        tuple(tokenizer.all_special_tokens),
        lambda question: len(_encode(tokenizer, as_whole(question, ""))["input_ids"]),
    )


def _encode(tokenizer: "PreTrainedTokenizerBase", row: Judged) -> dict[str, list[int]]:
    """Return the model's inputs for a question and its answer: token ids, mask, token types."""
    if not tokenizer.chat_template:
        return dict(tokenizer(row.question.text, row.text))
    messages = [*row.question.messages(), {"role": "assistant", "content": row.text}]
    return dict(tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True))


def _collate(
    tokenizer: "PreTrainedTokenizerBase", encoded: Sequence[Mapping[str, list[int]]]
) -> "Mapping[str, torch.Tensor]":
    """Return encoded answers as one padded batch.

    A single answer is not padded, because some models have no padding token.
    """
    import torch

    if len(encoded) == 1:
        return {name: torch.tensor([ids]) for name, ids in encoded[0].items()}
    return tokenizer.pad(list(encoded), return_tensors="pt")


def _check_architecture(name: str) -> None:
    """Raise a WorkbenchError if a model, by its config, is not a classifier with one output."""
    from transformers import AutoConfig

    with loading(name, REMEDY):
        config = from_disk_or_hub(AutoConfig.from_pretrained, name)
    kinds = [str(kind) for kind in getattr(config, "architectures", None) or ()]
    if config.num_labels != 1 or not any(
        "SequenceClassification" in kind or "RewardModel" in kind for kind in kinds
    ):
        raise WorkbenchError(
            f"'{name}' is not a preference model: it has {config.num_labels} outputs and the"
            f" architecture {', '.join(kinds) or 'undeclared'}; {REMEDY}"
        )
