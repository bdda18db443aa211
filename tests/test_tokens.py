"""Offsets of sampled ids cover the text; a character belongs to the token with its last byte."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers import examples
from tests.helpers.tiny_model import byte_tokenizer
from workbench.credit import tokens
from workbench.credit.tokens import characters_of_bytes, encode, offsets_from_ids, words

TOKENIZER = byte_tokenizer()
END = TOKENIZER.eos_token_id


@pytest.fixture(scope="module")
def sentencepiece() -> Any:
    """A SentencePiece-like tokenizer: ▁ for a space, bytes as <0xE4>, and a decoder that drops the
    first space.
    """
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    pieces = "<s> </s> <unk> BYTES ▁Paris ▁is a b ▁".replace(
        "BYTES", " ".join(f"<0x{byte:02X}>" for byte in range(256))
    )
    model = models.BPE(
        vocab={word: i for i, word in enumerate(pieces.split())},
        merges=[],
        byte_fallback=True,
        unk_token="<unk>",
    )
    backend = Tokenizer(model)
    steps = [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
    backend.decoder = decoders.Sequence(steps)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def assert_ranges_cover(text: str, offsets: tuple[tuple[int, int], ...]) -> None:
    position = 0
    for start, end in offsets:
        assert start == position <= end
        position = end
    assert position == len(text)


@given(st.text())
@settings(max_examples=300)
def test_any_text_is_covered_and_kept(text: str) -> None:
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    decoded, offsets = offsets_from_ids(TOKENIZER, ids)
    assert decoded == text
    assert_ranges_cover(text, offsets)


@pytest.mark.slow
@given(st.lists(st.integers(0, len(TOKENIZER) - 1)))
@settings(max_examples=500)
def test_any_sampled_ids_are_covered(ids: list[int]) -> None:
    """A policy may sample any sequence: cut characters, stray bytes, special tokens in between."""
    text, offsets = offsets_from_ids(TOKENIZER, ids)
    assert len(offsets) == len(ids)
    assert text == TOKENIZER.decode(ids, skip_special_tokens=True)
    assert_ranges_cover(text, offsets)
    assert all(
        start == end
        for token, (start, end) in zip(ids, offsets, strict=True)
        if token in TOKENIZER.all_special_ids
    )


@pytest.mark.parametrize(("text", "expected"), examples("token_offsets"))
def test_characters_belong_to_the_token_of_their_last_byte(
    text: str, expected: list[list[int]]
) -> None:
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    assert offsets_from_ids(TOKENIZER, ids) == (text, tuple(map(tuple, expected)))


def test_special_tokens_have_empty_offsets() -> None:
    word = TOKENIZER(" Ada", add_special_tokens=False)["input_ids"]
    assert offsets_from_ids(TOKENIZER, [END, *word, END, *word, END]) == (
        " Ada Ada",
        ((0, 0), (0, 4), (4, 4), (4, 8), (8, 8)),
    )
    assert offsets_from_ids(TOKENIZER, []) == ("", ())


def test_a_cut_character_is_one_replacement_character() -> None:
    ids = TOKENIZER("a中", add_special_tokens=False)["input_ids"]
    assert offsets_from_ids(TOKENIZER, ids[:-1]) == ("a\ufffd", ((0, 1), (1, 1), (1, 2)))


@given(st.binary())
def test_bytes_decode_like_python_and_end_in_order(data: bytes) -> None:
    text, ends = characters_of_bytes(data)
    assert text == data.decode(errors="replace")
    assert ends == sorted(ends) and len(ends) == len(text)
    assert not data or ends[-1] == len(data)


@pytest.mark.slow
@given(st.lists(st.sampled_from([0, 1, *range(3, 264)])))
@settings(max_examples=300)
def test_other_tokenizers_are_covered(sentencepiece: Any, ids: list[int]) -> None:
    text, offsets = offsets_from_ids(sentencepiece, ids)
    assert len(offsets) == len(ids)
    assert_ranges_cover(text, offsets)


def test_first_space_dropped_by_the_decoder_is_dropped_once(sentencepiece: Any) -> None:
    paris, is_ = sentencepiece.convert_tokens_to_ids(["▁Paris", "▁is"])
    emoji = sentencepiece.convert_tokens_to_ids([f"<0x{byte:02X}>" for byte in "😀".encode()])
    expected = ("Paris is😀 Paris", ((0, 5), (5, 8), (8, 8), (8, 8), (8, 8), (8, 9), (9, 15)))
    assert offsets_from_ids(sentencepiece, [paris, is_, *emoji, paris]) == expected


@given(st.text(max_size=12))
@settings(max_examples=100)
def test_the_slow_path_agrees_with_bytes(text: str) -> None:
    """It decodes every prefix; on well-formed text without U+FFFD both must be equal."""
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    if "\ufffd" not in text:
        assert tokens._prefix_ends(TOKENIZER, ids, text) == tokens._byte_level_ends(
            TOKENIZER, ids, text
        )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(TEXTS | st.sampled_from(["", "  ", "Paris is 巴黎。 ok \n", "e\u0301a", "👩‍🚀 up"]))
def test_words_cover_the_text(text: str) -> None:
    offsets = words(text)
    assert "".join(text[start:end] for start, end in offsets) == text
    assert all(end > start for start, end in offsets)


def test_words_are_split_at_spaces_and_chinese_characters() -> None:
    text = " Ada, is 画家 now \n"
    found = [text[start:end] for start, end in words(text)]
    assert found == [" Ada,", " is", " 画", "家", " now \n"]


@given(TEXTS)
def test_encoded_text_has_the_offsets_of_its_sampled_ids(text: str) -> None:
    ids, offsets = encode(TOKENIZER, text)
    assert (text, offsets) == offsets_from_ids(TOKENIZER, ids)
