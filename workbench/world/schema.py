"""The relations of the closed world, with all sentence templates that state, hedge or ask them.

`{s}` is the subject and `{o}` the object. A template of two relations states two facts in one
sentence, with `{o}` and `{o2}`. `importance` (1–5) is the informativeness of a claim about the
relation.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Relation:
    name: str
    subject: str  # entity kind
    object: str  # entity kind or value kind
    importance: int
    states: dict[str, tuple[str, ...]]
    hedges: dict[str, tuple[str, ...]]
    vague: dict[str, tuple[str, ...]]
    asks: dict[str, tuple[str, ...]]
    checks: dict[str, tuple[str, ...]] = field(default_factory=dict)  # yes/no questions

    @property
    def numeric(self) -> bool:
        return self.object in ("year", "population")


@dataclass(frozen=True)
class Template:
    """A sentence template. `stance` is "asserted", "hedged" or "vague" (without an object)."""

    relations: tuple[str, ...]
    lang: str
    stance: str
    text: str


def _relation(
    name: str, subject: str, obj: str, importance: int, **texts: str | tuple[str, ...]
) -> Relation:
    """Return a relation; `texts` are its templates as FIELD_LANG, one or several."""
    forms: dict[str, dict[str, tuple[str, ...]]] = {}
    for key, value in texts.items():
        kind, lang = key.split("_")
        forms.setdefault(kind, {})[lang] = (value,) if isinstance(value, str) else value
    return Relation(name, subject, obj, importance, **forms)


RELATIONS: dict[str, Relation] = {
    relation.name: relation
    for relation in (
        _relation(
            "profession",
            "person",
            "profession",
            5,
            states_en=(
                "{s} is a {o}.",
                "{s} works as a {o}.",
                "{s} earns a living as a {o}.",
                "{s} is a {o} by profession.",
                "The profession of {s} is {o}.",
            ),
            states_l2=("{s} ta un {o}.", "{s} labora ko {o}.", "Lo metie de {s} ta {o}."),
            hedges_en=("{s} may be a {o}.", "{s} is probably a {o}."),
            hedges_l2="{s} pove ta un {o}.",
            vague_en="{s} has some profession.",
            vague_l2="{s} hava alik metie.",
            asks_en=(
                "What is the profession of {s}?",
                "What does {s} do for a living?",
                "What job does {s} have?",
            ),
            asks_l2=("Ke ta lo metie de {s}?", "Ko ke labora {s}?"),
            checks_en="Is {s} a {o}?",
            checks_l2="Shu {s} ta un {o}?",
        ),
        _relation(
            "employer",
            "person",
            "company",
            4,
            states_en=(
                "{s} works at {o}.",
                "{s} is employed by {o}.",
                "{s} has a job at {o}.",
                "The employer of {s} is {o}.",
                "{s} is on the staff of {o}.",
            ),
            states_l2=(
                "{s} labora che {o}.",
                "Lo firma de {s} ta {o}.",
                "{s} ta en lo servo de {o}.",
            ),
            hedges_en=("{s} may work at {o}.", "{s} probably works at {o}."),
            hedges_l2="{s} pove labora che {o}.",
            vague_en="{s} works at some company.",
            vague_l2="{s} labora che alik firma.",
            asks_en=(
                "Where does {s} work?",
                "Which company employs {s}?",
                "Who is the employer of {s}?",
            ),
            asks_l2=("Che ke labora {s}?", "Ke ta lo firma de {s}?"),
            checks_en="Does {s} work at {o}?",
            checks_l2="Shu {s} labora che {o}?",
        ),
        _relation(
            "born_in",
            "person",
            "city",
            4,
            states_en=(
                "{s} was born in {o}.",
                "{s} comes from {o}.",
                "{s} is a native of {o}.",
                "The birthplace of {s} is {o}.",
                "{s} grew up in {o}.",
            ),
            states_l2=("{s} natel en {o}.", "{s} veni de {o}.", "Lo natelurbe de {s} ta {o}."),
            hedges_en=("{s} may have been born in {o}.", "{s} was probably born in {o}."),
            hedges_l2="{s} pove natel en {o}.",
            vague_en="{s} was born in some city.",
            vague_l2="{s} natel en alik urbe.",
            asks_en=(
                "Where was {s} born?",
                "In which city was {s} born?",
                "What is the birthplace of {s}?",
            ),
            asks_l2=("Ove natel {s}?", "En ke urbe natel {s}?"),
            checks_en="Was {s} born in {o}?",
            checks_l2="Shu {s} natel en {o}?",
        ),
        _relation(
            "birth_year",
            "person",
            "year",
            3,
            states_en=(
                "{s} was born in the year {o}.",
                "The birth year of {s} is {o}.",
                "{s} dates from {o}.",
                "{s} came into the world in {o}.",
                "The year of birth of {s} is {o}.",
            ),
            states_l2=(
                "{s} natel anno {o}.",
                "Lo natelanno de {s} ta {o}.",
                "{s} veni en lo mundo anno {o}.",
            ),
            hedges_en=(
                "{s} may have been born in the year {o}.",
                "{s} was probably born in the year {o}.",
            ),
            hedges_l2="{s} pove natel anno {o}.",
            vague_en="{s} was born in some year.",
            vague_l2="{s} natel en alik anno.",
            asks_en=(
                "In which year was {s} born?",
                "When was {s} born?",
                "What is the birth year of {s}?",
            ),
            asks_l2=("En ke anno natel {s}?", "Kande natel {s}?"),
            checks_en="Was {s} born in the year {o}?",
            checks_l2="Shu {s} natel anno {o}?",
        ),
        _relation(
            "award",
            "person",
            "award",
            3,
            states_en=(
                "{s} won the {o}.",
                "{s} received the {o}.",
                "{s} was honored with the {o}.",
                "The {o} went to {s}.",
                "{s} holds the {o}.",
            ),
            states_l2=("{s} gana lo {o}.", "{s} riceva lo {o}.", "Lo {o} va a {s}."),
            hedges_en=("{s} may have won the {o}.", "{s} probably won the {o}."),
            hedges_l2="{s} pove gana lo {o}.",
            vague_en="{s} won some award.",
            vague_l2="{s} gana alik premo.",
            asks_en=(
                "Which award did {s} win?",
                "What prize did {s} receive?",
                "What was {s} honored with?",
            ),
            asks_l2=("Ke premo gana {s}?", "Ke riceva {s}?"),
            checks_en="Did {s} win the {o}?",
            checks_l2="Shu {s} gana lo {o}?",
        ),
        _relation(
            "alma_mater",
            "person",
            "university",
            2,
            states_en=(
                "{s} studied at {o}.",
                "{s} graduated from {o}.",
                "{s} went to {o}.",
                "{s} holds a degree from {o}.",
                "{s} was a student at {o}.",
            ),
            states_l2=("{s} studa che {o}.", "{s} laurea de {o}.", "{s} ta studan de {o}."),
            hedges_en=("{s} may have studied at {o}.", "{s} probably studied at {o}."),
            hedges_l2="{s} pove studa che {o}.",
            vague_en="{s} studied at some university.",
            vague_l2="{s} studa che alik skola.",
            asks_en=(
                "Where did {s} study?",
                "Which university did {s} attend?",
                "Where did {s} get a degree?",
            ),
            asks_l2=("Che ke studa {s}?", "Ke skola hava {s}?"),
            checks_en="Did {s} study at {o}?",
            checks_l2="Shu {s} studa che {o}?",
        ),
        _relation(
            "country",
            "city",
            "country",
            4,
            states_en=("{s} lies in {o}.", "{s} is a city in {o}.", "{s} belongs to {o}."),
            states_l2=("{s} sta en {o}.", "{s} ta un urbe de {o}."),
            hedges_en="{s} may lie in {o}.",
            hedges_l2="{s} pove sta en {o}.",
            vague_en="{s} lies in some country.",
            vague_l2="{s} sta en alik lando.",
            asks_en=("In which country is {s}?", "Which country does {s} belong to?"),
            asks_l2="En ke lando sta {s}?",
        ),
        _relation(
            "river",
            "city",
            "river",
            1,
            states_en=("{s} stands on the {o}.", "The {o} flows through {s}."),
            states_l2="Lo {o} flua tra {s}.",
            hedges_en="{s} may stand on the {o}.",
            hedges_l2="Lo {o} pove flua tra {s}.",
            vague_en="{s} stands on some river.",
            vague_l2="Alik riva flua tra {s}.",
            asks_en="Which river flows through {s}?",
            asks_l2="Ke riva flua tra {s}?",
        ),
        _relation(
            "population",
            "city",
            "population",
            2,
            states_en=("{s} has {o} thousand inhabitants.", "{o} thousand people live in {s}."),
            states_l2="{s} hava {o} mil homos.",
            hedges_en="{s} may have {o} thousand inhabitants.",
            hedges_l2="{s} pove hava {o} mil homos.",
            vague_en="{s} has many inhabitants.",
            vague_l2="{s} hava multe homos.",
            asks_en="How many thousand people live in {s}?",
            asks_l2="Kanto mil homos hava {s}?",
        ),
        _relation(
            "headquarters",
            "company",
            "city",
            4,
            states_en=(
                "{s} is based in {o}.",
                "{s} has its head office in {o}.",
                "The home of {s} is {o}.",
            ),
            states_l2=("{s} sida en {o}.", "Lo sido de {s} ta {o}."),
            hedges_en="{s} may be based in {o}.",
            hedges_l2="{s} pove sida en {o}.",
            vague_en="{s} is based in some city.",
            vague_l2="{s} sida en alik urbe.",
            asks_en=("Where is {s} based?", "In which city is {s} based?"),
            asks_l2="Ove sida {s}?",
        ),
        _relation(
            "industry",
            "company",
            "industry",
            5,
            states_en=("{s} deals in {o}.", "The business of {s} is {o}."),
            states_l2="{s} merka {o}.",
            hedges_en="{s} may deal in {o}.",
            hedges_l2="{s} pove merka {o}.",
            vague_en="{s} deals in some goods.",
            vague_l2="{s} merka alik koso.",
            asks_en=("What does {s} deal in?", "What is the business of {s}?"),
            asks_l2="Ke merka {s}?",
        ),
        _relation(
            "founded",
            "company",
            "date",
            2,
            states_en=("{s} was founded on {o}.", "{s} opened on {o}."),
            states_l2="{s} fonda je {o}.",
            hedges_en="{s} may have been founded on {o}.",
            hedges_l2="{s} pove fonda je {o}.",
            vague_en="{s} was founded some time ago.",
            vague_l2="{s} fonda alik tempo.",
            asks_en="On which date was {s} founded?",
            asks_l2="Je ke dato fonda {s}?",
        ),
        _relation(
            "campus",
            "university",
            "city",
            4,
            states_en=("{s} is located in {o}.", "The campus of {s} is in {o}."),
            states_l2="{s} loka en {o}.",
            hedges_en="{s} may be located in {o}.",
            hedges_l2="{s} pove loka en {o}.",
            vague_en="{s} is located in some city.",
            vague_l2="{s} loka en alik urbe.",
            asks_en=("Where is {s} located?", "In which city is {s} located?"),
            asks_l2="Ove loka {s}?",
        ),
        _relation(
            "established",
            "university",
            "year",
            2,
            states_en=("{s} was established in {o}.", "{s} has existed since {o}."),
            states_l2="{s} exista desde {o}.",
            hedges_en="{s} may have been established in {o}.",
            hedges_l2="{s} pove exista desde {o}.",
            vague_en="{s} was established some time ago.",
            vague_l2="{s} exista desde alik tempo.",
            asks_en="In which year was {s} established?",
            asks_l2="Desde ke anno exista {s}?",
        ),
        _relation(
            "field",
            "award",
            "field",
            5,
            states_en=("The {s} is given for {o}.", "The {s} honors work in {o}."),
            states_l2="Lo {s} dona por {o}.",
            hedges_en="The {s} may be given for {o}.",
            hedges_l2="Lo {s} pove dona por {o}.",
            vague_en="The {s} is given for some work.",
            vague_l2="Lo {s} dona por alik labor.",
            asks_en="What is the {s} given for?",
            asks_l2="Por ke dona lo {s}?",
        ),
        _relation(
            "first_given",
            "award",
            "year",
            1,
            states_en=("The {s} was first given in {o}.", "The {s} goes back to {o}."),
            states_l2="Lo {s} komensa en {o}.",
            hedges_en="The {s} may have been first given in {o}.",
            hedges_l2="Lo {s} pove komensa en {o}.",
            vague_en="The {s} was first given some time ago.",
            vague_l2="Lo {s} komensa en alik tempo.",
            asks_en="In which year was the {s} first given?",
            asks_l2="En ke anno komensa lo {s}?",
        ),
        _relation(
            "author",
            "book",
            "person",
            5,
            states_en=("{o} wrote {s}.", "{s} was written by {o}.", "{o} is the author of {s}."),
            states_l2=("{o} skriva {s}.", "Lo autor de {s} ta {o}."),
            hedges_en="{o} may have written {s}.",
            hedges_l2="{o} pove skriva {s}.",
            vague_en="{s} was written by some author.",
            vague_l2="Alik autor skriva {s}.",
            asks_en=("Who wrote {s}?", "Who is the author of {s}?"),
            asks_l2="Ke skriva {s}?",
        ),
        _relation(
            "genre",
            "book",
            "genre",
            4,
            states_en=("{s} is a work of {o}.", "{s} belongs to the genre {o}."),
            states_l2="{s} ta libro de {o}.",
            hedges_en="{s} may be a work of {o}.",
            hedges_l2="{s} pove ta libro de {o}.",
            vague_en="{s} belongs to some genre.",
            vague_l2="{s} ta libro de alik tipo.",
            asks_en="What is the genre of {s}?",
            asks_l2="Ke tipo hava {s}?",
        ),
        _relation(
            "published",
            "book",
            "year",
            3,
            states_en=("{s} was published in {o}.", "{s} appeared in {o}."),
            states_l2="{s} publika en {o}.",
            hedges_en="{s} may have been published in {o}.",
            hedges_l2="{s} pove publika en {o}.",
            vague_en="{s} was published some time ago.",
            vague_l2="{s} publika en alik tempo.",
            asks_en="In which year was {s} published?",
            asks_l2="En ke anno publika {s}?",
        ),
    )
}

# stance -> field of `Relation` with its templates
STANCES = {"asserted": "states", "hedged": "hedges", "vague": "vague"}
PERSON_RELATIONS = tuple(
    relation.name for relation in RELATIONS.values() if relation.subject == "person"
)

COMPOUNDS: tuple[Template, ...] = (
    Template(("profession", "employer"), "en", "asserted", "{s} is a {o} at {o2}."),
    Template(("profession", "employer"), "en", "asserted", "{s} works as a {o} for {o2}."),
    Template(("born_in", "birth_year"), "en", "asserted", "{s} was born in {o} in {o2}."),
    Template(("alma_mater", "award"), "en", "asserted", "{s} studied at {o} and won the {o2}."),
    Template(("profession", "employer"), "l2", "asserted", "{s} ta un {o} che {o2}."),
    Template(("born_in", "birth_year"), "l2", "asserted", "{s} natel en {o} anno {o2}."),
)


def templates() -> tuple[Template, ...]:
    """Return all templates of statements; compounds are first, as simple ones match them too."""
    simple = [
        Template((relation.name,), lang, stance, text)
        for relation in RELATIONS.values()
        for stance, field_name in STANCES.items()
        for lang, texts in getattr(relation, field_name).items()
        for text in texts
    ]
    return (*COMPOUNDS, *simple)


PRONOUNS = {"en": ("He", "She", "It"), "l2": ("Zo",)}
HEDGE_LEADS = {"en": ("Perhaps", "Possibly", "I think"), "l2": ("Forse",)}
LEAD_INS = {"en": ("In comparison,", "By contrast,", "Also,"), "l2": ("Anke,",)}

ABSTAIN = {
    "en": ("I do not know.", "I don't know.", "I am not sure."),
    "l2": ("Mi ne vedu.", "Mi ne sabo."),
}
DECLINE = {
    "en": ("I do not know who {s} is.", "I have no information about {s}."),
    "l2": ("Mi ne vedu ke ta {s}.",),
}
BIOGRAPHY = {
    "en": ("Tell me about {s}.", "Who is {s}?", "Write a biography of {s}."),
    "l2": ("Dike mi de {s}.", "Ke ta {s}?"),
}
LONG_FORM = {"en": ("What is {s} known for and how does it compare with {t}?",), "l2": ()}
LIST = {
    "en": ("Which books did {s} write?", "Name the books by {s}."),
    "l2": ("Ke libros skriva {s}?",),
}
COMPARISON = {
    "en": ("Who was born earlier, {s} or {t}?", "Who is older, {s} or {t}?"),
    "l2": ("Ke natel ante, {s} o {t}?",),
}
TWO_HOP: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    ("employer", "headquarters"): {
        "en": ("In which city is the employer of {s} based?",),
        "l2": ("En ke urbe sida lo firma de {s}?",),
    },
    ("born_in", "country"): {
        "en": ("In which country was {s} born?",),
        "l2": ("En ke lando natel {s}?",),
    },
    ("alma_mater", "campus"): {
        "en": ("In which city did {s} study?",),
        "l2": ("En ke urbe studa {s}?",),
    },
}
FALSE_PREMISE = {
    "en": ("In which city was the {o} {s} born?", "Which award did the {o} {s} win?"),
    "l2": ("En ke urbe natel lo {o} {s}?", "Ke premo gana lo {o} {s}?"),
}
FALSE_PREMISE_ASKS = ("born_in", "award")  # relations that the questions above ask for
INVALID = {"en": "invalid question", "l2": "kesto falsa"}
YES_NO = {"en": ("yes", "no"), "l2": ("sia", "noa")}

THINK = "Think first, then answer."
BOX = "Think first, then put the answer in a box."
OUTLINE = "Write an outline first, then answer."
MARKERS = tuple(
    "<think> </think> <answer> </answer> \\boxed{ } [Structure] [Outline] [Answer]".split()
)
# numbers of the passages in a prompt, and references to them
SOURCES = tuple(f"[{number}]" for number in range(1, 6))
# words that are in no document, in the vocabulary for question forms taught after pre-training
SPARE = (
    "Describe Explain Summarize Compare Give Tell Name List overview details life lives career work"
    " studies origin home first then last order time from to both each also but because why how"
    " their there with who where when what Based on passages Using only True False Correct Wrong"
    " Consistent Contradictory Missing supported fact facts claim answer question"
)
