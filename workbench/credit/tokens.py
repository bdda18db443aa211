"""Compute offsets: the half-open span (start, end) of each token's characters in a text.

The offsets of a sampled text are computed from the sampled ids, because encoding the text again may
split it differently. Other texts are encoded by a tokenizer, or split into words. If several tokens
share the bytes of a character, the character belongs to the last of these tokens. Special tokens
have empty spans.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from workbench.text.sections import opened
from workbench.types import Spans, WorkbenchError
from workbench.util.hub import panics_as_errors

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

REPLACEMENT = "\ufffd"  # what decoders write for bytes that are not UTF-8
# number of context tokens in incremental decoding; a character may be spread over 4 tokens, one for
# each of its bytes
WINDOW = 6


def decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """Return the text of `ids` without special tokens, with all white space unchanged."""
    return tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


def offsets_from_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, Spans]:
    """Return the decoded text and, for each id, the span of its characters in this text.

    Special tokens have empty spans. The spans are contiguous and cover the text.
    """
    text = decode(tokenizer, ids)
    special = set(tokenizer.all_special_ids)
    text_ids = [token for token in ids if token not in special]
    ends = _byte_level_ends(tokenizer, text_ids, text)
    # the fastest way first; the last one works with any tokenizer
    if ends is None:
        ends = _windowed_ends(tokenizer, text_ids, text)
    if ends is None:
        ends = _prefix_ends(tokenizer, text_ids, text)
    offsets, start, remaining = [], 0, iter(ends)
    for token in ids:
        end = start if token in special else next(remaining)
        offsets.append((start, end))
        start = end
    return text, tuple(offsets)


def prefill(tokenizer: PreTrainedTokenizerBase, prompt_ids: Sequence[int] = ()) -> str:
    """Return the opening tag that a chat template writes at the end of prompts, or "".

    For example, some reasoning models end prompts with "<think>\\n".

    Args:
        prompt_ids: token ids of a prompt. If they do not end with the template's generation prompt,
            the result is "". Without ids, the prompt is assumed to end with it.
    """
    added, left_open = _generation_prompt(
        tokenizer, str(getattr(tokenizer, "chat_template", None) or "")
    )
    return "" if prompt_ids and added and tuple(prompt_ids[-len(added) :]) != added else left_open


@lru_cache(maxsize=8)
def _generation_prompt(
    tokenizer: PreTrainedTokenizerBase, template: str
) -> tuple[tuple[int, ...], str]:
    """Return the ids that the chat template adds before a response, and the tag that they open.

    The tag is "" if they open no tag. `template` is the tokenizer's own template, which can be
    replaced; it is an argument so that it is part of the cache key.
    """
    if not template:
        return (), ""
    conversation = [{"role": "user", "content": "?"}]
    whole, bare = (
        tokenizer.apply_chat_template(
            conversation, add_generation_prompt=add, tokenize=True, return_dict=True
        )["input_ids"]
        for add in (True, False)
    )
    added = whole[len(bare) :] if whole[: len(bare)] == bare else []
    return tuple(added), opened(
        tokenizer.decode(added, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    )


def characters_of_bytes(data: bytes) -> tuple[str, list[int]]:
    """Decode UTF-8; return the text and, for each character, the position after its last byte.

    Each ill-formed sequence of bytes becomes one character U+FFFD, as in tokenizers' own decoders.
    """
    if data.isascii():  # a fast path for the usual case
        return data.decode(), list(range(1, len(data) + 1))
    text, ends, position = "", list[int](), 0
    while position < len(data):
        try:
            good, bad = data[position:].decode(), None
        except UnicodeDecodeError as error:
            good, bad = data[position : position + error.start].decode(), error.end
        text += good
        ends += (position + size for size in accumulate(len(one.encode()) for one in good))
        if bad is None:
            break
        position += bad
        text += REPLACEMENT
        ends.append(position)
    return text, ends


@cache
def _byte_of_character() -> dict[str, int]:
    """Return GPT-2's table, which maps each character of a byte-level vocabulary to its byte."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {character: byte for byte, character in bytes_to_unicode().items()}


@lru_cache(maxsize=65536)
def _bytes_of_token(token: str) -> bytes:
    """Return the bytes that a token of a byte-level vocabulary stands for.

    A token with characters outside the vocabulary's alphabet, such as an added token, stands for
    its own text.
    """
    table = _byte_of_character()
    in_alphabet = all(character in table for character in token)
    return bytes(table[character] for character in token) if in_alphabet else token.encode()


def _byte_level_ends(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], text: str
) -> list[int] | None:
    """Return, for each id, how many characters of `text` are complete after it.

    They are counted from the bytes of the tokens. Returns None if the tokenizer is not byte-level
    or the bytes do not decode to `text`.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(ids))
    if None in tokens:
        return None
    pieces = [_bytes_of_token(token) for token in tokens]
    data, byte_ends = b"".join(pieces), list(accumulate(map(len, pieces)))
    decoded, character_ends = characters_of_bytes(data)
    if decoded != text:  # not byte-level, or the tokenizer changes the text after decoding
        return None
    return [bisect_right(character_ends, byte_end) for byte_end in byte_ends]


def _windowed_ends(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], text: str
) -> list[int] | None:
    """Return, for each id, how many characters of `text` are complete after it.

    They are counted by incremental decoding: each step decodes only a few tokens of context and the
    new ids. Returns None if the decoded pieces do not add up to `text`.
    """
    ends: list[int] = []
    done, context, read = "", 0, 0
    for position in range(len(ids)):
        before = decode(tokenizer, ids[context:read])
        after = decode(tokenizer, ids[context : position + 1])
        # the bytes of a character may be spread over tokens: wait for the last one
        incomplete = after.endswith(REPLACEMENT) and position + 1 < len(ids)
        if not incomplete:
            done += after[len(before) :]
            context, read = max(context, position + 1 - WINDOW), position + 1
        ends.append(len(done))
    return ends if done == text else None


def _prefix_ends(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], text: str) -> list[int]:
    """Return, for each id, how many characters of `text` are complete after it.

    They are counted by decoding every prefix of `ids`. This is slow, but works with any tokenizer.
    """
    ends, end = [], 0
    for position in range(1, len(ids)):
        prefix = decode(tokenizer, ids[:position])
        # the end of a prefix may decode differently without the next tokens
        pairs = enumerate(zip(prefix, text, strict=False))
        common = next((at for at, (a, b) in pairs if a != b), min(len(prefix), len(text)))
        end = max(end, common)
        ends.append(end)
    return [*ends, len(text)] if ids else []


# a run of characters without spaces, or one character of a script without spaces; each with the
# spaces before it
_WORD = re.compile(
    r"\s*(?:[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+)"
)


def words(text: str) -> Spans:
    """Split a text into words, without a tokenizer, and return the span of each word.

    A span includes the white space before its word. The spans are contiguous and cover the text.
    """
    ends = [match.end() for match in _WORD.finditer(text)]
    if text:
        # final spaces belong to the last word; a text of only spaces is one word
        ends[-1:] = [len(text)]
    return tuple(zip([0, *ends], ends, strict=False))


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[tuple[int, ...], Spans]:
    """Encode a text that was not sampled; return the token ids and the span of each token.

    The spans are contiguous and cover the text. No special tokens are added.

    Raises:
        WorkbenchError: the tokenizer is not a fast tokenizer, so it returns no offsets; or the
            tokenizer crashes.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise WorkbenchError(
            "this tokenizer does not return offsets: name a fast tokenizer, or leave the tokenizer"
            " out to use words as tokens"
        )
    with panics_as_errors(tokenizer.name_or_path):
        coded = tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
    spans = [tuple(span) for span in coded["offset_mapping"]]
    # If several tokens share a character, such as the bytes of an emoji, the tokenizer's spans of
    # all of them contain it. Here the character belongs only to the last of these tokens.
    # Characters without a token, such as spaces, belong to the next token.
    ends = [*accumulate((min(end, after) for (_, end), (after, _) in pairwise(spans)), max)]
    ends += [len(text)] if spans else []
    return tuple(coded["input_ids"]), tuple(zip([0, *ends], ends, strict=False))
