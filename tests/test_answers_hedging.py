"""The hedging detector: hedged sentences, and sentences that only look hedged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.text.hedging import hedge, is_hedged
from workbench.world import schema

HEDGED = """
He may have been born in Vetra.
She might be a painter.
It may, however, be older.
Toma was probably born in Vetra.
Perhaps Toma Ardel is a painter.
I think he was born in Vetra.
I believe that she won it.
I'm not sure, but it is Paris.
I’m not entirely sure, but it is Paris.
He reportedly left in 1912.
It is possible that he won.
She is believed to have won the prize.
Possibly a painter.
It is most likely Vetra.
He appears to be a painter.
It could be Paris.
As far as I know, he lives in Vetra.
Allegedly, he sold it.
HE MAY HAVE WON.
据说他出生于北京。
他可能是画家。
也许是北京。
Quizás nació en Vetra.
Probablemente es pintor.
Creo que nació en Madrid.
Puede que sea pintor.
Vielleicht ist er Maler.
Er wurde wahrscheinlich in Bonn geboren.
Ich glaube, er ist Maler.
Er dürfte Maler sein.
Il est peut-être peintre.
Je crois qu'il est peintre.
Il semble être peintre.
Il serait né à Lyon.
Forse Toma ta un piktor.
Toma pove ta un piktor.
If memory serves, it was 1921.
I'm fairly sure it was Oslo.
It's my understanding that he was Danish.
There's a good chance it was Oslo.
I'm not 100% sure, but it's Oslo.
Parece que nació en Lima.
Meines Wissens war er Däne.
Soviel ich weiß, war er Däne.
Si je me souviens bien, c'est Lyon.
Sauf erreur, c'est Lyon.
It appears that he was Danish.
He will win the prize.
He won't win it.
She could have won.
He must have left.
He would not have stayed.
They are going to win.
The bridge is expected to open.
It is projected to grow.
""".strip().splitlines()

PLAIN = """
He was born in May 1912.
He was born on 5 may 1912.
Might and Magic is a game.
It is a game of might and magic.
The military might of Rome was great.
He fought with all his might.
She sings in the Maybe Man.
He directed Perhaps Love in 2005.
She thinks that it is late.
He wrote "I Think I Love You".
"I think it is late," she wrote.
May was born in Vetra.
He was the most likely candidate.
He believed in ghosts.
It was thought through.
Toma was born in Vetra.
In the end it was Paris.
Will Smith won.
He left a will in 1950.
He did it of his own free will.
She could speak five languages.
He would later become king.
She is going to school.
这是不可能的。
可能性很小是一本书。
Es war das Wohl des Volkes.
Sowohl er als auch sie sind Maler.
El creyó en Dios.
Elle pense à lui.
He seemed tired.
It appears in the film Alien.
Er fühlte sich wohl in Wien.
他的估计值是5。
Unknown Pleasures is the debut album of Joy Division.
""".strip().splitlines()


@pytest.mark.parametrize("sentence", HEDGED)
def test_hedged(sentence: str) -> None:
    cue = hedge(sentence)
    assert cue is not None and cue.casefold() in sentence.replace("’", "'").casefold()


def test_letters_without_a_single_lower_case_letter() -> None:
    assert hedge("İİİİİ: Perhaps he won.") == "Perhaps"  # "İ".lower() has two characters
    assert hedge("It was poſſibly İzmir.") == "poſſibly"
    assert hedge("ı think so.") == "ı think"


@pytest.mark.parametrize("sentence", [*PLAIN, "", "?"])
def test_plain(sentence: str) -> None:
    assert hedge(sentence) is None and not is_hedged(sentence)


@pytest.mark.parametrize(
    "template", [t for t in schema.templates() if t.stance == "hedged"], ids=lambda t: t.text
)
def test_hedged_templates_of_the_world_are_hedged(template: schema.Template) -> None:
    assert is_hedged(template.text.format(s="Toma Ardel", o="Vetra"))


@pytest.mark.parametrize(
    "template", [t for t in schema.templates() if t.stance == "asserted"], ids=lambda t: t.text
)
def test_asserted_templates_of_the_world_are_not_hedged(template: schema.Template) -> None:
    assert not is_hedged(template.text.format(s="Toma Ardel", o="Vetra", o2="1921"))


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_gives_a_boolean(text: str) -> None:
    assert is_hedged(text) in (True, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["scheint ", "soll ", "may ", "i'm not ", '"', "it is ", "x", "i would "]
)
def test_long_degenerate_texts_are_read(piece: str) -> None:
    """A backtracking pattern would not finish."""
    assert hedge(f"{piece * (100_000 // len(piece))} perhaps") is not None
