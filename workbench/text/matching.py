"""Decide by rules whether an answer agrees with the gold answers.

The first sentence that names a gold answer must state it, and no earlier sentence may name another
candidate. In a list of guesses, therefore only the first guess can be accepted.
"""

import re
from collections.abc import Sequence

from workbench.text.abstention import commitment, declines, invalid_clauses, without_courtesies
from workbench.text.gold import GRAMMAR, MENTION, WORDS, Gold, is_mention, read_gold, split
from workbench.text.markup import CITATION
from workbench.text.names import located
from workbench.text.normal_form import tokenise, words_of
from workbench.text.statements import Sentence, states

YES = frozenset({"yes", "si", "oui", "ja", "是", "是 的", "对", "sia"})
NO = frozenset({"no", "non", "nein", "否", "不", "不 是", "noa"})
SURE, STATED, NAMED, SHARED, APART = 0.99, 0.97, 0.3, 0.15, 0.03  # see `probability`
LONGEST = 1500  # characters of an answer; the rules do not parse a longer one
DOUBT = (0.1, 0.9)  # the rules are uncertain between these probabilities
_OFFERS = re.compile(  # several answers
    r"(?is)\b(?:second|another|other|next|alternative) (?:guess|answer|option|choice)"
    r"|\balternatively\b|\b(?:any|one|either) of\b.*,|\b(?:options|candidates|guesses)\b.*:"
    r"|(maybe|perhaps|possibly|probably|might|could)\b.*\b\1\b|[=-]>"
    r"|(?:\bA\)|\b1[.):]).*(?:\bB\)|\b2[.):])"
)
_SAYS_WRONG = re.compile(
    r"(?i)\bI (?:\w+ (?:much )?)?doubt\b|\b(?:myth|misconception|untrue|mistaken|a lie|joke|wrong"
    r"|incorrect|false|ruled out|rejected|refuted|disproved|debunked)\b"
)
_CONCEDED = re.compile(  # beliefs of other people, and concessions
    r"(?i)(?:^|(?<=[.!?] ))(?:while|although|though|despite|unlike|contrary to)\b[^,.;:\n]+, "
    r"|[^.;:,?!\n]*\b(?:many|most|some|people|everyone|you|often|commonly|sometimes|widely"
    r"|mistakenly)\b[^.;:?!\n]*\b(?:think|believe|assume|say|expect|thought|believed"
    r"|assumed)\b[^.;:?!\n]*?,? but (?!maybe|perhaps|possibly)|,? (?:although|though|but) (?:many"
    r"|most|some|people|it is (?:often|commonly))\b[^.;:\n]*"
)
_SIGNS = re.compile(  # a bound, a formula, a compound unit or a price
    r"(?i)[≠<>≤≥±×÷*/^~+√=#]\s*-?\d|\d\s*(?:[≠<>≤≥±×÷*/^+=‰²³]|\w+(?:/\w|[²³]))|\bno\.\s*\d"
    r"|[$£€¥](?=\s*\d)"
)
_PRICE = re.compile(r"\bhow much\b|\b(?:costs?|price|pa(?:id|y)|worth|dollars?|euros?)\b|[$£€¥]")
_STRUCK = re.compile(r"(?s)(~~?)(?![\s\d]).*?\1(?!\w)|<(s|del|strike)>.*?</\2>")
_EMPHASIS = re.compile(r"(?i)</?(?:b|i|em|strong|u|p|span)>|\*\*|__|(?<!\d)[*_`]|[*_`](?!\d)")
# not "1889 [1890]", which may be two guesses, and not "1889²"
_CITED = re.compile(rf"(?![^\]】)]*\d{{3}})(?!(?<=\d)[¹²³⁰-⁹])(?:{CITATION})")
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\([^\s()]{1,300}\)")
_HEADING = re.compile(  # of a part that is not the answer
    r"(?im)^[^\w\n]{0,5}(?:explanation|reason(?:ing)?|justification|rationale|context|note|erklärung"
    r"|begründung|explicación|razón|explication|解释|理由)\W{0,5}:|^[^\w\n]{0,5}(?:sources?|quelle):.*"
)
_DEGREES = re.compile(r"(?i)(?:°|\bdegrees?) *([CF])(?:elsius|ahrenheit)?\b")
_NARROWED = re.compile(  # "in Southeast Asia, specifically in Vietnam"
    r"(?i)\bin (?:\w+ )?\w*(?:asia|africa|europe|america|oceania),? (?:more )?"
    r"(?:specifically|precisely)(?: in)?\b"
)
_NO = re.compile(  # means the opposite of "yes"
    r"\bnot(?: true| correct| right)?$|\b(?:false|untrue|incorrect|wrong|lie|doubt it|myth)$"
)
_YES = re.compile(  # means the opposite of "no"
    r"^(?:it|he|she|they|that|this) (?:is|was|are|were)$|(?<!not )\b(?:true|correct|right)$"
)
_HAVING = WORDS["be"] | WORDS["auxiliary"] | {"with"}
_LEAD_IN = re.compile("^(?:(?:my |final |correct )*answer (?:is )?|i (?:think|believe) )*")
_RETRACTS = re.compile(
    r"(?i)(?:^|[.!?…\n}>)*,;:—–-])\W{0,4}(?:(?:oh|hmm|no|but|or|sorry|well|and|then|okay|ok),? )*"
    r"(?:wait\b|actually,? (?:it|that|the|no|i|(?-i:[A-Z]))|no\b(?! (?:other|more|one|need|doubt))"
    r"|(?:scratch|correction|oops|rather|maybe|perhaps|possibly|on second thoughts?)\b|my mistake"
    r"|(?:just )?kidding|(?:please )?(?:ignore|disregard)\b|the (?:real|actual|true) answer"
    r"|i (?:\w+ )?(?:take|retract|withdraw|meant|(?:was|am) (?:wrong|mistaken|joking)|made an?"
    r"|changed? my mind|misspoke|lied|should have said))"
    r"|\b(?:it|that|this|answer|above|box|guess) (?:is|was) (?:(?!not\b)\w+ )?(?:wrong|incorrect"
    r"|false|mistaken|a (?:lie|guess|mistake|joke))\b"
    r"|\b(?:it|that|this|answer) (?:(?:is|was) ?n[’']t|(?:is|was) not)"
    r" (?:right|correct|true|(?-i:[A-Z]))"
)
_QUESTIONS = re.compile(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\?")


def matches(answer: str, gold: Sequence[str], kind: str = "single", question: str = "") -> bool:
    """Return whether a final answer is right: its `probability` is above .9 (`DOUBT[1]`)."""
    return probability(answer, gold, kind, question) > DOUBT[1]


def probability(
    answer: str, gold: Sequence[str], kind: str = "single", question: str = ""
) -> float:
    """Estimate the probability that people would judge a final answer right.

    Args:
        answer: the final answer, such as `final_answer` returns.
        gold: the gold answers; if `kind` is "list", the items of the list.
        kind: the kind of question:

            * "list": the answer must name every item and no other candidate.
            * "false_premise": the answer "invalid question" is right.
            * all others: the answer must be a gold answer, or the first sentence that names a gold
              answer must state it. If the gold answer is yes or no, the answer must begin with it
              and not contradict it.
        question: the text of the question, or "" if unknown.

    Returns:
        One of five values. `docs/numbers.md` reports how often answers with each value are right.

        * `SURE` (.99): the answer is a gold answer, and nothing else.
        * `STATED` (.97): the answer states a gold answer in a sentence.
        * `NAMED` (.3): the answer contains a gold answer, but may not state it.
        * `SHARED` (.15): the answer shares a word with a gold answer.
        * `APART` (.03): the answer shares no word with a gold answer, declines, or states the
          opposite.
    """
    answer = answer.replace(MENTION, " ")
    answer = _plain(answer if "[" in "".join(gold) else _CITED.sub(" ", answer))
    if not gold or declines(answer):
        return APART
    invalid = invalid_clauses(answer)
    if any(match for match, _ in invalid):
        if kind != "false_premise" and not any(invalid_clauses(form)[0][0] for form in gold):
            return APART
        reasons = ({*words_of(tokenise(clause))} for match, clause in invalid if not match)
        return SURE if all(WORDS["negation"] & words for words in reasons) else NAMED
    parsed = read_gold(question, tuple(map(_plain, gold)))
    if len(answer) > LONGEST:  # bounds the time
        return _nearness(answer, parsed)
    if kind == "list":
        value = STATED * _lists(answer, parsed)
    elif parsed.forms and (YES | NO).issuperset(map(" ".join, parsed.forms)):
        return _yes_or_no(answer, parsed)
    else:
        value = _single(answer, parsed, " ".join((*gold, question)).lower())
    return value or _nearness(answer, parsed)


def retracted(text: str, answer: str) -> bool:
    r"""Whether the text after a final answer takes it back: "\boxed{Paris} Wait, no."

    Only text after the last box or `</answer>` counts. Without either, the result is False.
    """
    box, tag = text.rfind(r"\boxed"), text.lower().rfind("</answer>")
    after = text[tag + len("</answer>") :] if tag > box else text[box:].partition(answer)[2]
    return max(box, tag) >= 0 and bool(_RETRACTS.search(after))


def _plain(text: str) -> str:
    """Remove emphasis, struck-out words and courtesies; unify "&" and "°C"."""
    text = _HEADING.sub("", _LINK.sub(r"\1", _EMPHASIS.sub("", _STRUCK.sub(" ", text))))
    text = re.sub("[\u00ad\u200b\u2060\ufeff]", "", text).replace(" & ", " and ")
    return without_courtesies(_DEGREES.sub(r"°\1", text))


def _single(answer: str, gold: Gold, known: str) -> float:
    """Return `SURE` if an answer is a gold answer, `STATED` if it states one, else 0.

    `known` is the text of the question and of the gold answers.
    """
    answer = re.sub(r"(?<=\d), (?=\d{3}\b)", ",", commitment(answer))  # "1, 200"
    if "continent" not in known:  # otherwise, the region is another candidate
        answer = _NARROWED.sub("in", answer)
    known += "$£€¥" if _PRICE.search(known) else ""
    doubtful = [*_SAYS_WRONG.finditer(answer), *(_SIGNS.finditer(answer) if gold.number else ())]
    if any(match[0].lower() not in known for match in doubtful):
        return 0.0
    words = [token for token in tokenise(answer) if token.text not in (",", ".", ":")]
    joined = "".join(words_of(words))
    respaced = len(joined) > 5 and joined.isalpha() and joined in map("".join, gold.forms)
    if respaced or [*map(is_mention, gold.mask(words))] == [True]:  # "Di Caprio" for "DiCaprio"
        return SURE
    asked = (tokenise(question) for question in _QUESTIONS.findall(answer))
    asks = any(map(is_mention, (token for tokens in asked for token in gold.mask(tokens))))
    if asks or (_OFFERS.search(answer) and not _OFFERS.search(known)):
        return 0.0
    answer = _CONCEDED.sub("", answer)
    return STATED * states(tokenise(answer if gold.placed else located(answer)), gold)


def _nearness(answer: str, gold: Gold) -> float:
    """Return `NAMED`, `SHARED` or `APART` for an answer that the rules do not accept."""
    words = {token.text for token in tokenise(answer)}
    if any(words.issuperset(form) for form in gold.forms):
        return NAMED
    content = {word for form in gold.forms for word in form} - GRAMMAR
    years = {word[:4] for word in content if re.fullmatch(r"\d{4}(-\d\d)+", word)}
    return SHARED if words & content or years & {word[:4] for word in words} else APART


def _yes_or_no(answer: str, gold: Gold) -> float:
    """Return the probability that a yes/no answer is right.

    It is `STATED` if the answer begins with the right one of yes and no, and `APART` if it begins
    with the other one. It is `NAMED` if the answer begins with neither, contradicts itself, or is a
    question.
    """
    tokens = tokenise(commitment(answer))
    first = _LEAD_IN.sub("", " ".join(words_of(tokens))).split(" ")[0]
    said = next((words for words in (YES, NO) if first in words), frozenset[str]())
    parts = map(words_of, split(tokens, ",", ".", ":", *WORDS["joiner"]))
    if not said or _is_question(answer) or any(_opposes(part, said, gold.known) for part in parts):
        return NAMED
    return STATED if said.issuperset(map(" ".join, gold.forms)) else APART


def _is_question(answer: str) -> bool:
    return answer.rstrip(' *")”').endswith(("?", "？"))


def _opposes(words: Sequence[str], said: frozenset[str], known: frozenset[str]) -> bool:
    """Whether a part of an answer that begins with yes or no (`said`) means the other one.

    "No", "he was not", "that is false" and the question's words with a negation oppose "yes".
    """
    text = " ".join(words)
    if said is NO:
        # 是 is also a verb
        return text in YES or bool(_YES.search(text)) or any(map(str.isascii, YES & {*words}))
    negated, content = WORDS["negation"] & {*words}, {*words} - GRAMMAR - WORDS["negation"]
    return bool((negated and content and content <= known) or _NO.search(text)) or any(
        # not "he had no children"
        word in NO and not (before in _HAVING and after not in GRAMMAR | YES | NO)
        for before, word, after in zip(["", *words], words, [*words[1:], "is"], strict=False)
    )


def _lists(answer: str, gold: Gold) -> bool:
    """Whether an answer names all items of a list and nothing else."""
    bulleted = re.sub(r"(?m)(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+", ", ", commitment(answer))
    sentences = [Sentence(part, gold) for part in split(tokenise(bulleted), ".")]
    named = {tuple(form) for one in sentences for form in one.forms.values()}
    return (
        not _is_question(answer)
        and named == {*gold.forms}
        and all(_lists_only(one) if one.places else not one.candidates() for one in sentences)
    )


def _lists_only(sentence: Sentence) -> bool:
    """Whether a sentence only lists gold answers, after words such as "His children are"."""
    classes, first, last = sentence.classes, sentence.places[0], sentence.places[-1] + 1
    content = "name noun verb number kin joiner"
    determined = sentence.tokens[0].article or classes[0] == "determiner"
    framed = determined and classes[first - 1] in ("be", "colon")
    joined = (
        found in ("gold", "and", "comma", "colon", "filler") or text in ("as", "well")
        for found, text in zip(classes[first:last], sentence.texts[first:last], strict=True)
    )
    return (
        (framed or not sentence.has(content, end=first))
        and all(joined)
        and not (sentence.has(content, start=last) or sentence.has("or denied"))
    )
