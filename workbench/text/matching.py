"""Whether an answer agrees with the gold answers, by rules.

The first sentence that names a gold answer has to state it, and no sentence before it may name
another candidate. So a list of guesses is worth no more than its first item, whatever joins it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from workbench.text.abstention import commitment, declines, invalid_clauses, without_courtesies
from workbench.text.gold import (
    AND,
    APART,
    AUXILIARY,
    BE,
    DETERMINERS,
    GRAMMAR,
    HEDGES,
    JOINERS,
    MENTION,
    NAMED,
    NEGATIONS,
    OR,
    PREPOSITIONS,
    SHARED,
    STATED,
    SURE,
    VERB,
    Form,
    Gold,
    equal,
    is_mention,
    read_gold,
    short,
    split,
)
from workbench.text.names import located
from workbench.text.normal_form import CJK, Token, tokenise, words_of
from workbench.text.statements import candidates, states

YES = frozenset({"yes", "si", "oui", "ja", "是", "是 的", "对", "sia"})
NO = frozenset({"no", "non", "nein", "否", "不", "不 是", "noa"})
LONGEST = 1500  # characters of an answer
DOUBT = (0.1, 0.9)  # between these the rules cannot tell
_OFFERS = re.compile(  # several answers
    r"\b(?:second|third|another|other|next|alternative|first) (?:guess|answer|option|choice"
    r"|possibility|candidate)|\bif not\b|\balternatively\b|\b(?:any|one|either) of\b.*[,:]"
    r"|\b(?:options|candidates|possibilities|guesses|answers)\b.*(?: are|include|:)"
    r"|\bpossible\b|(maybe|perhaps|possibly|probably|might|could)\b.*\b\1\b|[=-]>"
    r"|(?:\bA\)|\b1[.):]).*(?:\bB\)|\b2[.):])",
    re.I | re.S,
)
_SAYS_WRONG = re.compile(
    r"\bI (?:\w+ (?:much )?)?doubt\b|\b(?:myth|misconception|untrue|mistaken|a lie|joke|ruled"
    r" out)\b"
    r"|\b(?:wrong|incorrect|false)\b|\b(?:ignore|disregard) (?:all|any|the|previous|prior|above)\b"
    r"|\bgraders?\b|\bmarked? |\b(?:gold|reference) answer\b"
    r"|\b(?!9\d|100)\d+% (?:sure|certain|confident)\b",
    re.I,
)
_CONCEDED = re.compile(  # what others think, or what is granted before the answer
    r"(?:^|(?<=[.!?] ))(?:while|although|though|despite|unlike|contrary to)\b[^,.;:\n]+, "
    r"|[^.;:,?!\n]*\b(?:many|most|some|people|everyone|you|often|commonly|sometimes|widely|mistakenly)"
    r"\b[^.;:?!\n]*\b(?:think|believe|assume|say|expect|thought|believed"
    r"|assumed)\b[^.;:?!\n]*?,? but "
    r"(?!maybe|perhaps|possibly)"
    r"|,? (?:although|though|but) (?:many|most|some|people|it is (?:often|commonly))\b[^.;:\n]*",
    re.I,
)
_SIGNS = re.compile(r"[≠<>≤≥±×÷*/^~+√=]\s*-?\d|\d\s*[≠<>≤≥±×÷*/^+=]")
_STRUCK = re.compile(r"~~.*?~~", re.S)
_EMPHASIS = re.compile(r"\*\*|__|(?<!\d)[*_`]|[*_`](?!\d)")
_DEGREES = re.compile(r"(?:°|\bdegrees?) *([CF])(?:elsius|ahrenheit)?\b", re.I)
_SPACED = re.compile(r"(?<=\d), (?=\d{3}\b)")  # "1, 200"
_ASKED = re.compile(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\?")


def matches(answer: str, gold: Sequence[str], kind: str = "single", question: str = "") -> bool:
    """Whether a final answer is right, by rules: whether `probability` is above `DOUBT`."""
    return probability(answer, gold, kind, question) > DOUBT[1]


def probability(
    answer: str, gold: Sequence[str], kind: str = "single", question: str = ""
) -> float:
    """How probable it is that people would call a final answer right, as far as rules can tell.

    `gold` holds the accepted forms, or the items of a `kind="list"`.

    * any kind: an abstention is never right; "invalid question" is right if that is the gold
      answer, and only then.
    * `single`, `numeric` (and every kind not named here): equal to a form after `normalise` and
      without a lead-in ("It is"), or stated by the first sentence that names one.
    * `yes_no`: begins with yes or no, and does not say both.
    * `list`: every item named, and nothing else that `question` does not give.

    The values are few, and each stands for a finding (`docs/numbers.md` says how often answers
    with it are right): `SURE` for an answer that is a form, `STATED` for one that states it,
    `NAMED` for one that names a form and may not state it, `SHARED` for one that shares a word
    with a form, `APART` for one that shares none, declines or says the opposite.
    """
    answer = _plain(answer.replace(MENTION, " "))
    if not gold or declines(answer):
        return APART
    invalid = invalid_clauses(answer)
    if any(found for found, _ in invalid):
        wanted = kind == "false_premise" or any(
            found for form in gold for found, _ in invalid_clauses(form)
        )
        reasons = [{*words_of(tokenise(clause))} for found, clause in invalid if not found]
        denies = all(not words.isdisjoint(NEGATIONS) for words in reasons)
        return (SURE if denies else NAMED) if wanted else APART
    asked = read_gold(question, tuple(map(_plain, gold)))
    if len(answer) > LONGEST:
        return _nearness(tokenise(answer), asked.forms, named=False)
    if kind == "list":
        found = STATED * _lists(answer, asked)
    elif kind == "yes_no" and any(" ".join(form) in YES | NO for form in asked.forms):
        return _yes_or_no(answer, asked)
    else:
        found = _single(answer, asked, " ".join((*gold, question)).lower())
    return found or _nearness(tokenise(answer), asked.forms, named=kind == "yes_no")


def _plain(text: str) -> str:
    """A text without emphasis, struck words and courtesies, in one writing of "&" and "°C"."""
    text = _EMPHASIS.sub("", _STRUCK.sub(" ", text)).replace("\u00ad", "").replace(" & ", " and ")
    return without_courtesies(_DEGREES.sub(r"°\1", text))


def _single(answer: str, asked: Gold, known: str) -> float:
    """`SURE` where an answer is a form, `STATED` where it states one; 0 where it does neither.
    `known` is the text of the question and of the gold answers."""
    answer = _SPACED.sub(",", commitment(answer))
    tokens = tokenise(answer)
    if asked.number and _SIGNS.search(answer) and not _SIGNS.search(known):
        return 0.0
    asks = any(map(asked.named_in, _ASKED.findall(answer)))
    said = [words_of(tokens)] if asks else [words_of(tokens), short(tokens)]
    if any(equal(form, words) for form in asked.forms for words in said):
        return SURE
    says_wrong = any(match[0].lower() not in known for match in _SAYS_WRONG.finditer(answer))
    offers = _OFFERS.search(answer) and not _OFFERS.search(known)
    if says_wrong or offers or asks:
        return 0.0
    answer = _CONCEDED.sub("", answer)
    tokens = tokenise(answer if asked.placed else located(answer))
    return STATED * (not _is_list(tokens, asked) and states(tokens, asked))


def _is_list(tokens: Sequence[Token], asked: Gold) -> bool:
    """Whether a bare gold answer stands among two or more other bare phrases, whatever parts them:
    "1985… Vetra… Lomar"."""
    said = GRAMMAR - PREPOSITIONS
    parts = [
        [token for token in asked.mask(part) if token.text not in said]
        for part in split(tokens, ".", ",", *AND, *OR, *HEDGES, "then", "but")
    ]
    run: list[list[Token]] = []
    for part in [*parts, [Token("is")]]:
        texts = {token.text for token in part}
        verbs = any(VERB.fullmatch(token.text) and not token.name for token in part)
        if texts.isdisjoint(asked.given | {"is"}) and not verbs and len(part) < 6:
            run += [part] if part else []
        elif len(run) > 2 and any(len(one) == 1 and is_mention(one[0]) for one in run):
            initials = "".join(token.text[0] for one in run for token in one)
            return not any(token.text[1:] in initials for one in run for token in one)
        else:
            run = []
    return False


def _nearness(tokens: Sequence[Token], forms: Sequence[Form], named: bool) -> float:
    """How probable it is that an answer is right that the rules do not find to be right."""
    words = {token.text for token in tokens}
    if named or any(words.issuperset(form) for form in forms):
        return NAMED
    content = {word for form in forms for word in form} - GRAMMAR
    years = {word[:4] for word in content if re.fullmatch(r"\d{4}(-\d\d)+", word)}
    return SHARED if words & content or years & {word[:4] for word in words} else APART


def _yes_or_no(answer: str, asked: Gold) -> float:
    """How probable it is that an answer says the one that is right of yes and no; in doubt are
    those that begin with neither, or say both."""
    gold = {" ".join(form) for form in asked.forms}
    wanted, other = (YES, NO) if gold & YES else (NO, YES)
    doubtful = wanted is YES and _SAYS_WRONG.search(answer)
    if _is_question(answer) or doubtful or (gold & YES and gold & NO):
        return NAMED
    if _says(answer, wanted, other, asked.given):
        return STATED
    return APART if _says(answer, other, wanted, asked.given) else NAMED


def _is_question(answer: str) -> bool:
    return answer.rstrip(' *")”').endswith(("?", "？"))


def _says(
    answer: str, wanted: frozenset[str], other: frozenset[str], given: frozenset[str]
) -> bool:
    """Whether an answer begins with `wanted`, yes or no, and says the other nowhere, be it as
    "It is false" or "he was not"."""
    tokens = tokenise(commitment(answer))
    begins = {" ".join(words[:n]) for words in (words_of(tokens), short(tokens)) for n in (1, 2)}
    joiners = {*AND, *OR, *HEDGES, *JOINERS, "if", "as"} - {"not"}
    segments = [words_of(segment) for segment in split(tokens, ",", ".", ":", *joiners)]
    return not begins.isdisjoint(wanted) and not any(
        _says_also(segment, other) or _truth(segment, given) is (wanted is NO)
        for segment in segments
    )


def _says_also(segment: Sequence[str], other: frozenset[str]) -> bool:
    """Whether a part of an answer also says the other one of yes and no. The "no" in "he had no
    children" or "there is no doubt" does not count."""
    for i, word in enumerate(segment):
        noun = word in NO and i + 1 < len(segment) and segment[i + 1] not in GRAMMAR | YES | NO
        noun = noun and i > 0 and segment[i - 1] in BE | AUXILIARY | {"with"}
        if word in other and not noun and not re.match(f"[{CJK}]", word):
            return True
    return " ".join(segment) in other


def _truth(segment: Sequence[str], given: frozenset[str]) -> bool | None:
    """Whether a part of an answer says that what was asked is so ("It is true", "he was", "maybe
    not", or the question again); None if neither."""
    words = [word for word in segment if word not in YES | NO]
    denies = not NEGATIONS.isdisjoint(words)
    for word, after in zip(words, [*words[1:], "it"], strict=False):
        true = word in ("true", "correct", "right")
        judges = true or word in ("false", "untrue", "incorrect", "wrong")
        if judges and word not in given and after in GRAMMAR:
            return true != denies
    if words[-1:] == ["not"] or (len(words) == len(segment) == 2 and words[1] in BE):
        return not denies
    content, about = {*words} - GRAMMAR - NEGATIONS, given - GRAMMAR
    return not denies if content and content <= given and (denies or about <= content) else None


def _lists(answer: str, asked: Gold) -> bool:
    """Whether an answer names all items of a list and nothing else."""
    bulleted = re.sub(r"(?m)(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+", ", ", commitment(answer))
    sentences = [asked.mask(sentence) for sentence in split(tokenise(bulleted), ".")]
    stating = [sentence for sentence in sentences if any(map(is_mention, sentence))]
    named = {token.text for sentence in stating for token in sentence if is_mention(token)}
    return (
        not _is_question(answer)
        and named == {MENTION + " ".join(form) for form in asked.forms}
        and all(_lists_only(sentence, asked) for sentence in stating)
        and not any(candidates(one, asked) for one in sentences if one not in stating)
    )


def _lists_only(sentence: Sequence[Token], asked: Gold) -> bool:
    """Whether a sentence lists items, with words of another kind only before the first and after
    the last: "His children are Ana and Belu.", but not "Alpha Gamma Beta"."""
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if is_mention(token)]
    before, inside, after = (
        texts[: places[0]],
        texts[places[0] : places[-1]],
        texts[places[-1] + 1 :],
    )
    known = asked.given | GRAMMAR - OR
    determined = sentence[0].article or texts[0] in DETERMINERS
    framed = known.issuperset(before) or (determined and before[-1] in BE | {":", "by"})
    joined = all(
        text[0] == MENTION or text in AND | {",", ":", "as", "well", "also"} for text in inside
    )
    apart = all(b - a > 1 for a, b in itertools.pairwise(places))
    denies = not (OR | NEGATIONS).isdisjoint(texts)
    return framed and joined and apart and known.issuperset(after) and not denies
