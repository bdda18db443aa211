"""Compute which characters of a text belong to each token.

The offsets of a sampled text are computed from the sampled ids. They are never computed by encoding
the text again, because the tokenizer may split it differently. A text that was not sampled is
encoded or split into words. A character (code point) belongs to the token with its last byte.
Special tokens have no characters.
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
# Tokens of context for incremental decoding. A character has up to 4 bytes, each of which may be a
# token.
WINDOW = 6


def decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    """Return the text of `ids` without special tokens, with all white space unchanged."""
    return tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


def offsets_from_ids(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[str, Spans]:
    """Return the decoded text and the span of each id's characters in this text.

    Special tokens have empty spans. The spans are contiguous and cover the text. For byte-level
    tokenizers they are computed from the bytes of each token, for others by incremental decoding.
    """
    text = decode(tokenizer, ids)
    special = set(tokenizer.all_special_ids)
    text_ids = [token for token in ids if token not in special]
    ends = _byte_level_ends(tokenizer, text_ids, text)
    # from the fastest way to the one that works with any tokenizer
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
    """Return the tag that the chat template opens before a response, such as "<think>\\n", or "".

    A tag in the text of a question does not count, only the text that the template adds after the
    last role header. If `prompt_ids` are given but do not end with this text, "" is returned.
    """
    added, left_open = _generation_prompt(
        tokenizer, str(getattr(tokenizer, "chat_template", None) or "")
    )
    return "" if prompt_ids and added and tuple(prompt_ids[-len(added) :]) != added else left_open


@lru_cache(maxsize=8)
def _generation_prompt(
    tokenizer: PreTrainedTokenizerBase, template: str
) -> tuple[tuple[int, ...], str]:
    """Return the ids that a chat template adds before a response, and the tag that they leave open.

    `template` is the tokenizer's own template. It is an argument only to be part of the cache's
    key, because the template of a tokenizer can be replaced.
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
    """Decode UTF-8 and return the text with the byte position after each of its characters.

    Each ill-formed sequence of bytes becomes one U+FFFD, as in tokenizers' own decoders.
    """
    if data.isascii():  # the usual case, and fast
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
    """Return the byte for each character of a byte-level vocabulary (GPT-2's table)."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {character: byte for byte, character in bytes_to_unicode().items()}


@lru_cache(maxsize=65536)
def _bytes_of_token(token: str) -> bytes:
    """Return the bytes of a token in a byte-level vocabulary. A token with other characters, such
    as an added token, stands for its own text.
    """
    table = _byte_of_character()
    in_alphabet = all(character in table for character in token)
    return bytes(table[character] for character in token) if in_alphabet else token.encode()


def _byte_level_ends(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], text: str
) -> list[int] | None:
    """Return the number of complete characters after each id; None if the tokenizer is not
    byte-level.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(ids))
    if None in tokens:
        return None
    pieces = [_bytes_of_token(token) for token in tokens]
    data, byte_ends = b"".join(pieces), list(accumulate(map(len, pieces)))
    decoded, character_ends = characters_of_bytes(data)
    if decoded != text:  # the tokenizer changes the text after decoding
        return None
    return [bisect_right(character_ends, byte_end) for byte_end in byte_ends]


def _windowed_ends(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], text: str
) -> list[int] | None:
    """Return the number of characters after each id by incremental decoding with a few tokens of
    context; None if the pieces do not add up to `text`.
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
    """Return the number of characters after each id by decoding every prefix, which is slow but
    works with any tokenizer.
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


# characters between spaces, or one character of a script without spaces, with the spaces before it
_WORD = re.compile(
    r"\s*(?:[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+)"
)


def words(text: str) -> Spans:
    """Split a text into words, without a tokenizer, and return the span of each word.

    The spans include white space: they are contiguous and cover the text.
    """
    ends = [match.end() for match in _WORD.finditer(text)]
    if text:
        # final spaces belong to the last word; a text of only spaces is one word
        ends[-1:] = [len(text)]
    return tuple(zip([0, *ends], ends, strict=False))


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[tuple[int, ...], Spans]:
    """Encode a text that was not sampled; return the token ids and the span of each token.

    The spans are contiguous and cover the text.

    Raises:
        WorkbenchError: the tokenizer is not a fast tokenizer, so it returns no offsets; or it
            crashes.
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
    # The tokenizer gives a character to all its tokens, such as the bytes of an emoji; here it
    # belongs to the last one. Characters without a token, such as spaces, go to the next token.
    ends = [*accumulate((min(end, after) for (_, end), (after, _) in pairwise(spans)), max)]
    ends += [len(text)] if spans else []
    return tuple(coded["input_ids"]), tuple(zip([0, *ends], ends, strict=False))
