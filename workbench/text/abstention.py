"""Recognise answers that decline to answer, or that call the question invalid.

The phrases are in the files `abstentions.LANGUAGE.txt`, where "l2" is the invented language of the
closed world. A phrase must match a whole clause. Case, diacritics and contractions do not matter.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from workbench.text.names import groups, lines
from workbench.text.normal_form import STOP, canonical
from workbench.text.sections import final_answer
from workbench.util.patterns import regex

INVALID_QUESTION = "invalid question"
Find = Callable[[str, int], "re.Match[str] | None"]  # match a phrase at a position
Clauses = list[tuple[bool, str]]  # (whether a phrase matches, text)

_LANGUAGES = "en zh es de fr it pt nl ru ja ko l2".split()
_PHRASES = [line for language in _LANGUAGES for line in lines(f"abstentions.{language}.txt")]
# the files mark the phrases that call the question invalid with "!"
ABSTENTIONS = [line for line in _PHRASES if not line.startswith("!")]
INVALID = [line.removeprefix("! ") for line in _PHRASES if line.startswith("!")]
_GROUPS = groups("clauses.txt")
_HEDGES, _TURNS = _GROUPS["hedges"], _GROUPS["turns"]
_STATES = "(?:it|he|she|that|they|the answer) (?:is|was|are|were|may|might|could)"
_BREAK = regex(  # the boundary between two clauses; commas divide clauses later
    rf"(?i){STOP}|:|\s[-–]+\s|—|,\s*(?=only\b)|\s\((?=not\b)|,?\s*\b(?=(?:{_HEDGES}|{_TURNS}|because)\b)"
    rf"|,\s*(?=(?:yet )?{_STATES}\b)|,?(?=但|不过)"
    r"|,(?=应该|可能|估计|大概|也许|或许|我猜|我觉得|我想|好像|似乎|多半|没准|说不定)"
)
_LEADS = regex(
    rf"(?i)(?:(?:{_HEDGES}|{_TURNS}|{_GROUPS['leads']})\b|{_GROUPS['chinese leads']}"
    r"|[\s,\"()<>*¿¡]+|[-•] )+"
)
_ADVERBS = regex(rf"(?i)\b(?:{_GROUPS['adverbs']})\b")
_REASONS = regex(rf"(?i)(?:{_GROUPS['reasons']})\b|{_GROUPS['chinese reasons']}")
_GIVEN = regex(  # only the part after the comma counts
    r"(?i)(?:based on|according to|given|as of|selon|dapres|segun|laut)\b[^,]*,"
)
_SPEAKER = regex(r"(?i)(?:i|my|we|it is (?:un|not)|more|please)\b")
_OBJECT = (
    r"(?:\s+(?:about |of |on )?(?:this|that|it|the answer)(?: to (?:this|that|the|your)"
    r" question)?(?=\s*,))?"
)
_CHINESE_ADVERBS = regex(
    "(?:并|也|还|都|真的?|确实|其实|实在|完全|根本|暂时|目前|现在)+(?=不|没|无|未)"
)
_GUESS = regex(  # "Paris?" after a phrase that declines
    "(?:[A-Z0-9][\\w.'-]*\\s*)+|(?!.*[什谁哪怎吗呢么您你请需])[\u4e00-\u9fff]{1,6}"
)
_NAMED = regex(  # a reason that names an answer: "since it is in Paris", "the text says Paris"
    rf"\b(?i:{_STATES}) (?!not\b)(?:[a-z]+ ){{0,3}}[A-Z0-9]"
    r"|^(?!.*\b(?:my|I|me|not)\b).*\b(?:is|was|are|were|been|says?|states?|suggests?|indicates?|names?|gives?"
    r"|lists?) (?:[a-z]+ ){0,3}[A-Z0-9]"
)
_TRY = regex(  # a name, or so few words that they may be a name
    r"\S\s+[A-Z0-9]|^\W*\w+(?:\W+\w+){0,3}\W*$"
)
_EXCEPTED = regex(  # a guess in the form of a refusal: "I know nothing other than Paris"
    r"(?i)\b(?:(?:other|else|better|likely) than|except(?: for)?|besides|(?:apart|aside) from|if"
    r" not|beyond)\b"
    r"[^.;!?\n]*?\b(?!I\b|\w+ \d)(?-i:[A-Z][a-z])"
)
_SORRY = regex(rf"\W*(?:{_GROUPS['apologies']})\W*")
_CAUSE = regex(r"(?:because|since|as|therefore|thus|hence)\s+")
_COMMA = regex(r"\s*,")
_GREETING = regex(
    rf"(?i)[\s*\"“¡]*(?:(?:{_GROUPS['greetings']})(?:\s*[!,.:\n—–。，！：、][\s*]*|\s+-\s+))+"
)
_FAREWELL = regex(
    rf"(?i)(?<=[.!?\n])[^\S\n]*(?:{_GROUPS['farewells']})\b"
    r"(?-i:(?:[^.!?\nA-Z0-9]|\bI\b)*)(?:[.!?]+|$)"
)
_ONLY_ITEM = regex(  # the marker of a list with one item
    r"(?s)\s*(?:[-*•]|\(?1[.)])\s+(?!.*(?:^|\s)(?:[-*•]|\(?2[.)])\s)"
)


def is_abstention(text: str, prefill: str = "") -> bool:
    """Whether the final answer of `text` declines to answer and names no possible answer.

    A text without a final answer is not an abstention. `prefill` is an unclosed tag at the end of
    the prompt, such as "<think>", or "".
    """
    answer = final_answer(text, prefill=prefill)
    return answer is not None and declines(answer)


@lru_cache(maxsize=1024)
def declines(answer: str) -> bool:
    """Whether a final answer declines to answer."""
    answer = without_courtesies(answer)
    return not (_is_title(answer) or _EXCEPTED.search(canonical(answer))) and (
        _all_match(answer, _finder(False)) or bool(_SORRY.fullmatch(canonical(answer)))
    )


def _is_title(answer: str) -> bool:
    """Whether an answer is capitalised like a title: "I Don't Know How to Love Him"."""
    words = re.findall(r"[^\W\d_][\w'’]*", answer) if len(answer) < 100 else []
    long = [word for word in words if len(word) > 3]
    capitals = all(word[0].isupper() and word[1:].islower() for word in long)
    return len(words) > 4 and len(long) > 1 and capitals


@lru_cache(maxsize=1024)
def commitment(answer: str) -> str:
    """Return an answer without the clauses that decline.

    "I am not sure, but it is Paris" → "it is Paris". An answer without such clauses is unchanged.
    If all clauses decline, the result is "".
    """
    clauses = list(_clauses(answer, _finder(False), reasons=True))
    committed = [clause for declined, clause in clauses if not declined]
    return ". ".join(committed) if len(committed) < len(clauses) else answer


def is_invalid(text: str) -> bool:
    """Whether the final answer of `text` only states that the question is invalid."""
    answer = final_answer(text)
    return answer is not None and _all_match(answer, _finder(True))


@lru_cache(maxsize=1024)
def invalid_clauses(answer: str) -> tuple[tuple[bool, str], ...]:
    """Return the clauses of an answer, each as (whether it calls the question invalid, text)."""
    return tuple(_clauses(answer, _finder(True))) or ((False, canonical(answer)),)


def _all_match(text: str, phrases: Find) -> bool:
    """Whether every clause of a text is one of the phrases; False for a text without words.

    Args:
        phrases: a function from `_finder`.
    """
    matched = False
    for matched, _ in _clauses(text, phrases):
        if not matched:
            return False
    return matched


def _clauses(text: str, phrases: Find, reasons: bool = False) -> Iterator[tuple[bool, str]]:
    """Yield (matched, clause) for each clause that is a phrase or an answer.

    `matched` is True for one of the phrases and False for an answer. Questions and reasons are
    usually left out. With `reasons`, those that may contain a guess are also yielded as answers.
    """
    text, start, declined = canonical(text), 0, False
    for match in (*_BREAK.finditer(text), None):
        end = match.start() if match else len(text)
        # A question is no answer next to other clauses ("His birthplace? I don't know"). Alone it
        # is a guess, and so is a name after a phrase that declines ("I don't know, Paris?").
        question = match is not None and "?" in match[0]
        silent = True
        for matched, clause in _classify(text[start:end], phrases):
            guess = declined and (reasons or _GUESS.fullmatch(clause))
            if matched or not question or guess:
                yield matched, clause
                silent = False
            declined = declined or matched
        if reasons and silent and _TRY.search(text[start:end]):
            yield False, text[start:end].strip(" ,")
        start = match.end() if match else end


def _classify(clause: str, phrases: Find) -> Clauses:
    """Return (True, phrase) for the phrases in a clause, and (False, text) for its answers.

    Words that are neither, such as linking words and reasons, are left out.
    """
    clause = _ADVERBS.sub(" ", clause if clause.isascii() else _CHINESE_ADVERBS.sub("", clause))
    clause = re.sub(r"\s+", " ", clause).strip(' ,"()<>*¿¡')
    lower, clauses, at = clause.lower(), Clauses(), 0
    while True:
        at = lead.end() if (lead := _LEADS.match(clause, at)) else at
        cause = _CAUSE.match(lower, at)
        match = phrases(lower, at) or (phrases(lower, cause.end()) if cause else None)
        if at == len(clause) or not match:
            break
        clauses.append((True, clause[at : match.end()]))
        if not (comma := _COMMA.match(clause, match.end())):
            return clauses
        at = comma.end()
    rest = clause[at:]
    if not rest:
        return clauses
    pieces = rest.split(",") if "," in rest else []
    parts = [part for piece in pieces for part in _classify(piece, phrases)]
    if any(matched for matched, _ in parts) or (
        # "According to the text, I …" is not a statement
        _GIVEN.match(rest) and not all(_SPEAKER.match(part) for _, part in parts)
    ):
        return clauses + parts
    if _REASONS.match(rest) and not _NAMED.search(rest):
        return clauses
    return [*clauses, (False, rest)]


def without_courtesies(answer: str) -> str:
    """Return an answer without greeting, farewell and the bullet of a list with one item.

    An answer that consists of courtesies is returned unchanged.
    """
    plain = answer
    for courtesy in (_GREETING, _ONLY_ITEM):
        if match := courtesy.match(plain):
            plain = plain[match.end() :]
    plain = _FAREWELL.sub("", plain)
    return plain if any(map(str.isalnum, plain)) else answer


@cache
def _finder(invalid: bool) -> Find:
    """Return a function that matches the phrases at a position of a text.

    The text must be canonical and in lower case. The phrases are `INVALID` or `ABSTENTIONS`.
    """
    phrases = INVALID if invalid else ABSTENTIONS
    begins = [_compiled(phrase) for phrase in phrases if phrase[0] != "…"]
    inside = [_compiled(phrase) for phrase in phrases if phrase[0] == "…"]
    latin = "|".join(pattern for pattern in inside if pattern.isascii())
    other = "|".join(pattern for pattern in inside if not pattern.isascii())
    scans = [rf"[^,]*?(?<!\w)(?:{latin})"] * bool(latin) + [rf"[^,]*?(?:{other})"] * bool(other)
    return re.compile("|".join([*begins, *scans])).match


def _compiled(phrase: str) -> str:
    """Return the regex of a phrase, in which "…" stands for words without a comma.

    A phrase must end at a comma or at the end of the text. Other words may follow a final "…"; the
    match leaves them out, except for an object such as "this" before a comma.
    """
    parts = [canonical(part).strip().lower() for part in phrase.split("…")]
    words = [_alternatives(part) for part in parts if part]
    # A Latin word ends at its last letter. Chinese has no such boundary, but 不确定性, 不懂事 and
    # 不认识的人 are other words.
    latin = words[-1].isascii()
    end = r"\s*(?=,|$)" if parts[-1] else _OBJECT + (r"(?!\w)" if latin else "(?![性事的])")
    return (r"(?!\w)[^,]*?(?<!\w)" if latin else "[^,]*?").join(words) + end


def _alternatives(part: str) -> str:
    """Return the regex of a part of a phrase, in which "(a/b)" means "a" or "b"."""
    pattern = re.escape(part).replace(r"\(", "(?:").replace(r"\)", ")")
    return pattern.replace("/", "|") if "(" in part else pattern  # not "n/a"
