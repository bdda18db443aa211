r"""Whether the words beside the gold answer in its sentence could be another answer.

The rule is no list of the words that join guesses, which has no end, but one of the places where
a name is no guess. Beside the gold answer (the *mention*, a token that begins with `MENTION`),
every group of words that neither the question gives nor the grammar needs must have a role that
the form of the sentence gives it. Before the mention that is what leads to it by a verb and a
preposition ("Toma Ardel was born in …"), or by "is" from something with an article ("The capital
of Karsia is …"); behind it, what a preposition ("… is in Karsia"), an article ("…, the capital
of Karsia"), a verb ("… wrote Pride and Prejudice") or a relative pronoun hangs on it. Anything
else is a list: "Lyon maybe …", "Lyon is …", "… aka Lyon", "Lyon: …".

The limit: a statement that joins two names of which the question gives neither ("The Grebel
flows through Lomar") may answer for the one or the other, and what follows "in" and "of" is
taken for a place. Such a pair does not grow into a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from workbench.answers.text import CJK, MONTHS, Token

MENTION = "\0"

_TAGS = {  # of the words of grammar, by what they do
    "c": (
        "is are was were be been being am become becomes became remain remains remained has have"
        " had do does did can could may might must shall should will would born es fue era est ist"
        " war ta pove sera"
    ),
    "o": "in of at from during de en von",
    "p": (
        "on by for with as into near since until through about between under over within around"
        " after before upon across against du des aus bei che ko tra por je anno desde per sur"
    ),
    "t": "to",
    "d": (
        "his her its their my our your this these those el la los las le les der die das lo un una"
    ),
    "r": "who which that where when whose whom",
    "i": "it he she they we you i",
    "&": "and und et y e",
    "h": "probably maybe perhaps possibly likely presumably apparently reportedly forse",
    "f": (
        "now still only just merely best most first both also so currently officially originally"
        " definitely certainly surely clearly obviously undoubtedly really truly simply generally"
        " usually mainly mostly up"
    ),
    "n": "not never without except unlike ne nicht kein keine pas",
    ",": ",",
    ":": ":",
}
_TAG = {word: tag for tag, words in _TAGS.items() for word in words.split()}
COPULAS, DETERMINERS, HEDGES = (frozenset(_TAGS[tag].split()) - {"born"} for tag in "cdh")
_FILLERS = frozenset(_TAGS["f"].split())
# of `grammar`, but nouns like others here
_NOUNS = frozenset("year city town country genre".split())

# Patterns of what stands before a link, its words, and what stands behind it. M: the mention, m:
# one without a capital; N: a name; before a link W: words that end in a verb or begin with a name
# or an article, w: other words; behind one v: a past participle, s: what looks like a verb in the
# present, w: another word. d: an article; H: the subject of the link has one.
_LEADS = re.compile(
    r"H?(?:[NWw],d[wvs]|[NWw]&d?[Nwvs]"  # Toma, a painter; Pride and Prejudice
    # was born in; works at; holds a
    r"|[NWw],?[fh]*[cf][cfhopt]*[opt]d?[MmNwvs]|Wf*[opt]+d?[MmNwvs]|Wd[wvs]|No+d?[Nwvs]"
    # Toma, who lives; is native; maybe works
    r"|[NWw],?r(?:[rcihf]*[cihf]d?[wvs]|d?[vs])|[NWw]c[cfh]*d?[wvs]|[NWw]h+[vs])"
    # the capital of Karsia is; Toma is a; the painter
    r"|H[NWw](?::|,?c[cfh]*:?)d?[Mm]|H?[NWw]c[cfh]*dm|H?W,?d?DM"
)
_COMPLETES = re.compile(
    # wrote Pride; wrote the book; , the capital; and largest city
    r"M[vs]|Wd[Nwvs]|M,d[wvs]|[Ww]&d?[wvs]"
    # is in Karsia; with his wife; of work
    r"|[MmWw]c[cfhopt]*[opt]d?[MmNwvs]|[Mm](?:od?[Nwvs]|[opt]+d[wvs])|W[opt]+d?[MmNwvs]"
    # , which lies; , which is the capital
    r"|[MmNWw],?r(?:d?[vs]|[rcihfopt]*[ihfopt]d?[wvs]|[rcihfopt]*(?:dw|d?v|[opt]N))"
    r"|Mc[cfh]*d[wvs]|[Mm]c[cfh]*v|[MmNWw],?i[wvs]"  # is the capital; was founded; , I suppose
)
_TRAILS = re.compile(r"[Mm][opt][wvs]|Mc[cfh]*e")  # by profession; is older
_TITLE = re.compile(r"[NWw]&d?[Nwvs]")  # wrote Pride and Prejudice
_INTRODUCES = re.compile(  # according to the text, she was born in; in comparison, …
    r"[NWw][fh]*,[fh]*(?:[ix][xicfhopt]*d?[MmNwvs]|d?[Nwvs])|[Ww][fh]*,[fh]*d?[Mm]"
)

# What joins one name to the next and looks like a verb or a noun: "followed by", "an alternative
# to", "also known as".
JOINERS = frozenset(
    "another followed preceded along together instead rather next else otherwise then besides"
    " versus vs aka alias called named known meaning namely ie eg viz nee formerly previously"
    " alternatively additionally similarly equivalently second third prior close closely similar"
    " equivalent equal addition failing opposed compared combined coupled paired plus less minus"
    " lest unless whereas thus hence yes means equals same such mention always respectively"
    " sometimes option options alternative alternatives candidate candidates choice choices"
    " possibility possibilities contender backup runner considered guessed listed added vielleicht"
    " quizas probablemente posiblemente".split()
)
_PAST = (
    "wrote won made took gave led held ran fought met taught built found sang beat bore struck drew"
    " began became came went grew left knew wore spoke stood fell flew drove chose told sold"
    " written given run sung beaten drawn begun gone grown known worn spoken geboren nacio murio"
)
_PARTICIPLE = re.compile(rf"\w+ed|{'|'.join(_PAST.split())}")
_PRESENT = re.compile(r"\w+[a-z]s")

_CJKJOINERS = "可能|也许|或许|大概|或者|还是|以及|然后|否则|要不|又名|亦称|也叫|不然|另外|此外|再者|接着|即|和|与|及|跟|兼|或|也"
_CJK_LIST = re.compile(
    rf"(?![他她它是在于的年])[{CJK}a-z],*(?:{_CJKJOINERS})+是?{MENTION}|{MENTION}[^{CJK}]*(?:{_CJKJOINERS})+是?[{CJK}a-z]"
)


def is_mention(token: Token) -> bool:
    return token.text.startswith(MENTION)


def is_number(mention: Token) -> bool:
    """Whether a gold answer is a number or a date, so that only another number could stand in
    its place.
    """
    first, *rest = mention.text.removeprefix(MENTION).split()
    return bool(re.match(r"-?\d", first) or (first in MONTHS and rest and rest[0][0].isdigit()))


def leaves_rivals(sentence: Sequence[Token], grammar: Set[str], given: Set[str]) -> bool:
    """Whether a sentence with a mention has words that could be another answer.

    `grammar` are words that name nothing, `given` those of the question. What the sentence
    denies is free.
    """
    if is_number(next(filter(is_mention, sentence))):
        return any(_is_digits(token) and token.text not in given for token in sentence)
    texts = {
        token.text.removeprefix(MENTION)[0]
        for token in sentence
        if is_mention(token) or token.text not in grammar
    }
    if any(re.match(f"[{CJK}]", text) for text in texts) and not any(
        re.match(f"[^\\W{CJK}]", text) for text in texts
    ):
        return bool(
            _CJK_LIST.search(
                "".join(MENTION if is_mention(token) else token.text for token in sentence)
            )
        )
    items = list(_items(_plainly(sentence), grammar - _NOUNS, given))
    joined = any(token.text in JOINERS for item in items if not item.free for token in item.tokens)
    told = [item for item in items if not item.denied]
    return joined or sum(map(_predicates, told, told[1:])) > 1 or not all(_roles(told))


def _is_digits(token: Token) -> bool:
    return not is_mention(token) and bool(re.match(r"-?\d", token.text))


def _plainly(sentence: Sequence[Token]) -> list[Token]:
    """The sentence without numbers, and without the "older" of "older than": what comes behind
    that is denied.
    """
    kept: list[Token] = []
    article = False
    if _PARTICIPLE.fullmatch(sentence[0].text):  # "Written by …" is no name
        sentence = [sentence[0]._replace(name=False), *sentence[1:]]
    for token in sentence:
        article = article or token.article
        if token.text == "than" and kept and not (kept[-1].name or is_mention(kept[-1])):
            kept[-1] = token._replace(text="unlike")
        elif not _is_digits(token):
            kept.append(token._replace(article=article))
            article = article and token.text in _FILLERS  # "the best known …"
    return kept


class _Item(NamedTuple):
    """The mention, or a group of words that stand together, with the tags of the words of
    grammar before it. The question gives all words of a free one."""

    link: str
    tokens: tuple[Token, ...]
    free: bool
    acts: bool  # the question gives all but a verb at its end

    @property
    def mention(self) -> bool:
        return is_mention(self.tokens[0])

    @property
    def determined(self) -> bool:
        return self.link.endswith("d")

    @property
    def denied(self) -> bool:
        """Whether it is what the sentence says that it is not: "not Lomar but …", and no "if not
        Lomar" or "not only Lomar".
        """
        return not self.mention and bool(re.search(r"(?:^|[^xn])n[coptd]*$", self.link))

    @property
    def before(self) -> str:
        """Its tag where it stands before a link."""
        kind = _kind(self.tokens[-1])
        if kind in "MmN":
            return kind
        acts = (
            kind in "vs"
            or self.tokens[-1].text.endswith("ing")
            or re.search("c[fh]*$|[t&]$", self.link)
        )
        return "W" if acts or self.names or self.determined or self.free else "w"

    @property
    def behind(self) -> str:
        """Its tag where it stands behind a link; "an American astronaut" is no name."""
        first, last = _kind(self.tokens[0]), _kind(self.tokens[-1])
        return "w" if self.determined and first == "N" and last in "wvs" else first

    @property
    def names(self) -> int:
        """How many names stand in it, apart from each other."""
        return len(re.findall("N+", "".join(map(_kind, self.tokens))))


def _kind(token: Token) -> str:
    if is_mention(token):
        return "M" if token.name else "m"
    if token.name:
        return "N"
    return (
        "v" if _PARTICIPLE.fullmatch(token.text) else "s" if _PRESENT.fullmatch(token.text) else "w"
    )


def _items(sentence: Sequence[Token], grammar: Set[str], given: Set[str]) -> Iterator[_Item]:
    group: list[Token] = []
    link = ""
    for i, token in enumerate(sentence):
        inside = i > 0 and sentence[i - 1].text != ":"
        tag = "" if inside and token.name and token.text != "i" else _tag(token, grammar, given)
        if group and (tag or token.article or is_mention(token)):
            yield _item(link, group, given)
            group, link = [], ""
        if is_mention(token):
            yield _item(link, [token], given)
            link = ""
        elif tag:
            link += tag
        else:
            group.append(token)
    if group:
        yield _item(link, group, given)


def _item(link: str, tokens: Sequence[Token], given: Set[str]) -> _Item:
    article = "d" if tokens[0].article and not link.endswith("d") else ""
    own = [token for token in tokens if token.text not in given and not is_mention(token)]
    acts = len(own) == 1 and own[0] is tokens[-1] and _kind(own[0]) in "vs"
    return _Item(link + article, tuple(tokens), not own, acts)


def _tag(token: Token, grammar: Set[str], given: Set[str]) -> str:
    """What a word of grammar does, "x" if nothing that gives a role; "" for a word that is none."""
    if is_mention(token):
        return ""
    return _TAG.get(token.text) or (
        "x" if token.text in grammar and token.text not in given else ""
    )


def _roles(items: Sequence[_Item]) -> Iterator[bool]:
    """Whether each pair of neighbours stands in a relation that gives the one of them a role
    that is no answer's.
    """
    place = next(i for i, item in enumerate(items) if item.mention)
    # the first item of the clause, and how many commas came before it
    subject, clause = items[0], 0
    for i, (a, b) in enumerate(pairwise(items)):
        if a.free and b.free:
            yield True
        elif i < place:
            acted = (
                a.acts
                and b.mention
                and (len(a.tokens) > 1 or "i" in a.link or (i > 0 and items[i - 1].free))
            )
            yield _leads(a, b, subject, first=clause == 0) or (acted and b.link in ("", "d"))
        else:
            follows = i > place and not items[place + 1].link  # behind a verb: "wrote Pride and …"
            yield _completes(a, b, title=follows, last=i == len(items) - 2)
        if "," in b.link:
            subject, clause = b, clause + 1


def _predicates(a: _Item, b: _Item) -> bool:
    """Whether a main clause's verb stands between two neighbours; a sentence without commas has
    one.
    """
    acts = (a.names > 0 and _kind(a.tokens[-1]) in "vs") or (a.mention and not b.link)
    return not (a.free and b.free) and not re.search("[r,&i]", b.link) and ("c" in b.link or acts)


def _leads(a: _Item, b: _Item, subject: _Item, first: bool) -> bool:
    introduces = first and (
        re.fullmatch("[opt]d?", subject.link)
        or subject.tokens[0].text in ("according", "based", "given")
    )
    if introduces and (
        re.fullmatch("[opt]+d?", b.link) or _INTRODUCES.fullmatch(f"{a.before}{b.link}{b.behind}")
    ):
        return True
    titled = "D" if b.mention and a.determined and not b.link else ""
    return bool(_LEADS.fullmatch(f"{'H' * subject.determined}{a.before}{b.link}{titled}{b.behind}"))


def _completes(a: _Item, b: _Item, title: bool, last: bool) -> bool:
    word = b.tokens[0].text if last and len(b.tokens) == 1 else ""  # the last one, and alone
    pair = f"{a.before}{b.link}{'w' if word and b.behind == 's' else b.behind}"
    trails = last and _TRAILS.fullmatch(
        f"{a.before}{b.link}{'e' if word.endswith('er') else b.behind}"
    )
    return bool(_COMPLETES.fullmatch(pair) or trails or (title and _TITLE.fullmatch(pair))) and (
        b.names <= 1 or b.mention
    )
