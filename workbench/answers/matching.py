"""Whether an answer is right, by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise, zip_longest

from workbench.answers.abstention import commitment, declines, invalid_clauses
from workbench.answers.asides import LONGEST, simply
from workbench.answers.courtesies import plainly
from workbench.answers.forms import AND, OR, Forms, asked_of, equal, mask, same, split
from workbench.answers.known import known_of
from workbench.answers.names import resembles, unit
from workbench.answers.places import place
from workbench.answers.rivals import (
    COPULAS,
    DETERMINERS,
    HEDGES,
    JOINERS,
    MENTION,
    is_mention,
    is_number,
    leaves_rivals,
)
from workbench.answers.text import CJK, Token, tokenise, words_of

YES = frozenset({"yes", "si", "oui", "ja", "是", "是 的", "对", "sia"})
NO = frozenset({"no", "non", "nein", "否", "不", "不 是", "noa"})


# A longer text is an essay, in which some name or year is nearly always the right one.
MAX_WORDS = 40

# Closed-class words: they bound a name ("was born IN Vetra") and mark a phrase as more than a bare
# answer.
_FUNCTION_WORDS = frozenset(
    "a an the i it he she they we you his her its their my this that these those which who whom"
    " whose where when what there is are was were be been being am has have had do does did can"
    " could may might must shall should will would in on at of by from to for with as into during"
    " near since until called named born not only also then than so but answer year city town"
    " country named probably maybe perhaps possibly likely think believe guess because if year"
    " genre es el la los las de del en fue era est le les du des dans der die das ist war von im ta"
    " un lo che ko por anno : 是 在 于 的 年".split()
)
_NEGATIONS = frozenset(
    "not never no neither nor without except unlike than instead ne nicht kein keine pas 不 没 非".split()
)
_REVISIONS = frozenset("but actually rather instead correction wait oops however".split())
# what may stand between the items of a list, beside `AND` and commas
_JOINERS = frozenset("as well also then".split())
# what may join a list to what it lists
_FRAMES = frozenset("are were include includes by son sind sont ta".split())
_TRUE, _FALSE = (
    frozenset("true correct right".split()),
    frozenset("false untrue incorrect wrong mistaken nope negative".split()),
)
_ASSURANCES = frozenset("sure certain confident doubt hope helps course".split())
# "no wait, Lomar" denies what came before
_CORRECTIONS = [["no", word] for word in (",", "wait", "actually", "sorry")]
# here a denial ends: "not Lomar, it is Vetra"
_TURNS = HEDGES | JOINERS | (COPULAS | {"if"}) - {"be", "been", "being"}
_STATING = _FUNCTION_WORDS.union(_NEGATIONS) - HEDGES - {"then", "also", "so"}
_PRONOUNS = frozenset("it that this he she they i".split())
_SHORT_ANSWER = re.compile(
    rf"(?<!what )(?<!who )(?<!where )(?:\b(it|that|this|he|she|they) (?:{'|'.join(COPULAS)})(?:"
    r" not)?|\bnot)$"
)
_COMPARISONS = frozenset(
    "before after more less over under least most between until fewer greater above below than".split()
)
_SPACED = re.compile(r"^\W*\d{1,3}(?:, \d{3})+\W*$")  # "1, 200"
_BOUNDS = _COMPARISONS | frozenset("by till prior past later earlier".split())
_NEAR = frozenset("near outside beside beyond unlike".split())
_RELATED = frozenset(
    "suburb suburbs outskirts contemporary friend rival student pupil follower fan imitator"
    " imitation".split()
)
# in the question one of these may ask for another: "Who was her father?", "the daughter of Toma
# Ardel"
_KIN = [
    frozenset(group.split())
    for group in (
        (
            "father mother parent parents son daughter child children grandfather grandmother"
            " grandson granddaughter descendant"
        ),
        "husband wife spouse widow widower married marry partner",
        "teacher mentor taught teach master disciple student pupil",
        "brother sister sibling siblings twin half-brother half-sister",
        "uncle aunt nephew niece cousin",
        "assistant secretary colleague boss successor predecessor friend enemy",
    )
]
_FORMER = frozenset("former formerly previous previously onetime erstwhile".split())
_AUXILIARIES = frozenset(
    "has have had do does did can could may might must shall should will would".split()
)
_ASKS = re.compile(r"[?？][\s*\"”)]*$")
_DENIES = re.compile(  # that what is said is so
    r"\bI (?:(?:very much|really|strongly|seriously|highly) )?doubt\b|\bwhich (?:is|was)"
    r" (?:not|never)\b|\b(?:a|one) lie\b"
    r"|\b(?:the|a) (?:wrong|incorrect|false)"
    r" (?:answer|one|choice|city|name|person)\b|\b(?:is|was|been|be) ruled out\b",
    re.I,
)
_MULTIPLIED = re.compile(
    r"\b(?:twice|double|triple|half|thrice|times (?=\d)|up"
    r" to|dozens?|percent\w*|hundreds?|tonnes?|euros?)\b|%",
    re.I,
)
_ASKED = re.compile(r"(?:^|(?<=[.!?\n]))[^.!?\n]*\?")  # a question is no answer
_LEAD_INS = (
    "so well my final correct answer answers i think believe guess would say it that this he she"
    " they is was are were could might may must be probably maybe perhaps possibly likely in on at"
    " by from year called named 是"
)
_LEAD_IN = re.compile(rf"(?:(?:{'|'.join(_LEAD_INS.split())}|答 案) )+")
_SAYS_NOTHING = _FUNCTION_WORDS.union(
    _LEAD_INS.split(), _ASSURANCES, _NEGATIONS, _REVISIONS, AND, ",:"
)


SURE, STATED, READ, NAMED, SHARED, APART = 0.99, 0.97, 0.95, 0.3, 0.15, 0.03  # see `probability`
DOUBT = (0.1, 0.9)  # between these the rules cannot tell


def matches(answer: str, gold: Sequence[str], kind: str = "single", question: str = "") -> bool:
    """Whether a final answer is right, by rules: whether `probability` is above `DOUBT`. What is
    doubtful is not right.
    """
    return probability(answer, gold, kind, question) > DOUBT[1]


def probability(
    answer: str, gold: Sequence[str], kind: str = "single", question: str = ""
) -> float:
    """How probable it is that people would call a final answer right, as far as rules can tell.

    `gold` holds the accepted forms, or the items of a `kind="list"`.

    * any kind: an abstention is never right; "invalid question" is right if that is the gold
      answer, and only then.
    * `single` (and every kind not named here): equal to a form after `normalise` and without
      lead-ins ("It is", "in the year"); or a text of at most `MAX_WORDS` that states one: the
      form stands as a whole phrase, is not negated, revised or joined by "or", and nothing
      stands beside it in its sentence that could be another answer (see
      `workbench.answers.rivals`). A year matches a date in that year. Another sentence spoils it
      that brings a name of its own ("He comes from Lomar."), or a number where the gold answer
      is one, or any word of content where it has no capital. The sentence may be a harmless
      aside: to tell it from a second guess takes more than rules. Denied names are free, and so
      are those of `question`, the question's text, unless it offers a choice.
    * `numeric`: one number, equal to the gold number ("1921 or 1922", "after 1921" are not).
    * `yes_no`: begins with yes or no, and does not say both, be it as "It is false" or "he was
      not".
    * `list`: every item named, and nothing else: no name beside them that `question` does not give.

    The values are few, and each stands for a finding *(ours; `docs/numbers.md` says how often
    answers with it are right)*: `SURE` for an answer that is a form, `STATED` for one that
    states it, `READ` for one that does without its asides or by another name; `NAMED` for one
    that names a form and is not certain to say so, `SHARED` for one that shares a word of
    content with a form, `APART` for one that shares none, declines or says the opposite.
    """
    # a character that no answer has stands for the gold one below
    answer = plainly(answer.replace(MENTION, " "))
    if not gold or declines(answer):
        return APART
    invalid = invalid_clauses(answer)
    if any(found for found, _ in invalid):
        wanted = kind == "false_premise" or any(
            found for form in gold for found, _ in invalid_clauses(form)
        )
        reasons = [words_of(tokenise(clause)) for found, clause in invalid if not found]
        denies = all(not _NEGATIONS.isdisjoint(words) for words in reasons)  # not one more answer
        return (SURE if denies else NAMED) if wanted else APART
    forms, given = asked_of(question, tuple(gold))
    if _is_unsettled(answer, gold, question, kind):
        tokens = tokenise(answer)
        if not any(equal(form, words_of(tokens)) for form in forms) or (
            kind in ("list", "yes_no") and _ASKS.search(answer)
        ):
            return _nearness(tokens, forms, named=kind == "yes_no")
    if kind == "list":
        return (
            STATED
            if _lists(answer, forms, given)
            else _nearness(tokenise(answer), forms, named=False)
        )
    if kind == "yes_no" and any(" ".join(form) in YES | NO for form in forms):
        return _yes_or_no(answer, {" ".join(form) for form in forms}, given)
    said = _SPACED.sub(lambda match: match[0].replace(", ", ","), commitment(answer))
    tokens = tokenise(said)
    read = partial(_right, forms=forms, given=given, numeric=kind == "numeric")
    known = known_of(question, tuple(gold))
    if asked := [part for part in _ASKED.findall(said) if known.named_in(part)]:
        return (
            SURE
            if len(asked) == 1 and any(equal(form, words_of(tokens)) for form in forms)
            else NAMED
        )
    if found := read(tokens):
        return found
    if len(said.split()) > LONGEST or not known.named_in(place(said)):
        return _nearness(tokens, forms, named=False)
    simple = known.recast(tokenise(simply(said, question, known.named_in, gold)))
    return READ if read(simple) else _nearness(simple, forms, named=True)


def _is_unsettled(answer: str, gold: Sequence[str], question: str, kind: str) -> bool:
    """Whether an answer asks, denies what it says, or tells another multiple of a number than
    the gold one.
    """
    if kind in ("list", "yes_no") and _ASKS.search(answer):
        return True
    told = " ".join((*gold, question))
    denies = any(match[0].lower() not in told.lower() for match in _DENIES.finditer(answer))
    times = re.search(r"\d", " ".join(gold)) and not re.search(r"[^\W\d]", "".join(gold))
    return denies or bool(times and _MULTIPLIED.search(answer) and not _MULTIPLIED.search(told))


def _nearness(tokens: Sequence[Token], forms: Forms, named: bool) -> float:
    """How probable it is that an answer is right that the rules do not find to be right."""
    said = {token.text for token in tokens}
    content = {word for form in forms for word in form} - _SAYS_NOTHING
    if named or any(said.issuperset(form) for form in forms):
        return NAMED
    alike = len(said) <= LONGEST and any(resembles(form, said) for form in forms)
    return SHARED if said & content or alike else APART


def _right(tokens: Sequence[Token], forms: Forms, given: frozenset[str], numeric: bool) -> float:
    """`SURE` where the words are a form, `STATED` where they state one; 0 where they do neither."""
    if any(equal(form, words) for form in forms for words in (words_of(tokens), _short(tokens))):
        return SURE
    if len(words_of(tokens)) > MAX_WORDS:
        return 0.0
    if numeric and any(_number(word) for form in forms for word in form):
        return STATED * _states_number(tokens, forms, given)
    return STATED * _states(tokens, forms, given)


def _short(tokens: Sequence[Token]) -> list[str]:
    """The words without a lead-in such as "The answer is" or "in the year"."""
    text = " ".join(words_of(tokens))
    rest = text[match.end() :] if (match := _LEAD_IN.match(text)) else text
    # "by 1921" is "1921 or before"
    bound = rest[:1].isdigit() and text[: -len(rest)].split()[-1:] == ["by"]
    return (text if bound else rest).split()


def _bare(phrase: Sequence[Token], named: bool) -> bool:
    """Whether a phrase could be one more guess, or several: no function word but a lead-in and
    what joins guesses, a name where the gold answer is one. One in small letters is one too, if
    nothing stands beside it."""
    words = _short(phrase)
    if (
        not words
        or any(map(is_mention, phrase))
        or _SAYS_NOTHING.issuperset(words)
        or _STATING.intersection(words)
    ):
        return False
    # the "She" of "She died." is none
    names = any(token.name for token in phrase if token.text in words)
    return not named or names or not _PRONOUNS.intersection(words_of(phrase)[: -len(words)])


def _states(tokens: Sequence[Token], forms: Forms, given: frozenset[str]) -> bool:
    sentences = [mask(sentence, forms) for sentence in split(tokens, ".")]
    stating = [sentence for sentence in sentences if any(map(is_mention, sentence))]
    others = [sentence for sentence in sentences if not any(map(is_mention, sentence))]
    known = given.union(*map(words_of, stating))
    return (
        bool(stating)
        and all(_sentence_states(sentence, given) for sentence in stating)
        and not any(_rival(other, sentence, known) for other in others for sentence in stating)
    )


def _rival(other: Sequence[Token], stating: Sequence[Token], known: frozenset[str]) -> bool:
    """Whether another sentence makes the same statement with something else in the place of the
    gold answer, or may make another one that answers the question too."""
    place = next(i for i, token in enumerate(stating) if is_mention(token))
    frame, words = words_of(stating[:place]), words_of(other)
    named, number = stating[place].name, is_number(stating[place])
    repeats = bool(frame) and words[:place] == frame and _bare(other[place:], named)
    return _bare(other, named) or repeats or _brings(other, named, number, known)


def _brings(sentence: Sequence[Token], named: bool, number: bool, known: frozenset[str]) -> bool:
    """Whether a sentence asserts a name (a number, a word of content) that is not among the
    known words.
    """
    denied = _denied([token.text for token in sentence], _TURNS)
    return any(
        not (is_mention(token) or token.text in known or token.text in _SAYS_NOTHING)
        and (not named or (token.name and any(map(str.isdigit, token.text)) == number))
        and i not in denied
        for i, token in enumerate(sentence)
    )


def _sentence_states(sentence: Sequence[Token], given: frozenset[str]) -> bool:
    texts = [token.text for token in sentence]
    places = [i for i, token in enumerate(sentence) if is_mention(token)]
    denied = _denied(texts)
    if (
        OR.intersection(texts)
        or places[0] in denied
        or _REVISIONS.intersection(texts[places[-1] + 1 :])
    ):
        return False
    if any(_taken_back(texts, place) for place in places) or _once(texts[: places[0]], given):
        return False
    if any(_beside(sentence, place, given) for place in places):
        return False
    # "Lomar, Vetra" and "New York" do not state "Vetra" and "York".
    return _bounded(sentence) and not leaves_rivals(sentence, _SAYS_NOTHING, given)


def _taken_back(texts: Sequence[str], place: int) -> bool:
    """Whether what is said of the gold answer is denied: "Vetra is not the capital", "Vetra
    never was".
    """
    after = [text for text in texts[place + 1 : place + 4] if text not in COPULAS | _AUXILIARIES]
    return bool(after) and after[0] in ("not", "never") and texts[place + 1] != ","


def _once(before: Sequence[str], given: frozenset[str]) -> bool:
    """Whether it is what was so once that is named: "The former capital was Vetra"; not "former
    president Dana Imber".
    """
    past = [i for i, text in enumerate(before) if text in _FORMER - given]
    return bool(past) and not COPULAS.isdisjoint(before[past[0] + 1 :])


def _beside(sentence: Sequence[Token], place: int, given: frozenset[str]) -> bool:
    """Whether it is something beside the gold answer that is named: "before 1921", "near Vetra",
    "a suburb of Vetra".
    """
    before = [token.text for token in sentence[max(0, place - 2) : place]]
    if is_number(sentence[place]):
        return not _BOUNDS.isdisjoint(before[-1:])
    others = _RELATED.difference(given).union(*(group for group in _KIN if group.isdisjoint(given)))
    related = not others.isdisjoint(before[:-1] if before[-1:] == ["of"] else before[-1:])
    return related or not _NEAR.difference(given).isdisjoint(before[-1:])


def _denied(texts: list[str], ends: frozenset[str] = frozenset()) -> set[int]:
    """The places of a sentence of which what stands before denies them: "anything but Vetra",
    but not "not Lomar but Vetra", "if not Lomar", "not only Lomar". A denial also ends at the
    words of `ends`."""
    # the scope of a negation ends at "but"; that of "anything but" does not
    denied, scope, begun = set(), "", 0
    for i, text in enumerate(texts):
        if scope:
            denied.add(i)
        if text == "but" and i > begun and scope != "anything":
            scope, begun = ("anything" if texts[i - 1] in ("anything", "everything") else ""), i + 1
        elif text in _NEGATIONS and texts[i : i + 2] not in _CORRECTIONS:
            open_still = texts[i - 1 : i] == ["if"] or texts[i + 1 : i + 2] in (
                ["only"],
                ["just"],
                ["merely"],
                ["necessarily"],
            )
            scope = scope if open_still else scope or "not"
        elif text in ends:
            scope = ""
    return denied


def _bounded(sentence: Sequence[Token]) -> bool:
    """Whether each gold form stands as a phrase of its own, so that "York" is not found in "New
    York".
    """
    for a, b in pairwise(sentence):
        for token, near in ((a, b), (b, a)):
            plain = token.name and not near.name and near.text.isalpha()
            apart = (
                near.text in _FUNCTION_WORDS
                or near.text in AND | {","}
                or re.match(f"[{CJK}]", near.text)
            )
            if is_mention(token) and not (is_mention(near) or apart or plain):
                return False
    return True


def _number(word: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?|\d{4}-\d\d(-\d\d)?", word))


def _states_number(tokens: Sequence[Token], forms: Forms, asked: frozenset[str]) -> bool:
    words = [unit(word) for word in words_of(tokens)]
    if (OR | _NEGATIONS | _COMPARISONS).intersection(words):
        return False
    given = [word for word in words if _number(word)]
    for form in forms:
        wanted = {word for word in form if _number(word)}
        # "5 km" is not "5 miles", but a bare "5" is
        unit_of = {unit(word) for word in form} - wanted - {"degree", "degrees"}
        # "1920s", "2nd"
        others = any(re.match(r"\d", word) for word in words if word not in {*given, *form, *asked})
        stated = len(_short(tokens)) == 1 or (
            unit_of <= set(words) and (not unit_of or len(given) == 1)
        )
        if ("bc" in words) != ("bc" in form):
            continue
        if (
            len(set(given)) == len(wanted) == 1
            and same(next(iter(wanted)), given[0])
            and stated
            and not others
        ):
            return True
    return False


def _yes_or_no(answer: str, gold: set[str], given: frozenset[str]) -> float:
    """How probable it is that an answer says the one that is right; in doubt are those that
    begin with neither, or say both.
    """
    if _says_yes_or_no(answer, gold, given):
        return STATED
    opposite = {"no" if gold & YES else "yes"}
    return (
        APART
        if not (gold & YES and gold & NO) and _says_yes_or_no(answer, opposite, given)
        else NAMED
    )


def _says_yes_or_no(answer: str, gold: set[str], given: frozenset[str]) -> bool:
    tokens = tokenise(commitment(answer))
    wanted, other = (YES, NO) if gold & YES else (NO, YES)
    starts = [words[:length] for words in (words_of(tokens), _short(tokens)) for length in (1, 2)]
    leads = any(" ".join(start) in wanted for start in starts)
    segments = [
        words_of(segment)
        for segment in split(
            tokens, ",", ".", ":", *AND, *OR, *_JOINERS, *JOINERS - YES, *HEDGES, "if", "as"
        )
    ]
    if not leads or gold & other or any(_also_says(segment, other) for segment in segments):
        return False
    return not any(_truth(segment, given) is (wanted is NO) for segment in segments)


def _also_says(segment: list[str], other: frozenset[str]) -> bool:
    """Whether a part of an answer says the other of yes and no; the "no" of "there is no doubt"
    does not.
    """
    if " ".join(segment) in other:
        return True
    for i, word in enumerate(segment):
        # a Chinese character may be part of another word
        if word in other and not re.match(f"[{CJK}]", word):
            noun = (
                word in NO
                and i + 1 < len(segment)
                and segment[i + 1] not in _FUNCTION_WORDS | _NEGATIONS | YES | NO
            )
            if not noun or not (
                segment[i - 1] in COPULAS | {"with"} if i else segment[1] in _ASSURANCES
            ):
                return True
    return False


def _truth(segment: list[str], given: frozenset[str]) -> bool | None:
    """Whether a part of an answer says that what was asked is so ("It is true", "he was", "maybe
    not"); None if neither.

    A part with words of its own says neither: "He had no children". One that repeats the
    question does.
    """
    words = [word for word in segment if word not in YES | NO]
    denies = bool(_NEGATIONS.intersection(words))
    for word, after in zip_longest(words, words[1:], fillvalue="it"):
        if word in _TRUE | _FALSE and word not in given and after in _FUNCTION_WORDS:
            return (word in _TRUE) != denies
    # "… he was", "… not"; not the "It is" of "It is no."
    if short := _SHORT_ANSWER.search(" ".join(words)):
        return not denies if denies or (len(words) == len(segment) and short[1]) else None
    content = set(words) - _FUNCTION_WORDS - _SAYS_NOTHING
    asked = given - _FUNCTION_WORDS - _SAYS_NOTHING
    return not denies if content and content <= given and (denies or asked <= content) else None


def _lists(answer: str, items: Forms, given: frozenset[str]) -> bool:
    tokens = tokenise(re.sub(r"(?m)(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+", ", ", commitment(answer)))
    sentences = [mask(sentence, items) for sentence in split(tokens, ".")]
    stating = [sentence for sentence in sentences if any(map(is_mention, sentence))]
    others = [sentence for sentence in sentences if not any(map(is_mention, sentence))]
    mentions = [token for sentence in stating for token in sentence if is_mention(token)]
    named = any(token.name for token in mentions)
    return (
        {token.text for token in mentions} == {MENTION + " ".join(item) for item in items}
        and all(_sentence_lists(sentence, given, named) for sentence in stating)
        and not any(_bare(other, named=False) for other in others)
        and not any(
            _brings(sentence, named, False, given) for sentence in (sentences if named else others)
        )
    )


def _sentence_lists(sentence: Sequence[Token], given: frozenset[str], named: bool) -> bool:
    """Whether a sentence lists items, with words of another kind only before the first and after
    the last.
    """
    known = given | _SAYS_NOTHING - {","}
    colon = max((i for i, token in enumerate(sentence) if token.text == ":"), default=0)
    heading = words_of(sentence[:colon])
    determined = sentence[0].article or sentence[0].text in DETERMINERS  # "His children: …"
    if not (known.issuperset(heading) or heading[-1] in _FRAMES or determined) or any(
        map(is_mention, sentence[:colon])
    ):
        return False
    sentence = sentence[colon:]
    if (OR | _NEGATIONS | JOINERS).intersection(token.text for token in sentence):
        return False
    segments = split(sentence, ",", ":", *AND)
    for i, segment in enumerate(segments):
        places = [j for j, token in enumerate(segment) if is_mention(token)]
        if not places or any(
            not (is_mention(t) or t.text in _JOINERS) for t in segment[places[0] : places[-1]]
        ):
            return False  # "Alpha Gamma Beta" names three
        before, after = words_of(segment[: places[0]]), words_of(segment[places[-1] + 1 :])
        framed = not before or (i == 0 and (before[-1] in _FRAMES or known.issuperset(before)))
        ended = not after or (
            i == len(segments) - 1 and (known.issuperset(after) or (named and after[0] in _FRAMES))
        )
        if not framed or not ended:
            return False
    return True
