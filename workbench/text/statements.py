"""Decide by rules whether an answer states the gold answer that it names.

"The mayor of Paris" names Paris but does not state it as the answer. The words directly before and
after the gold answer must be words that can stand there in a statement. No other candidate may be
next to the gold answer or in an earlier sentence, and no later text may retract it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from workbench.text.gold import (
    CLASS,
    GRAMMAR,
    MENTION,
    UNITS,
    VERB,
    WORDS,
    Gold,
    is_letter,
    is_mention,
    is_number,
    split,
)
from workbench.text.names import DEMONYM, TITLES
from workbench.text.normal_form import CJK, MONTHS, Token
from workbench.util.patterns import regex

# Longest sentence that counts as a statement; a longer one may name the gold answer by chance.
MAX_WORDS = 40
# Classes of the words that may stand before and after a gold answer (see `Sentence`).
_BEFORE = frozenset(
    "start comma colon question be auxiliary preposition pronoun relative and or hedge gold".split()
)
_AFTER = frozenset(
    "end comma be auxiliary question preposition verb relative and or hedge pronoun joiner filler"
    " determiner colon near gold".split()
)
_RELATED = frozenset("noun name kin joiner near".split())  # before "of" and the gold answer
# "the mayor of Paris": the noun before one of these words is not the gold answer after it
_APART = frozenset("of to for from about around with".split())
_SEPARATORS = {",": "comma", ":": "colon"}
_SKIPPED = {"filler", "determiner", "title"}  # classes that `Sentence._link` skips
_LISTING = frozenset("start comma colon and or be pronoun hedge joiner gold".split())
_CHANGES = regex(  # the statement about the gold answer (@) is not true any more, or never was
    r"\b(?:former|formerly|previously|once|historically|no longer|used to|ceased|falsely)\b(?=.*@)"
    r"|(?<=@)(?: \S+){0,6} (?:until|no longer|formerly|previously|used to|once|ceased)\b"
    r"|(?<=@)(?: (?:is|are|was|were|has|have|had|do|does|did|been|who|which|can|could|will|would"
    r"|came|,(?= who| which)))*"
    r" (?:not|never|no|wrong|lost|loses|beaten|defeated|failed|jr|sr|junior|senior|2nd|3rd|last)\b"
    r"|(?<=@) , (?:no|never|wrong|false|not$)\b"
    r"|\b(?:fled|flee|banish|expel|exil|escap|deport|mov|long|writ|wrote|dream|care)\w*"
    r" (?:from|about|for|of)(?= @)"
    r"|\b(?:refus|declin|fail|want|wish|hop|plan|try|tri)\w* to\b(?=.*@)"
    r"|\b(?:followed|preceded|succeeded|replaced|inspired|influenced|beaten|defeated)(?= by @)"
)
_BOUNDS = regex(  # the number is a bound or part of a larger value
    r"\b(?:to|by|between|till|prior|later|earlier|plus|up to|at most|at least|at best|minimum"
    r"|maximum|not|following|preceding|(?:half|third|quarter|dozen|\w+th|multiple|fraction|square|root)"
    r" of)(?= @)|(?<=@) and (?:a )?(?:half|quarter)\b|(?<=@) [a-z]+ (?:later|earlier|ago)\b"
    r"|(?<=@) (?:bc|percent|dozens?"
    r"|pairs?|scores?|gross|squared|cubed|times|fold|hundreds?|thousands?|millions?|halves|thirds?"
    r"|quarters?|\w+ths|euros|tonnes|ago|minus|plus)\b"
)
_EVENTS = [  # a sentence with a word of the group that the question does not have is no answer
    frozenset(group.split())
    for group in ("born died buried raised", "largest smallest", "won lost", "first last second")
]
_CJK_LIST = regex(
    rf"[{CJK}](?<![他她它是在于的年])(?:可能|也许|或许|大概|或者|还是|以及|或|和|与|及)+是?\0"
    rf"|\0[^{CJK}]*(?:可能|也许|或许|大概|或者|还是|以及|或|和|与|及)+是?[{CJK}]"
)


def states(tokens: Sequence[Token], gold: Gold) -> bool:
    """Return whether a text states a gold answer.

    Three conditions must hold:

    * The first sentence that names a gold answer states it.
    * No earlier sentence names another possible answer, such as another date.
    * No later sentence retracts the gold answer.
    """
    sentences = [Sentence(part, gold) for part in split(tokens, ".")]
    at = next((i for i, sentence in enumerate(sentences) if sentence.places), None)
    if at is None or len(sentences[at].tokens) > MAX_WORDS:
        return False
    stating = sentences[at]
    known = gold.known.union(stating.texts)
    return (
        not any(one.is_phrase() or one.candidates(stating) - known for one in sentences[:at])
        and stating.states()
        and not any(later.retracts(stating) for later in sentences[at + 1 :])
    )


class Sentence:
    """A sentence with a word class for each token; each gold answer in it is one token.

    A class is a name from `grammar.txt`, such as "preposition" or "hedge", or one of these: "gold",
    "question" (a word of the question), "denied" (a negated word), "filler" (such as an adverb in
    "-ly"), "comma", "colon", "title" (before a name), "number", "verb", "name", or "noun" (every
    other word).
    """

    def __init__(self, tokens: Sequence[Token], gold: Gold) -> None:
        self.gold = gold
        self.tokens = gold.mask(tokens)
        self.texts = [token.text for token in self.tokens]
        self.forms = {  # place of a gold answer -> its words
            i: token.text[1:].split() for i, token in enumerate(self.tokens) if is_mention(token)
        }
        self.places = [*self.forms]
        self.denied = set(_denied(self.texts, gold.known))
        self.classes: list[str] = []
        for i in range(len(self.tokens)):
            self.classes.append(self._class(i))

    def _class(self, i: int) -> str:
        token, text, gold = self.tokens[i], self.texts[i], self.gold
        if i in self.places or i in self.denied:
            return "gold" if i in self.places else "denied"
        if text in _SEPARATORS:
            return _SEPARATORS[text]
        if text in gold.known - GRAMMAR:
            return "question"
        if text in CLASS and not is_letter(token):
            before = self.classes[-1] if i else ""
            along = before == "joiner" or (text == "with" and before in ("gold", "comma"))
            return "joiner" if along and CLASS[text] == "preposition" else CLASS[text]
        if text in TITLES and any(
            one.name or is_mention(one) for one in self.tokens[i + 1 : i + 2]
        ):
            return "title"
        if re.match(f"[{CJK}]", text) or (text.endswith("ly") and not (token.name and i)):
            return "filler"
        if text[0].isdigit():
            return "number"
        if VERB.fullmatch(text) and not (token.name and (i or token.article)):
            # "maybe Paris"; "mining", if the gold answer is a noun
            first = i == 0 or self.classes[-1] in ("hedge", "or", "revision")
            if not (text.endswith("s") and first) and (gold.named or not text.endswith("ing")):
                return "verb"
        if DEMONYM.fullmatch(text) and not gold.people:
            return "filler"
        return "name" if token.name else "noun"

    def has(self, classes: str, start: int = 0, end: int | None = None) -> bool:
        """Whether a token has one of the word classes `classes`, such as "name noun".

        Only tokens from `start` up to, but not including, `end` count; None: up to the last token.
        """
        return not {*classes.split()}.isdisjoint(self.classes[start:end])

    def is_phrase(self) -> bool:
        """Return whether the sentence is only a phrase with a name, noun or number: "Lomar.".

        Before or after the gold answer, such a sentence counts as another guess.
        """
        stating = self.has("be auxiliary verb pronoun question relative gold preposition")
        return not stating and self.has("name noun number")

    def candidates(self, stating: "Sentence | None" = None) -> set[str]:
        """Return the words of the sentence that could be another answer than the gold answer.

        If the gold answer is a number, they are numbers. Otherwise they are names, and also nouns
        if the gold answer is in lower case or the sentence has no function words.

        Args:
            stating: the sentence that states the gold answer. The gold answer also counts as in
                lower case if it is in this sentence. None: only its own spelling counts.
        """
        if self.gold.number:
            numbers = {text for i, text in enumerate(self.texts) if i not in self.denied}
            return set(filter(is_number, numbers)) - self.gold.known
        # nouns count if the gold answer is in lower case, or if there are no function words
        small = not self.gold.named or (stating and not stating.tokens[stating.places[0]].name)
        wanted = {"name", "noun", "kin"} if small or GRAMMAR.isdisjoint(self.texts) else {"name"}
        return {
            text for text, found in zip(self.texts, self.classes, strict=True) if found in wanted
        }

    def states(self) -> bool:
        """Whether the sentence states the gold answer that it names."""
        gold, place = self.gold, self.places[0]
        text = " ".join("@" if text[0] == MENTION else text for text in self.texts)
        changed = [*_CHANGES.finditer(text), *(_BOUNDS.finditer(text) if gold.number else ())]
        own = gold.question - WORDS["be"] - WORDS["auxiliary"] - WORDS["relative"]
        return not (
            any(own.isdisjoint(match[0].split()) for match in changed)
            or any(
                gold.known & one and one.intersection(self.texts) - gold.known for one in _EVENTS
            )
            or not self.denied.isdisjoint(self.places)
            or self._repeats_verb()
            or self.has("or")
            or _CJK_LIST.search("".join(self.texts))
            or not all(self._stands(one) for one in self.places)
            or (self._other_number(place) if gold.number else self._other_name(place))
        )

    def _repeats_verb(self) -> bool:
        """Whether one clause repeats a verb: "Lyon lies in Rome lies in Paris"."""
        verbs = [
            token.text
            for token, found in zip(self.tokens, self.classes, strict=True)
            if found in ("be", "verb") and not token.name
        ]
        breaks = self.has("and comma colon relative pronoun joiner")
        return len({*verbs}) < len(verbs) and not breaks

    def _link(self, at: int) -> tuple[int, str]:
        """Return the index and class of the word that connects word `at` to the sentence.

        It is the word before `at`; fillers, determiners and titles are skipped. The result is
        (-1, "start") if there is no such word.
        """
        at -= 1
        while at >= 0 and self.classes[at] in _SKIPPED:
            at -= 1
        return at, self.classes[at] if at >= 0 else "start"

    def _has_article(self, start: int, end: int) -> bool:
        article = any(token.article for token in self.tokens[start:end])
        return article or self.has("determiner", start=start, end=end)

    def _stands(self, place: int) -> bool:
        """Whether the words next to a gold answer neither extend it nor change its meaning.

        "New York", "the mayor of Paris", "hated Paris", "page 1889" and "1889 feet" change it.
        """
        return self._stands_after(place) and (
            self._stands_before(place)
            # "in 1902" is the gold answer
            or (self.gold.number and self.forms[place][0] in WORDS["preposition"])
        )

    def _stands_before(self, place: int) -> bool:
        gold, mention = self.gold, self.tokens[place]
        at, link = self._link(place)
        while link == "noun" and mention.name:
            at, link = self._link(at)
        own = {*self.forms[place]} & TITLES or not any(TITLES & {*one} for one in gold.forms)
        if not own and not TITLES.isdisjoint(self.texts[at + 1 : place]):
            return False  # "Princess Anne" for "Queen Anne"
        if self.has("noun", start=at + 1, end=place) and not (
            link in ("preposition", "be") or self._has_article(at + 1, place)
        ):
            return False  # "rival Heath Ledger"; but "the actor Heath Ledger"
        if not gold.number and at > 0 and self.texts[at] in _APART - (gold.question - {"of"}):
            head = self._link(at)[1]
            kin = head == "kin" and gold.question & WORDS["kin"]
            if head in _RELATED and not (kin or self.texts[at - 1] in WORDS["generic"]):
                return False  # "the mayor of Paris"; but "the city of Paris"
        passed = link in _BEFORE or (gold.number and link == "verb")
        return passed or self.texts[at] in gold.question | {"but", "so"}

    def _stands_after(self, place: int) -> bool:
        gold, mention = self.gold, self.tokens[place]
        following = self.tokens[place + 1] if place + 1 < len(self.tokens) else Token(".")
        after = self.classes[place + 1] if place + 1 < len(self.tokens) else "end"
        if gold.number:
            counted = gold.counted and after in ("noun", "generic", "kin")
            return (after in _AFTER or counted) and (
                following.text not in UNITS or after == "question"
            )
        other_kind = following.name and following.text in WORDS["kind"] - {gold.kind}
        rome = mention.article and following.text == "of"  # "the Rome of the north"
        beans = after == "verb" and place + 2 == len(self.texts) and following.text.endswith("s")
        return after in _AFTER and not (other_kind or rome or beans)

    def _other_name(self, place: int) -> bool:
        """Whether the sentence has another candidate that competes with the gold answer at `place`.

        If the gold answer has no capital letter, nouns are candidates too.
        """
        fragment = self.has("comma") and not self.has("verb be auxiliary question")
        wanted = {"name", "noun", "kin"} if fragment or not self.tokens[place].name else {"name"}
        listed = False  # whether the last candidate stands in one list with the gold answer
        for i, found in enumerate(self.classes):
            if found not in wanted or (i and self.classes[i - 1] == found == "name"):
                continue
            at, link = self._link(i)
            if i < place:
                if self._is_rival_before(i, place):
                    return True
                continue
            adjacent = {*self.classes[place + 1 : at + 1]} in ({"comma"}, {"and"})
            if "whose" in self.texts[place:i] or (adjacent and self._abbreviates(i, place)):
                continue
            if link == "and" or (link == "comma" and not fragment):
                listed = adjacent or listed
            elif link == "relative":
                listed = not self.has("verb", start=i)
            else:
                listed = link in _LISTING
            described = found != "name" or self.classes[i + 1 : i + 2] == ["noun"]
            apposed = described and link in ("comma", "be", "relative")
            if listed and not (apposed and self._has_article(at + 1, i + 1)):
                return True
        return False

    def _abbreviates(self, i: int, place: int) -> bool:
        """Whether word `i` abbreviates the gold answer by its initials: "Helium (He)"."""
        text, letters = self.texts[i], "".join(word[0] for word in self.forms[place])
        return letters.startswith(text) or (len(text) < 4 and text[0] == letters[0])

    def _is_rival_before(self, i: int, place: int) -> bool:
        """Whether the candidate at `i` competes with the gold answer at `place`, which comes later.

        It does not compete if it is the subject ("Ana Bo was born in Vetra") or belongs to another
        word ("the capital of Karsia is Vetra").
        """
        mention = self.tokens[place]
        if "".join(one.text[0] for one in self.tokens[:place] if one.name).endswith(
            mention.text[1:]
        ):
            return False  # "World Health Organization (WHO)"
        if self.has("and joiner relative pronoun colon", start=i, end=place):
            return True
        breaks = [at for at in range(i, place) if self.classes[at] in ("comma", "hedge")]
        start = max(breaks, default=i + 1)
        verbs = self.has("verb question auxiliary noun", start=start, end=place)
        stated = self.has("be question auxiliary", start=start, end=place)
        if breaks and not (stated or (verbs and self.classes[start] == "hedge")):
            return self.classes[0] != "preposition"
        noun = self.classes[i] == "noun" and self._has_article(max(0, i - 1), i + 1)
        if noun or self._link(i)[1] not in _LISTING:
            return False
        if mention.article and not mention.name and self.has("be", start=i, end=place):
            return False  # "Ana Bo is a painter"
        described = verbs or self._has_article(i + 1, place)
        return not (described and self._link(place)[1] == "preposition")

    def _other_number(self, place: int) -> bool:
        """Whether another number competes with the gold number at `place`, before it or next to it.

        Years compete with years, and other numbers with other numbers. Within two words of the gold
        number, every number competes.
        """
        year = _is_year(next(filter(is_number, self.forms[place])))
        for i, text in enumerate(self.texts):
            other = i not in self.places and is_number(text) and text not in self.gold.question
            if other and (_is_year(text) == year or abs(i - place) < 3):
                apart = self.has("noun verb question name", start=place + 1, end=i)
                if i < place or not apart or place == 0:
                    return True
        return False

    def retracts(self, stating: "Sentence") -> bool:
        """Return whether this sentence takes back the answer of an earlier sentence, `stating`.

        It does so if it denies this answer or names another answer.
        """
        texts, gold = self.texts, self.gold
        if self.places:
            return not self.denied.isdisjoint(self.places) or "used to" in " ".join(texts)
        if self.is_phrase():
            return True  # "Lomar."
        known = {*stating.texts} - GRAMMAR
        rivals = self.candidates(stating) - known
        frame = stating.texts[: stating.places[0]]
        if (
            not rivals
            or not (
                WORDS["revision"].union(WORDS["hedge"], WORDS["or"], ["another"]).isdisjoint(texts)
                and ({*texts} - rivals - GRAMMAR or self.has("be auxiliary"))  # not "Or Lomar."
                and texts[0] not in known  # the same subject again
                and not (
                    frame and texts[: len(frame)] == frame
                )  # the same words before the candidate
                and rivals.isdisjoint(gold.question)  # the other alternative of the question
            )
        ):
            return bool(rivals)
        dated = gold.number and not frame and self.classes[0] == "pronoun"
        bare = gold.number or not self.has("noun verb")
        return dated or any(
            text in MONTHS
            or text.endswith("day")
            or self._link(i)[1] in ("be", "joiner", *["start"] * bare)
            for i, text in enumerate(texts)
            if text in rivals
        )


def _denied(texts: Sequence[str], known: frozenset[str]) -> Iterator[int]:
    """Yield the indices of negated words: from a negation to the end of its clause.

    "Anything but Vetra" negates Vetra; "if not Vetra" and "not only Vetra" do not.
    """
    scope = False
    for i, (text, after) in enumerate(pairwise([*texts, ""])):
        before = texts[i - 1] if i else ""
        if text == "but":
            scope = before in ("anything", "everything", "nothing")
        elif scope and text in (",", ":", "it", "he", "she"):
            scope = text == "," and after in ("or", "nor", "and")
        elif text == "instead" and after != "of":
            continue
        elif text in WORDS["negation"] - known and after not in (",", "only", "just", "wait"):
            scope = scope or before != "if"
        if scope:
            yield i


def _is_year(text: str) -> bool:
    return bool(re.fullmatch(r"[12]\d{3}(s|(-\d\d)*)", text))
