"""Decide by rules whether an answer agrees with the gold answers.

The first sentence that names a gold answer must state it, and no earlier sentence may name another
candidate. In a list of guesses, therefore only the first guess can be accepted.
"""

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache

from workbench.text.abstention import commitment, declines, invalid_clauses, without_courtesies
from workbench.text.gold import (
    APART,
    GRAMMAR,
    MENTION,
    NAMED,
    SHARED,
    STATED,
    SURE,
    WORDS,
    Form,
    Gold,
    equal,
    read_gold,
    short,
    split,
)
from workbench.text.markup import CITATION
from workbench.text.names import located
from workbench.text.normal_form import Token, tokenise, words_of
from workbench.text.statements import Sentence, states
from workbench.util.patterns import regex

YES = frozenset({"yes", "si", "oui", "ja", "是", "是 的", "对", "sia"})
NO = frozenset({"no", "non", "nein", "否", "不", "不 是", "noa"})
ANSWER_CHARACTERS = 1500  # characters of an answer; the rules do not parse a longer one
DOUBT = (0.1, 0.9)  # the rules are uncertain between these probabilities
_OFFERS = regex(  # several answers
    r"(?is)\b(?:second|third|another|other|next|alternative|first) (?:guess|answer|option|choice"
    r"|possibility|candidate)|\bif not\b|\balternatively\b|\b(?:any|one|either) of\b.*[,:]"
    r"|\b(?:options|candidates|possibilities|guesses|answers)\b.*(?: are|include|:)"
    r"|\bpossible\b|(maybe|perhaps|possibly|probably|might|could)\b.*\b\1\b|[=-]>"
    r"|(?:\bA\)|\b1[.):]).*(?:\bB\)|\b2[.):])"
)
_SAYS_WRONG = regex(
    r"(?i)\bI (?:\w+ (?:much )?)?doubt\b|\b(?:myth|misconception|untrue|mistaken|a lie|joke"
    r"|ruled out|rejected|refuted|disproved|debunked)\b|\b(?:wrong|incorrect|false)\b"
    r"|\b(?:ignore|disregard) (?:all|any|the|previous"
    r"|prior|above)\b|\bgraders?\b|\bmarked? |\b(?:gold|reference) answer\b|\b(?!9\d"
    r"|100)\d+% (?:sure|certain|confident)\b"
)
_CONCEDED = regex(  # beliefs of other people, and concessions before the answer
    r"(?i)(?:^|(?<=[.!?] ))(?:while|although|though|despite|unlike|contrary to)\b[^,.;:\n]+, "
    r"|[^.;:,?!\n]*\b(?:many|most|some|people|everyone|you|often|commonly|sometimes|widely"
    r"|mistakenly)\b[^.;:?!\n]*\b(?:think|believe|assume|say|expect|thought|believed"
    r"|assumed)\b[^.;:?!\n]*?,? but (?!maybe|perhaps|possibly)|,? (?:although|though|but) (?:many"
    r"|most|some|people|it is (?:often|commonly))\b[^.;:\n]*"
)
_SIGNS = regex(
    r"(?i)[≠<>≤≥±×÷*/^~+√=#]\s*-?\d|\d\s*(?:[≠<>≤≥±×÷*/^+=‰²³]|\w+(?:/\w|[²³]))|\b(?:no|nr)\.\s*\d"
)
_CURRENCY = regex(r"[$£€¥]\s*\d|\d\s*[$£€¥]")
_PRICE = regex(
    r"\bhow much\b|\b(?:costs?|price|paid|pay|worth|fee|salary|dollars?|euros?)\b|[$£€¥]"
)
_STRUCK = regex(r"(?s)(~~?)(?![\s\d]).*?\1(?!\w)|<(s|del|strike)>.*?</\2>")
_EMPHASIS = regex(r"(?i)</?(?:b|i|em|strong|u|p|span)>|\*\*|__|(?<!\d)[*_`]|[*_`](?!\d)")
_CITED = regex(rf"(?!(?<=\d)[¹²³⁰-⁹])(?:{CITATION})")  # not "1889²"
_NUMBER = regex(r"[^\]】)]*\d{3}")  # "[1890]", but not "[1](https://example.org/1890)"
_LINK = regex(r"\[([^\[\]\n]{1,200})\]\([^\s()]{1,300}\)")
_HEADING = regex(  # of a part that is not the answer
    r"(?im)^[^\w\n]{0,5}(?:explanation|reason|reasoning|justification|rationale|context|note|erklärung|begründung"
    r"|explicación|razón|explication|justification|解释|理由)\W{0,5}:|^[^\w\n]{0,5}(?:sources?|quelle)\W{0,5}:.*"
)
_DEGREES = regex(r"(?i)(?:°|\bdegrees?) *([CF])(?:elsius|ahrenheit)?\b")
_REGION = regex(r"continent|region|asia|africa|europe|america|oceania")
_NARROWED = regex(  # "in Southeast Asia, specifically in Vietnam"
    r"(?i)\b(?:in|within) (?:the )?(?:(?:south|north|east|west|central|middle|latin)\w*[ -])*"
    r"(?:asia|africa|europe|america|oceania|east|caribbean|pacific),? (?:and )?(?:more )?"
    r"(?:specifically|precisely|namely|particularly)(?: in| within)?,?"
    r" (?:the (?:country|city|state|nation) of )?"
)
_SPACED = regex(r"(?<=\d), (?=\d{3}\b)")  # "1, 200"
_NO = regex(  # means the opposite of "yes"
    r"\bnot(?: true| correct| right)?$|\b(?:false|untrue"
    r"|incorrect|wrong|lie|doubt it|myth|misconception)$"
)
_YES = regex(  # means the opposite of "no"
    r"^(?:it|he|she|they|that|this) (?:is|was|are|were)$|(?<!not )\b(?:true|correct|right)$"
)
_RETRACTS = regex(
    r"(?i)(?:^|[.!?…\n}>)*,;:—–-])\W{0,4}(?:(?:oh|hmm|no|but|or|sorry|well|ah|and|then|okay|ok)"
    r",? )*(?:wait\b|actually,? (?:it|that|the|no|i|(?-i:[A-Z]))|no\b(?! (?:other|further|more|one"
    r"|need|doubt))|scratch\b|correction\b|oops\b|on second thoughts?\b|rather\b|my mistake"
    r"|(?:just )?kidding|(?:please )?(?:ignore|disregard)\b|(?:maybe|perhaps|possibly)\b"
    r"|i (?:\w+ )?(?:take|retract|withdraw|meant|(?:was|am) (?:wrong|mistaken|joking)|made an?"
    r"|changed? my mind|misspoke|lied|should have said)|the (?:real|actual|true) answer)"
    r"|\b(?:it|that|this|answer|above|which|box|guess) (?:is|was) (?:(?!not\b)\w+ )?(?:wrong"
    r"|incorrect|false|mistaken|a (?:lie|guess|mistake|joke))\b"
    r"|\b(?:it|that|this|answer) (?:(?:is|was) ?n[’']t|(?:is|was) not)"
    r" (?:right|correct|true|(?-i:[A-Z]))"
)
_QUESTIONS = regex(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\?")


def matches(answer: str, gold: Sequence[str], kind: str = "single", question: str = "") -> bool:
    """Return whether a final answer is right: its `probability` is above 0.9.

    `matches("Paris.", ["Paris"])` → True. The arguments are described at `probability`.
    """
    return probability(answer, gold, kind, question) > DOUBT[1]


def probability(
    answer: str, gold: Sequence[str], kind: str = "single", question: str = ""
) -> float:
    """Estimate the probability that people would judge a final answer right.

    Args:
        answer: the final answer, such as `final_answer` returns.
        gold: the gold answers; if `kind` is "list", the items of the list.
        kind: the kind of question:

            * "single", "numeric" and others: the answer must be a gold answer, or the first
              sentence that names a gold answer must state it.
            * "yes_no": the answer must begin with the right one of yes and no, and not deny it.
            * "list": the answer must name every item and no other candidate.
            * "false_premise": the answer "invalid question" is right.
        question: the text of the question, or "" if unknown.

    Returns:
        One of five values. `docs/numbers.md` reports how often answers with each value are right.

        * `SURE` (.99): the answer is a gold answer.
        * `STATED` (.97): the answer states a gold answer in a sentence.
        * `NAMED` (.3): the answer contains a gold answer, but may not state it.
        * `SHARED` (.15): the answer shares a word with a gold answer.
        * `APART` (.03): the answer shares no word with a gold answer, declines, or states the
          opposite.
    """
    return _probability(answer, tuple(gold), kind, question)


@lru_cache(maxsize=1024)  # samples of one question often have the same answer
def _probability(answer: str, gold: tuple[str, ...], kind: str, question: str) -> float:
    answer = answer.replace(MENTION, " ")
    if "[" not in "".join(gold):  # as in an interval
        bare = _uncited(answer)
        answer = bare if any(map(str.isalnum, bare)) else answer
    answer = _plain(answer)
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
    if len(answer) > ANSWER_CHARACTERS:  # bounds the time
        return _nearness(tokenise(answer), parsed.forms, named=False)
    if kind == "list":
        value = STATED * _lists(answer, parsed)
    elif parsed.forms and all(" ".join(form) in YES | NO for form in parsed.forms):
        return _yes_or_no(answer, parsed)
    else:
        value = _single(answer, parsed, " ".join((*gold, question)).lower())
    return value or _nearness(tokenise(answer), parsed.forms, named=kind == "yes_no")


def retracted(text: str, answer: str) -> bool:
    r"""Whether the text after a final answer takes it back: "\boxed{Paris} Wait, no."

    Only text after the last box or `</answer>` counts. Without either, the result is False.
    """
    box = text.rfind(r"\boxed")
    opened, closed = (
        max((mark.end() for mark in re.finditer(tag, text, re.IGNORECASE)), default=-1)
        for tag in ("<answer>", "</answer>")
    )
    if max(box, closed) < 0:
        return False
    # the box may be inside <answer>, or after it
    within = box >= 0 and (box >= opened or closed < 0)
    after = text[box:].partition(answer)[2] if within else text[closed:]
    return bool(_RETRACTS.search(after))


def _uncited(text: str) -> str:
    """Replace citation marks by spaces, but not "1889 [1890]", which may be two guesses."""
    return _CITED.sub(lambda mark: mark[0] if _NUMBER.match(mark[0]) else " ", text)


def _plain(text: str) -> str:
    """Remove emphasis, struck-out words and courtesies; unify "&" and "°C"."""
    text = _HEADING.sub("", _LINK.sub(r"\1", _EMPHASIS.sub("", _STRUCK.sub(" ", text))))
    text = re.sub("[\u00ad\u200b\u2060\ufeff]", "", text).replace(" & ", " and ")
    return without_courtesies(_DEGREES.sub(r"°\1", text))


def _single(answer: str, gold: Gold, known: str) -> float:
    """Return `SURE` if an answer is a gold form, `STATED` if it states one, else 0.

    `known` is the text of the question and of the gold answers.
    """
    answer = _SPACED.sub(",", commitment(answer))
    if not _REGION.search(known):  # a region is no second candidate where a country is asked for
        answer = _NARROWED.sub("in ", answer)
    tokens = tokenise(answer)
    signs = (_SIGNS,) if _PRICE.search(known) else (_SIGNS, _CURRENCY)
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
    return STATED * states(tokens, gold)


def _nearness(tokens: Sequence[Token], forms: Sequence[Form], named: bool) -> float:
    """Return `NAMED`, `SHARED` or `APART` for an answer that the rules do not accept.

    With `named`, the result is always `NAMED`.
    """
    words = {token.text for token in tokens}
    if named or any(words.issuperset(form) for form in forms):
        return NAMED
    content = {word for form in forms for word in form} - GRAMMAR
    years = {word[:4] for word in content if re.fullmatch(r"\d{4}(-\d\d)+", word)}
    return SHARED if words & content or years & {word[:4] for word in words} else APART


def _yes_or_no(answer: str, gold: Gold) -> float:
    """Return the probability that a yes/no answer is right.

    It is `STATED` if the answer says the right one of yes and no, and `APART` if it says the other
    one. It is `NAMED` if the answer begins with neither, contains both, or is a question.
    """
    wordings = {" ".join(form) for form in gold.forms}
    wanted, other = (YES, NO) if wordings & YES else (NO, YES)
    if _is_question(answer) or wordings & other:
        return NAMED
    if _says(answer, wanted, gold):
        return STATED
    return APART if _says(answer, other, gold) else NAMED


def _is_question(answer: str) -> bool:
    return answer.rstrip(' *")”').endswith(("?", "？"))


def _says(answer: str, wanted: frozenset[str], gold: Gold) -> bool:
    """Whether an answer begins with a word of `wanted`, and nothing in it means the opposite."""
    tokens = tokenise(commitment(answer))
    begins = {" ".join(words[:n]) for words in (words_of(tokens), short(tokens)) for n in (1, 2)}
    separators = WORDS["and"].union(WORDS["or"], WORDS["hedge"], WORDS["joiner"], ["if", "as"])
    segments = [words_of(segment) for segment in split(tokens, ",", ".", ":", *separators)]
    return not begins.isdisjoint(wanted) and not any(
        _means_no(segment, gold.known) if wanted is YES else _means_yes(segment)
        for segment in segments
    )


def _means_no(words: Sequence[str], known: frozenset[str]) -> bool:
    """Whether a part of an answer denies the question.

    Examples are "no", "he was not", "that is false" and the question's words with a negation.
    """
    content = {*words} - GRAMMAR - WORDS["negation"]
    if content and content <= known and not WORDS["negation"].isdisjoint(words):
        return True
    having = WORDS["be"] | WORDS["auxiliary"] | {"with"}  # "he had no children"
    denied = any(
        word in NO and word.isascii() and not (before in having and after not in GRAMMAR | YES | NO)
        for before, word, after in zip(["", *words], words, [*words[1:], "is"], strict=False)
    )
    return denied or " ".join(words) in NO or bool(_NO.search(" ".join(words)))


def _means_yes(words: Sequence[str]) -> bool:
    """Whether a part of an answer affirms the question: "yes", "it is", "that is true"."""
    text = " ".join(words)
    # 是 is also a verb
    return text in YES or bool(_YES.search(text)) or any(map(str.isascii, YES & {*words}))


def _lists(answer: str, gold: Gold) -> bool:
    """Whether an answer names all items of a list and nothing else."""
    bulleted = re.sub(r"(?m)(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+", ", ", commitment(answer))
    sentences = [Sentence(part, gold) for part in split(tokenise(bulleted), ".")]
    named = {one.texts[place][1:] for one in sentences for place in one.places}
    return (
        not _is_question(answer)
        and named == {" ".join(form) for form in gold.forms}
        and all(_lists_only(one) if one.places else not one.candidates() for one in sentences)
    )


def _lists_only(sentence: Sentence) -> bool:
    """Whether a sentence only lists gold answers, separated by commas, "and" or "as well as".

    For the gold answers Ana and Belu, "His children are Ana and Belu" is such a list. "Ana Belu"
    and "Ana, Caro and Belu" are not.
    """
    classes, first, last = sentence.classes, sentence.places[0], sentence.places[-1] + 1
    content = "name noun verb number kin joiner"
    determined = sentence.tokens[0].article or classes[0] == "determiner"
    framed = not sentence.has(content, end=first) or (
        determined and (classes[first - 1] in ("be", "colon") or sentence.texts[first - 1] == "by")
    )
    joined = {*classes[first:last]} <= {"gold", "and", "comma", "colon", "filler"} or all(
        text[0] == MENTION or text in ("as", "well", ",") for text in sentence.texts[first:last]
    )
    apart = ("gold", "gold") not in itertools.pairwise(classes)
    whole = not sentence.has(content, start=last) and not sentence.has("or denied")
    return framed and joined and apart and whole
