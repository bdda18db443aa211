"""Decide by rules whether an answer agrees with the gold answers.

The first sentence that names a gold answer must state it, and no earlier sentence may name another
candidate. So a list of guesses is worth no more than its first item.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from workbench.text.abstention import commitment, declines, invalid_clauses, without_courtesies
from workbench.text.gold import (
    APART,
    CLASS,
    GRAMMAR,
    MENTION,
    NAMED,
    SHARED,
    STATED,
    SURE,
    VERB,
    WORDS,
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
LONGEST = 1500  # characters of an answer; the rules do not parse a longer one
DOUBT = (0.1, 0.9)  # the rules are uncertain between these probabilities
_OFFERS = re.compile(  # several answers
    r"\b(?:second|third|another|other|next|alternative|first) (?:guess|answer|option|choice"
    r"|possibility|candidate)|\bif not\b|\balternatively\b|\b(?:any|one|either) of\b.*[,:]"
    r"|\b(?:options|candidates|possibilities|guesses|answers)\b.*(?: are|include|:)"
    r"|\bpossible\b|(maybe|perhaps|possibly|probably|might|could)\b.*\b\1\b|[=-]>"
    r"|(?:\bA\)|\b1[.):]).*(?:\bB\)|\b2[.):])",
    re.I | re.S,
)
_SAYS_WRONG = re.compile(
    r"\bI (?:\w+ (?:much )?)?doubt\b|\b(?:myth|misconception|untrue|mistaken|a lie|joke"
    r"|ruled out|refuted|disproved|debunked)\b|\b(?:wrong|incorrect|false)\b|\b(?:ignore|disregard) (?:all|any|the|previous"
    r"|prior|above)\b|\bgraders?\b|\bmarked? |\b(?:gold|reference) answer\b|\b(?!9\d"
    r"|100)\d+% (?:sure|certain|confident)\b",
    re.I,
)
_CONCEDED = re.compile(  # beliefs of other people, and concessions before the answer
    r"(?:^|(?<=[.!?] ))(?:while|although|though|despite|unlike|contrary to)\b[^,.;:\n]+, "
    r"|[^.;:,?!\n]*\b(?:many|most|some|people|everyone|you|often|commonly|sometimes|widely"
    r"|mistakenly)\b[^.;:?!\n]*\b(?:think|believe|assume|say|expect|thought|believed"
    r"|assumed)\b[^.;:?!\n]*?,? but (?!maybe|perhaps|possibly)|,? (?:although|though|but) (?:many"
    r"|most|some|people|it is (?:often|commonly))\b[^.;:\n]*",
    re.I,
)
_SIGNS = re.compile(
    r"[≠<>≤≥±×÷*/^~+√=#]\s*-?\d|\d\s*(?:[≠<>≤≥±×÷*/^+=‰²³]|\w+(?:/\w|[²³]))|\b(?:no|nr)\.\s*\d",
    re.I,
)
_CURRENCY = re.compile(r"[$£€¥]\s*\d|\d\s*[$£€¥]")  # no money unless the question counts
_STRUCK = re.compile(r"(~~?)(?![\s\d]).*?\1(?!\w)|<(s|del|strike)>.*?</\2>", re.S)
_EMPHASIS = re.compile(
    r"</?(?:b|i|em|strong|u|p|span)>|\*\*|__|(?<!\d)[*_`]|[*_`](?!\d)|(?<=[^\W\d]{4})[¹²³⁰-⁹]+",
    re.I,
)
_LINK = re.compile(r"\[([^\]\n]+)\]\(\S+?\)")
_HEADING = re.compile(  # of a part that is not the answer
    r"^\W*(?:explanation|reason|reasoning|justification|rationale|context|note|erklärung|begründung"
    r"|explicación|razón|explication|justification|解释|理由)\W*:|^\W*(?:sources?|quelle)\W*:.*",
    re.I | re.M,
)
_DEGREES = re.compile(r"(?:°|\bdegrees?) *([CF])(?:elsius|ahrenheit)?\b", re.I)
_SPACED = re.compile(r"(?<=\d), (?=\d{3}\b)")  # "1, 200"
_QUESTIONS = re.compile(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\?")


def matches(answer: str, gold: Sequence[str], kind: str = "single", question: str = "") -> bool:
    """Whether a final answer is right: its `probability` is above `DOUBT`."""
    return probability(answer, gold, kind, question) > DOUBT[1]


def probability(
    answer: str, gold: Sequence[str], kind: str = "single", question: str = ""
) -> float:
    """Estimate the probability that people would judge a final answer right.

    Args:
        gold: the accepted forms of the answer, or the items if `kind` is "list".
        kind: how the answer is compared with the gold answers:

            * any kind: an abstention is never right; "invalid question" is right only if it is the
              gold answer.
            * `single`, `numeric` and all other kinds: the answer equals a form after `normalise`
              and without a lead-in ("It is"), or its first sentence with a form states this form.
            * `yes_no`: the answer begins with yes or no, and does not contain both.
            * `list`: the answer names every item and no other candidate.

    Returns:
        One of five values (`docs/numbers.md` gives how often answers with each value are right):
        `SURE` if the answer is a form, `STATED` if it states a form, `NAMED` if it names a form
        and may not state it, `SHARED` if it shares a word with a form, and `APART` if it shares
        no word, declines or states the opposite.
    """
    answer = _plain(answer.replace(MENTION, " "))
    if not gold or declines(answer):
        return APART
    invalid = invalid_clauses(answer)
    if any(match for match, _ in invalid):
        wanted = kind == "false_premise" or any(
            match for form in gold for match, _ in invalid_clauses(form)
        )
        reasons = [{*words_of(tokenise(clause))} for match, clause in invalid if not match]
        denies = all(not words.isdisjoint(WORDS["negation"]) for words in reasons)
        return (SURE if denies else NAMED) if wanted else APART
    parsed = read_gold(question, tuple(map(_plain, gold)))
    if len(answer) > LONGEST:  # bounds the time
        return _nearness(tokenise(answer), parsed.forms, named=False)
    if kind == "list":
        value = STATED * _lists(answer, parsed)
    elif parsed.forms and all(" ".join(form) in YES | NO for form in parsed.forms):
        return _yes_or_no(answer, parsed)
    else:
        value = _single(answer, parsed, " ".join((*gold, question)).lower())
    return value or _nearness(tokenise(answer), parsed.forms, named=kind == "yes_no")


def _plain(text: str) -> str:
    """Remove emphasis, struck-out words and courtesies; unify "&" and "°C"."""
    text = _HEADING.sub("", _LINK.sub(r"\1", _EMPHASIS.sub("", _STRUCK.sub(" ", text))))
    text = text.replace("\u00ad", "").replace(" & ", " and ")
    return without_courtesies(_DEGREES.sub(r"°\1", text))


def _single(answer: str, gold: Gold, known: str) -> float:
    """Return `SURE` if an answer is a gold form, `STATED` if it states one, else 0.

    `known` is the text of the question and of the gold answers.
    """
    answer = _SPACED.sub(",", commitment(answer))
    tokens = tokenise(answer)
    signs = (_SIGNS,) if gold.counted else (_SIGNS, _CURRENCY)
    if gold.number and any(one.search(answer) and not one.search(known) for one in signs):
        return 0.0  # a bound or a formula: "> 1,200"
    asks = any(map(gold.named_in, _QUESTIONS.findall(answer)))
    readings = [words_of(tokens)] if asks else [words_of(tokens), short(tokens)]
    if any(equal(form, words) for form in gold.forms for words in readings):
        return SURE
    says_wrong = any(match[0].lower() not in known for match in _SAYS_WRONG.finditer(answer))
    offers = _OFFERS.search(answer) and not _OFFERS.search(known)
    if says_wrong or offers or asks:
        return 0.0  # the answer names a form, but denies it, offers several or asks
    answer = _CONCEDED.sub("", answer)
    tokens = tokenise(answer if gold.placed else located(answer))
    return STATED * (not _is_list(tokens, gold) and states(tokens, gold))


def _is_list(tokens: Sequence[Token], gold: Gold) -> bool:
    """Whether an answer lists the gold answer with two or more other bare phrases.

    Any separator counts: "1985… Vetra… Lomar".
    """
    ignored = GRAMMAR - WORDS["preposition"] - WORDS["near"]
    parts = [
        [token for token in gold.mask(part) if token.text not in ignored]
        for part in split(
            tokens, ".", ",", *WORDS["and"], *WORDS["or"], *WORDS["hedge"], "then", "but"
        )
    ]
    run: list[list[Token]] = []
    for part in [*parts, [Token("is")]]:
        texts = {token.text for token in part}
        verbs = any(VERB.fullmatch(token.text) and not token.name for token in part)
        if texts.isdisjoint(gold.known | {"is"}) and not verbs and len(part) < 6:
            run += [part] if part else []
        elif len(run) > 2 and any(len(phrase) == 1 and is_mention(phrase[0]) for phrase in run):
            # not a list if the gold answer abbreviates the phrases
            initials = "".join(token.text[0] for phrase in run for token in phrase)
            return not any(token.text[1:] in initials for phrase in run for token in phrase)
        else:
            run = []
    return False


def _nearness(tokens: Sequence[Token], forms: Sequence[Form], named: bool) -> float:
    """Return the probability of an answer that the rules do not accept."""
    words = {token.text for token in tokens}
    if named or any(words.issuperset(form) for form in forms):
        return NAMED
    content = {word for form in forms for word in form} - GRAMMAR
    years = {word[:4] for word in content if re.fullmatch(r"\d{4}(-\d\d)+", word)}
    return SHARED if words & content or years & {word[:4] for word in words} else APART


def _yes_or_no(answer: str, gold: Gold) -> float:
    """Return the probability that a yes/no answer is right.

    It is `NAMED` if the answer begins with neither yes nor no, or contains both.
    """
    wordings = {" ".join(form) for form in gold.forms}
    wanted, other = (YES, NO) if wordings & YES else (NO, YES)
    doubtful = wanted is YES and _SAYS_WRONG.search(answer)
    if _is_question(answer) or doubtful or (wordings & YES and wordings & NO):
        return NAMED
    if _says(answer, wanted, other, gold.known):
        return STATED
    return APART if _says(answer, other, wanted, gold.known) else NAMED


def _is_question(answer: str) -> bool:
    return answer.rstrip(' *")”').endswith(("?", "？"))


def _says(
    answer: str, wanted: frozenset[str], other: frozenset[str], known: frozenset[str]
) -> bool:
    """Whether an answer begins with a word of `wanted`, and nothing in it means the opposite.

    "It is false" and "he was not" mean the opposite of "yes".
    """
    tokens = tokenise(commitment(answer))
    begins = {" ".join(words[:n]) for words in (words_of(tokens), short(tokens)) for n in (1, 2)}
    joiners = {*WORDS["and"], *WORDS["or"], *WORDS["hedge"], *WORDS["joiner"], "if", "as"} - {"not"}
    segments = [words_of(segment) for segment in split(tokens, ",", ".", ":", *joiners)]
    return not begins.isdisjoint(wanted) and not any(
        _says_also(segment, other) or _truth(segment, known) is (wanted is NO)
        for segment in segments
    )


def _says_also(segment: Sequence[str], other: frozenset[str]) -> bool:
    """Whether a part of an answer contains the opposite word.

    The "no" in "he had no children" or "there is no doubt" does not count.
    """
    for i, word in enumerate(segment):
        noun = word in NO and i + 1 < len(segment) and segment[i + 1] not in GRAMMAR | YES | NO
        noun = noun and i > 0 and segment[i - 1] in WORDS["be"] | WORDS["auxiliary"] | {"with"}
        if word in other and not noun and not re.match(f"[{CJK}]", word):
            return True
    return " ".join(segment) in other


def _truth(segment: Sequence[str], known: frozenset[str]) -> bool | None:
    """Whether a part of an answer affirms or denies the question; None if it does neither.

    Examples: "It is true", "he was", "maybe not", or a repetition of the question.
    """
    words = [word for word in segment if word not in YES | NO]
    denies = not WORDS["negation"].isdisjoint(words)
    for word, after in zip(words, [*words[1:], "it"], strict=False):
        true = word in ("true", "correct", "right")
        judges = true or word in ("false", "untrue", "incorrect", "wrong")
        if judges and word not in known and after in GRAMMAR:
            return true != denies
    if words[-1:] == ["not"] or (len(words) == len(segment) == 2 and words[1] in WORDS["be"]):
        return not denies
    content, about = {*words} - GRAMMAR - WORDS["negation"], known - GRAMMAR
    return not denies if content and content <= known and (denies or about <= content) else None


def _lists(answer: str, gold: Gold) -> bool:
    """Whether an answer names all items of a list and nothing else."""
    bulleted = re.sub(r"(?m)(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+", ", ", commitment(answer))
    sentences = [gold.mask(sentence) for sentence in split(tokenise(bulleted), ".")]
    stating = [sentence for sentence in sentences if any(map(is_mention, sentence))]
    named = {token.text for sentence in stating for token in sentence if is_mention(token)}
    return (
        not _is_question(answer)
        and named == {MENTION + " ".join(form) for form in gold.forms}
        and all(_lists_only(sentence, gold) for sentence in stating)
        and not any(candidates(other, gold) for other in sentences if other not in stating)
    )


def _lists_only(sentence: Sequence[Token], gold: Gold) -> bool:
    """Whether a sentence lists items, with other words only before the first and after the last.

    "His children are Ana and Belu." is such a list; "Alpha Gamma Beta" is not.
    """
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if is_mention(token)]
    before, inside, after = (
        texts[: places[0]],
        texts[places[0] : places[-1]],
        texts[places[-1] + 1 :],
    )
    known = gold.known | GRAMMAR - WORDS["or"]
    determined = sentence[0].article or texts[0] in WORDS["determiner"]
    framed = known.issuperset(before) or (determined and before[-1] in WORDS["be"] | {":", "by"})
    joined = all(
        text[0] == MENTION or text in WORDS["and"] | {",", ":", "as", "well", "also"}
        for text in inside
    )
    apart = all(b - a > 1 for a, b in itertools.pairwise(places))
    denies = not (WORDS["or"] | WORDS["negation"]).isdisjoint(texts)
    return framed and joined and apart and known.issuperset(after) and not denies
