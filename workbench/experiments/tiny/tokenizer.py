"""A lossless tokenizer that needs no training: each word of the world is one token.

A word token includes the space before the word. Other text becomes one token per byte. Section
markers, such as "<think>", are ordinary tokens, which decoding keeps. Role tokens, such as
"<|user|>", are special tokens, which decoding can skip.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from workbench.text.outline import STRUCTURES
from workbench.world import lexicon, schema
from workbench.world.world import World

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SPECIALS = "<|pad|> <|bos|> <|eos|> <|system|> <|user|> <|assistant|>".split()
PAD, BOS, EOS, SYSTEM, USER, ASSISTANT = SPECIALS

# Text that begins with a word gets a leading space, because word tokens include a space. Text that
# begins with a section marker gets none.
CHAT_TEMPLATE = (
    "{%- macro spaced(text) -%}{%- set t = text | trim -%}{{- t if t[:7] == '<think>' or t[:8] =="
    " '<answer>' or t[:1] == '[' or t[:6] == '\\\\boxed' else ' ' + t -}}{%- endmacro -%}{{-"
    " bos_token -}}{%- for message in messages -%}{%- if message['role'] == 'system' -%}{{-"
    " '<|system|>' + spaced(message['content']) -}}{%- elif message['role'] == 'user' -%}{{-"
    " '<|user|>' + spaced(message['content']) -}}{%- else -%}{{- '<|assistant|>' -}}{%- generation"
    " -%}{{- spaced(message['content']) + eos_token -}}{%- endgeneration -%}{%- endif -%}{%- endfor"
    " -%}{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def texts(world: World) -> Iterator[str]:
    """Yield all texts whose words must be single tokens."""
    for template in schema.templates():
        yield template.text
    for relation in schema.RELATIONS.values():
        for forms in (relation.asks, relation.checks):
            for lines in forms.values():
                yield from lines
    for fact in world.facts:
        for accepted in fact.forms.values():
            yield from accepted
    for question in world.all_questions:
        yield question.text
        yield from question.answers
    for phrases in (
        schema.ABSTAIN,
        schema.DECLINE,
        schema.HEDGE_LEADS,
        schema.LEAD_INS,
        schema.PRONOUNS,
        schema.YES_NO,
    ):
        for lines in phrases.values():
            yield from lines
    yield from (
        *schema.INVALID.values(),
        *STRUCTURES,
        schema.THINK,
        schema.BOX,
        schema.OUTLINE,
        schema.SPARE,
        "and e",
        "Edition of 1985.",
        *world.names.first,
        *world.names.last,
        *lexicon.YEARS,
        *lexicon.DAYS,
        *lexicon.MONTHS,
        *lexicon.POPULATIONS,
    )


def vocabulary(lines: Iterable[str]) -> list[str]:
    """Return the different words in the lines as sorted byte-level tokens.

    A space is added before each line. Tokens of one byte are left out.
    """
    from tokenizers import pre_tokenizers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    pieces = {
        piece
        for line in set(lines)
        for piece, _ in split.pre_tokenize_str(f" {line.replace('{', ' ').replace('}', ' ')}")
    }
    return sorted(piece for piece in pieces if len(piece) > 1)


def build_tokenizer(world: World) -> "PreTrainedTokenizerFast":
    """Build the tokenizer of a world, with its chat template."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*SPECIALS, *alphabet, *vocabulary(texts(world))]
    # BPE without merges: a word of the vocabulary is one token, and other words fall to bytes
    backend = Tokenizer(
        models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[], ignore_merges=True)
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in SPECIALS]
    )
    added = (*(token for token in schema.MARKERS if token != "}"), *schema.SOURCES)
    backend.add_tokens([AddedToken(token, special=False, normalized=False) for token in added])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=512,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
