"""Resolve "he", "she" and "it" at the beginning of a claim *(ours)*."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from workbench.claims.english import TOKEN, first_verb
from workbench.claims.topic import NAME, is_thing, is_unclear, topic_of
from workbench.types import Claim, Response
from workbench.util.patterns import regex

_PRONOUN = regex(r"^(?:(He|She|It)|(His|Her|Its))\b")
_EXPLETIVE = regex(  # "it" without a referent
    r"^It(?:, [^,]*,)? (?:is|was|has been) (?:\w+ly )?\w+ed that\b|^It (?:is"
    r"|was) (?!\w+ed\b)\w+ (?:to|that)\b|^It (?:is|was) an? (?:\w+ )?(?:fact|fallacy|lie|myth"
    r"|misconception|rumou?r) that\b|^It (?:take|(?:is|was) up to)"
    r"|^It (?:rain|snow|hail)(?:s|ed)?\b"
    r"|^It (?:seem|appear|happen|turn|follow)(?:s|ed)? (?:out )?(?:that|as|to)\b"
    r"|^It(?:, [^,]*,)? (?:is|was|has been|gets?|got) (?:(?:\w+ly|very|so|too|quite|still) )*"
    r"(?:cold|hot|warm|dark|late|early|sunny|windy|rainy|raining|snowing|midnight|noon|time|spring"
    r"|summer|autumn|winter|\d+ (?:km|kilomet|mile|minute|hour|day|year)\w* (?:to|from|since)\b)"
    r"|^It(?:, [^,]*,)? (?:is|was|has been|can be|may be) (?:\w+ly |also |often |not |now "
    r"|well )*(?:said|known|believed|thought|considered|estimated|reported|possible|clear|unclear"
    r"|important|worth|true|false|common|difficult|hard|easy|unknown|likely|unlikely)\b.*\b(?:that|to"
    r"|how|whether|when)\b"
)
_SUBJECT = regex(rf"(?:The (?:[^\W\d_][\w'’-]*\s+){{0,3}}[^\W\d_][\w'’-]*|{NAME.pattern})")
_NO_SUBJECT = frozenset(
    "There This That These Those Both One Many Some All Each Most They We You I Yes No".split()
)
_OF_PEOPLE = regex(
    r"\b(?:born|died|married|wrote|(?:his|her) (?:husband|wife|father|mother|son|daughter|brother"
    r"|sister)|(?<!was )(?<!is )(?:composed|directed|founded|invented|discovered|designed|painted"
    r"|created|studied|taught|said|believed|climbed|scored|sang|starred|refused|graduated|worked"
    r"|served)|(?:is|was|became) an? (?:[\w-]+ ){0,3}(?:\w+(?:ist|or|er|ian|ess)|poet|king|queen"
    r"|chef|president))\b"
)
_INTRODUCED = regex(
    r"^\S+ [^,]*?\b(?:(?:is|was) (?:an?|one of)\b|(?:is|was) [A-Z]\w+\.$|was born\b)"
)
_NO_PERSON = regex(
    r"\b(?:University|College|School|Institute|Club|City|United|States|Army|Party|Company|Bank|Award|Series|League)\b"
)
_PERSON = regex(r"(?!The )[^\d]+ [^\d]+|[^\d\s]+[^s\d\W]")  # not "Super Bowl 50", "Normans"
_TIME = regex(
    r"It (?:is|was|became)(?: also)? (?:the|an?|one"
    r" of)\b[^,]*?\b(season|year|time|edition|day|game|match|episode|election)s?\b"
)
_RELATED = regex(
    r"\b(?:married|husband|wife|father|mother|son|daughter|brother|sister|friend|colleague|partner)\b"
)
_INSIDE = regex(r"(?<=[\w,] )[^\W\d_a-z][\w.'’-]{0,40}")
_CROWD = 20  # with this many people, "he" is ambiguous
_NO_THING = regex(  # subjects to which "it" does not refer
    r"The (?:(?:\w+ )?(?:result|reason|answer|following|passages?|context|text|fact|idea|way|one)"
    r"|main|primary|first|second|third|last|next|other|same|\w+(?:an|ese|ish))"
)


def resolve(claims: Sequence[Claim], response: Response) -> list[Claim]:
    """Replace the pronoun at the beginning of each claim ("He", "Her father", "It") by a name.

    "Her father was a judge." → "Marie Curie's father was a judge."

    * If the question has a title, the name is this title.
    * Without a title, "he", "she", "his" and "her" mean the only person that the response names.
    * Without a title, "it" means the subject of the previous sentence, or the name in the question.

    Ambiguous pronouns are not replaced, for example after another person was introduced.
    """
    topic = "" if is_unclear(response) else topic_of(response)
    mentioned, sentence, resolved = _Mentioned(response, topic), None, []
    for claim in claims:
        named = mentioned.name(claim)
        if claim.sentence != sentence and not _PRONOUN.match(claim.text):
            mentioned.observe(claim.text)
        sentence = claim.sentence
        resolved.append(named)
    return resolved


class _Mentioned:
    """Track the people and things that a response has mentioned so far."""

    def __init__(self, response: Response, topic: str) -> None:
        self.text, self.question, self.topic = response.text, response.question.text, topic
        self.thing = self.question_thing = topic if is_thing(response) else ""
        self.titled = bool(response.question.title)
        self.topic_seen = False  # whether the topic was the subject of a sentence
        self.human = False  # whether the topic is a person
        self.own = ""  # the longest name of the topic so far
        self.turned = False  # whether the last subject was not the topic
        self.other = False  # whether the response introduced another person after the topic
        self.gender: dict[str, str] = {}  # name → gender of its first pronoun
        self.relative: int | None = None  # the last sentence that names a relative of the person
        article = topic and re.search(rf"(?i)\bthe {re.escape(topic)}", self.question)
        # at most `_CROWD` names
        self.people = [topic] if not self.titled and " " in topic and not article else []

    @property
    def person(self) -> str:
        """The name of the person that "he" and "she" refer to; "" if it is ambiguous."""
        if self.titled and (self.human or not self.people):
            return self.topic if self.human or _PERSON.fullmatch(self.topic) else ""
        if len(self.people) > 1 or (self.titled and self.topic_seen):
            return ""
        name = (self.people or [self.topic])[0]
        human = self.human or (_PERSON.fullmatch(name) and not _NO_PERSON.search(name))
        return name if human else ""

    def name(self, claim: Claim) -> Claim:
        """Return a claim with its pronoun replaced, or unchanged if the referent is ambiguous.

        A name that has replaced "he" never replaces "she", and vice versa. After a sentence that
        names a relative ("her brother"), "he" may be this relative. Then "he" is replaced only
        if an earlier "he" was replaced, and by the same name.
        """
        pronoun, relative = _PRONOUN.match(claim.text), self.relative
        names = (re.sub(r"['’]s$", "", name) for name in NAME.findall(claim.text))
        if _RELATED.search(claim.text) and any(
            not _same(name, self.person or name) for name in names
        ):
            self.relative = claim.sentence
        if not pronoun or _EXPLETIVE.match(claim.text):
            return claim
        rest, thing = claim.text[pronoun.end() :], pronoun[0].startswith("It")
        noun = self.thing if thing else "" if self.other else self.person
        gender = "f" if pronoun[0] in ("She", "Her") else "m"
        unsure = relative not in (None, claim.sentence) and noun not in self.gender
        if (
            not noun
            or rest.startswith(("'", "’"))
            or (thing and self.titled and self.turned)
            # in "He heard of Ana's prize", "he" is not Ana
            or (not self.titled and re.search(rf"\b{re.escape(noun)}\b", claim.text))
            # "It was the best season" does not refer to a team
            or (thing and (time := _TIME.match(claim.text)) and time[1] not in noun.lower())
            or (not thing and (unsure or self.gender.setdefault(noun, gender) != gender))
        ):
            return claim
        return replace(claim, text=f"{noun}{'' if pronoun[1] else chr(39) + 's'}{rest}")

    def observe(self, claim: str) -> None:
        """Record the subject of a sentence; `claim` is the first claim of the sentence."""
        subject, human = _subject(claim), bool(_OF_PEOPLE.search(claim))
        own = _same(subject, self.topic) and (not self.own or _same(subject, self.own))
        if own and len(subject) > len(self.own):
            self.own = subject
        if self.titled and self.topic_seen and subject:
            turned = not own and self._is_name(subject) and bool(_INTRODUCED.search(claim))
            self.other = turned or (self.other and not own)
        self.topic_seen = self.topic_seen or own
        self.turned = not own and bool(self.topic_seen or subject)
        if not self.titled:
            other = subject and not own and not human
            self.thing = self._it(subject, claim) if other else self.question_thing
        if human and own:
            self.human = True
        named = human and not subject.startswith("The ") and len(self.people) < _CROWD
        if named and ((own and not self.titled) or (not own and self._is_name(subject))):
            others = [name for name in self.people if not _same(name, subject)]
            same = [name for name in self.people if name not in others]
            self.people = [*others, max([subject, *same], key=len)]

    def _it(self, subject: str, claim: str) -> str:
        """Return the referent of "it" after a sentence whose `subject` is not the topic, or ""."""
        if subject.startswith("The "):
            if _NO_THING.fullmatch(subject):
                return ""
            words = {*self.question.lower().strip("?.! ").split()}
            in_question = words.issuperset(subject.lower().split()[1:])
            return subject if in_question or not self.topic_seen else ""
        if not self.topic:
            return subject
        shared = set(self.topic.lower().split()) & set(re.findall(r"\w+", claim.lower()))
        return self.question_thing if shared else ""

    def _is_name(self, subject: str) -> bool:
        """Whether the subject is a name, not a word with a capital at the start of a sentence."""
        return " " in subject or subject in self._inside

    @cached_property
    def _inside(self) -> frozenset[str]:
        """The capitalised words that do not begin a sentence; for "Curie's", also "Curie"."""
        words = (match[0] for match in _INSIDE.finditer(self.text))
        return frozenset(word[: part.end()] for word in words for part in re.finditer(r"\w+", word))


def _same(first: str, second: str) -> bool:
    """Whether one of two names contains the other, as "Marie Curie" contains "Curie"."""
    a, b = (set(name.lower().split()) - {"the"} for name in (first, second))
    return bool(a and b) and (a <= b or b <= a)


def _subject(claim: str) -> str:
    """Return the text before the first verb if it is a name or "The" with a few words, else ""."""
    tokens = list(TOKEN.finditer(claim))
    verb = first_verb([token[0] for token in tokens])
    phrase = claim[: tokens[verb].start()].strip() if verb else ""
    return phrase if _SUBJECT.fullmatch(phrase) and phrase.split()[0] not in _NO_SUBJECT else ""
