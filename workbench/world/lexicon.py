"""The words of the closed world: invented names, words for values, and a second language.

Proper names are the same in both languages. Common nouns have an invented translation.
"""

import random
from collections.abc import Sequence

PROFESSIONS = (
    "painter chemist pilot banker baker surgeon lawyer farmer poet sculptor dancer miner tailor"
    " brewer jeweler barber botanist carpenter diplomat gardener historian journalist librarian"
    " mechanic novelist notary pharmacist philosopher potter sailor translator zoologist"
).split()
INDUSTRIES = (
    "glass steel paper timber textiles shipping printing mining banking brewing ceramics chemicals"
).split()
FIELDS = (
    "physics music medicine poetry geology drawing botany history theatre mathematics sailing"
    " farming".split()
)
GENRES = (
    "mystery fantasy romance satire tragedy comedy memoir thriller fable drama horror western"
).split()
BOOK_ADJECTIVES = (
    "Silent Golden Broken Hidden Distant Crimson Frozen Gentle Hollow Lonely Narrow Restless Secret"
    " Velvet Wild Bitter"
).split()
BOOK_NOUNS = (
    "Harbor Garden Mirror Forest Lantern Bridge Winter Orchard Tower Meadow Compass River Letter"
    " Shadow Window Voyage"
).split()
MONTHS = (
    "January February March April May June July August September October November December".split()
)
POPULATIONS = [str(thousand) for thousand in range(110, 910, 20)]
YEARS = [str(year) for year in range(1840, 1980)]
BIRTH_YEARS = [str(year) for year in range(1900, 1960)]
DAYS = [str(day) for day in range(1, 29)]

TYPES = {  # last words of names, by kind of entity
    "company": ("Works", "Motors", "Foods", "Labs"),
    "university": ("University", "Institute", "College"),
    "award": ("Medal", "Prize", "Award"),
}

# existing words that the syllables could form
AVOID = "super loser nazi bitch tits nipple penis rapes tramp drone brute".split()


def book_titles() -> list[str]:
    """Return the titles of all books that a world may have."""
    return [f"The {adjective} {noun}" for adjective in BOOK_ADJECTIVES for noun in BOOK_NOUNS]


_ONSETS = "b d f g k l m n p r s t v z br dr gr kr tr st".split()
_VOWELS = "a e i o u".split()
_CODAS = ["", "", "", "l", "n", "r", "s", "m"]
_L2_ONSETS = "h j k l m n p t w x zh ch".split()
_L2_VOWELS = "a e i o u ai oa ui".split()


def invented(
    rng: random.Random, count: int, taken: set[str], ending: Sequence[str] = ("",)
) -> list[str]:
    """Invent `count` new capitalised names, and add them in lower case to `taken`.

    Args:
        taken: words in lower case that must not be returned.
        ending: last syllables, of which each name gets one at random.
    """
    names: list[str] = []
    while len(names) < count:
        parts = [rng.choice(part) for part in (*[_ONSETS, _VOWELS] * 2, _CODAS, ending)]
        name = "".join(parts).capitalize()
        if name.lower() not in taken and 4 <= len(name) <= 9:
            taken.add(name.lower())
            names.append(name)
    return names


def l2_words(rng: random.Random, words: Sequence[str], taken: set[str]) -> dict[str, str]:
    """Return English word -> invented word of the second language.

    The new words are also added to `taken`.

    Args:
        words: the English words.
        taken: words that must not be used.
    """
    lexicon: dict[str, str] = {}
    for word in words:
        while True:
            parts = (*[_L2_ONSETS, _L2_VOWELS] * 2, "kxw")
            new = "".join([rng.choice(part) for part in parts])
            if new not in taken:
                break
        taken.add(new)
        lexicon[word] = new
    return lexicon
