"""Which characters of a text each token holds.

Offsets of sampled text are computed from the sampled ids, never by encoding the text again:
re-encoding may split the text differently. Text that was not sampled is encoded, or split into
words. A character (code point) belongs to the token that holds its last byte; special tokens
hold none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any

from workbench.text.sections import opened
from workbench.types import WorkbenchError

Offsets = tuple[tuple[int, int], ...]

REPLACEMENT = "\ufffd"
# tokens decoded again as context by the generic path; more than the 4 bytes a character can be
# split over
WINDOW = 6


def decode(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of `ids` without special tokens, exactly as decoded (nothing stripped, no spaces
    tidied).
    """
    return tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)


def offsets_from_ids(tokenizer: Any, ids: Sequence[int]) -> tuple[str, Offsets]:
    """The decoded text and, for each id, its half-open range of characters in it (empty for
    special tokens).

    The ranges are contiguous and cover the text. Byte-level tokenizers are followed byte by
    byte; any other tokenizer by incremental decoding.
    """
    text = decode(tokenizer, ids)
    special = set(tokenizer.all_special_ids)
    kept = [token for token in ids if token not in special]
    ends = _byte_level_ends(tokenizer, kept, text)
    if ends is None:
        ends = _windowed_ends(tokenizer, kept, text)
    if ends is None:
        ends = _prefix_ends(tokenizer, kept, text)
    offsets, start, position = [], 0, 0
    for token in ids:
        if token in special:
            offsets.append((start, start))
            continue
        offsets.append((start, ends[position]))
        start, position = ends[position], position + 1
    return text, tuple(offsets)


def prefill(tokenizer: Any, prompt_ids: Sequence[int] = ()) -> str:
    """What a prompt leaves open for the response to go on with, such as "<think>\\n"; "" if it
    opens nothing.

    Only what the chat template adds behind the last role header counts, never what a question
    says. With `prompt_ids` it counts where the prompt ends with it; without them the prompt is
    taken for one that the template made.
    """
    added, left_open = _generation_prompt(
        tokenizer, str(getattr(tokenizer, "chat_template", None) or "")
    )
    return "" if prompt_ids and added and tuple(prompt_ids[-len(added) :]) != added else left_open


@lru_cache(maxsize=8)
def _generation_prompt(tokenizer: Any, template: str) -> tuple[tuple[int, ...], str]:
    """The ids that a chat template adds for the response to follow, the role header and what it
    opens; and that as text.
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
    """Decode UTF-8 with one U+FFFD per ill-formed part; also the byte position at which each
    character is complete.
    """
    if data.isascii():  # as most text is
        return data.decode(), list(range(1, len(data) + 1))
    text: list[str] = []
    ends: list[int] = []
    position = 0
    while position < len(data):
        try:
            good, bad = data[position:].decode(), None
        except UnicodeDecodeError as error:
            good, bad = data[position : position + error.start].decode(), error.end
        done = position
        for character in good:
            done += len(character.encode())
            text.append(character)
            ends.append(done)
        if bad is None:
            break
        position += bad
        text.append(REPLACEMENT)
        ends.append(position)
    return "".join(text), ends


@cache
def _byte_of_character() -> dict[str, int]:
    """The byte that each character of a byte-level vocabulary stands for (GPT-2's table)."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + index): byte for index, byte in enumerate(others)})
    return table


@lru_cache(maxsize=65536)
def _bytes_of_token(token: str) -> bytes:
    """What a token of a byte-level vocabulary stands for; one outside its alphabet (an added
    one, say) for its own text.
    """
    table = _byte_of_character()
    in_alphabet = all(character in table for character in token)
    return bytes(table[character] for character in token) if in_alphabet else token.encode()


def _byte_level_ends(tokenizer: Any, ids: Sequence[int], text: str) -> list[int] | None:
    """For each id the number of characters complete after it; None when the tokenizer is not
    byte-level.
    """
    tokens = tokenizer.convert_ids_to_tokens(list(ids))
    if None in tokens:
        return None
    pieces = [_bytes_of_token(token) for token in tokens]
    data, byte_ends = b"".join(pieces), list(accumulate(map(len, pieces)))
    decoded, character_ends = characters_of_bytes(data)
    if decoded != text:
        return None
    ends, complete = [], 0
    for byte_end in byte_ends:
        while complete < len(character_ends) and character_ends[complete] <= byte_end:
            complete += 1
        ends.append(complete)
    return ends


def _windowed_ends(tokenizer: Any, ids: Sequence[int], text: str) -> list[int] | None:
    """Incremental decoding with a few tokens of context; None if its pieces do not add up to
    `text`.
    """
    ends: list[int] = []
    done, context, read = "", 0, 0
    for position in range(len(ids)):
        before = decode(tokenizer, ids[context:read])
        after = decode(tokenizer, ids[context : position + 1])
        incomplete = after.endswith(REPLACEMENT) and position + 1 < len(ids)
        if not incomplete:
            done += after[len(before) :]
            context, read = max(context, position + 1 - WINDOW), position + 1
        ends.append(len(done))
    return ends if done == text else None


def _prefix_ends(tokenizer: Any, ids: Sequence[int], text: str) -> list[int]:
    """The safe and slow way: decode every prefix, count how many characters of `text` it already
    agrees on.
    """
    ends, floor = [], 0
    for position in range(len(ids)):
        prefix = decode(tokenizer, ids[: position + 1])
        agreed = 0
        while agreed < min(len(prefix), len(text)) and prefix[agreed] == text[agreed]:
            agreed += 1
        floor = len(text) if position + 1 == len(ids) else max(floor, agreed)
        ends.append(floor)
    return ends


# A run of characters between spaces is a word, with the spaces before it; so is each character of a
# script without spaces.
_WORD = re.compile(
    r"\s*(?:[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+)"
)


def words(text: str) -> Offsets:
    """Offsets of text that no tokenizer has seen: one token per word, contiguous and covering
    the text.
    """
    ends = [match.end() for match in _WORD.finditer(text)]
    if text:
        # trailing space belongs to the last word; a text of spaces alone is one word
        ends[-1:] = [len(text)]
    return tuple(zip([0, *ends], ends, strict=False))


def encode(tokenizer: Any, text: str) -> tuple[tuple[int, ...], Offsets]:
    """Ids and offsets of text that was not sampled, by the rule above: contiguous, covering the
    text.

    Raises:
        WorkbenchError: the tokenizer does not say which characters its tokens come from (it is not
            a fast one).
    """
    if not getattr(tokenizer, "is_fast", False):
        raise WorkbenchError(
            "this tokenizer cannot say where its tokens stand in a text: name a fast one, or use"
            " words"
        )
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    spans = [tuple(span) for span in coded["offset_mapping"]]
    # Tokens that share a character, as the bytes of an emoji do, are all given it; it is the last
    # one's. What a tokenizer drops, such as spaces, goes to the token after it.
    following = [start for start, _ in spans[1:]]
    ends: list[int] = []
    for (_, end), after in zip(spans, following, strict=False):
        ends.append(max(min(end, after), ends[-1] if ends else 0))
    ends += [len(text)] if spans else []
    return tuple(coded["input_ids"]), tuple(zip([0, *ends], ends, strict=False))
