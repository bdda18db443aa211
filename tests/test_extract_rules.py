"""Claims by rules, on sentences of our own and on biographies that people took apart."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.answers import sentences
from workbench.extract import rules
from workbench.extract.clauses import LONGEST, clauses
from workbench.extract.pronouns import resolve
from workbench.extract.shorter import spread
from workbench.types import Claim, Claims, Question, Response

TOPIC = "Toma Ardel"

DIVIDED = [
    ("He was born in Vetra in 1921.", ["Toma Ardel was born in Vetra.", "Toma Ardel was born in 1921."]),
    ("She studied law and won the Lomar Prize.", ["Toma Ardel studied law.", "Toma Ardel won the Lomar Prize."]),
    ("Toma Ardel was a painter, writer, and poet.",
     ["Toma Ardel was a painter.", "Toma Ardel was a writer.", "Toma Ardel was a poet."]),
    ("Toma Ardel is a painter and actor from Vetra.",
     ["Toma Ardel is a painter.", "Toma Ardel is an actor.", "Toma Ardel is from Vetra."]),
    ("Toma Ardel, a painter, lives in Vetra.", ["Toma Ardel is a painter.", "Toma Ardel lives in Vetra."]),
    ("He is a painter who won the Lomar Prize.", ["Toma Ardel is a painter.", "Toma Ardel won the Lomar Prize."]),
    ("In 1950, he left Vetra.", ["Toma Ardel left Vetra in 1950."]),
    ("However, he left.", ["Toma Ardel left."]),
    ("Yes, the Tarven bridge was opened in 1934.", ["The Tarven bridge was opened in 1934."]),
    ("No, he was born in Lomar.", ["Toma Ardel was born in Lomar."]),
    ("No bridge was opened.", ["No bridge was opened."]),
    ("He wrote several books, including The Door, The Hill and The Sea.",
     ["Toma Ardel wrote several books.", "Toma Ardel wrote The Door.", "Toma Ardel wrote The Hill.",
      "Toma Ardel wrote The Sea.", "The Door is a book.", "The Hill is a book.", "The Sea is a book."]),
    ("He worked as an actor and singer.", ["Toma Ardel worked as an actor.", "Toma Ardel worked as a singer."]),
    ("Toma Ardel (1920–1999) was an actor.",
     ["Toma Ardel was an actor.", "Toma Ardel was born in 1920.", "Toma Ardel died in 1999."]),
    ("He joined Lomar Labs, becoming its head.", ["Toma Ardel joined Lomar Labs.", "Toma Ardel became its head."]),
    ("His father was Bo Ardel, a baker.", ["Toma Ardel's father was Bo Ardel.", "Bo Ardel was a baker."]),
    ("He left Vetra and his wife stayed in Lomar.", ["Toma Ardel left Vetra.", "Toma Ardel's wife stayed in Lomar."]),
    ("He left Vetra, and his wife stayed in Lomar.", ["Toma Ardel left Vetra.", "Toma Ardel's wife stayed in Lomar."]),
    ("He had a long and happy life.", ["Toma Ardel had a long and happy life."]),
    ("He wrote \"Rain and Snow\" in 1950.", ["Toma Ardel wrote \"Rain and Snow\" in 1950."]),
    ("I think he was born in Vetra.", ["Toma Ardel was born in Vetra."]),
    ("Perhaps he may be a baker.", ["Toma Ardel may be a baker."]),
    ("He won.[1]", ["Toma Ardel won."]),
    ("It was built between 1887 and 1889.", ["Toma Ardel was built between 1887 and 1889."]),
    ("He wrote Pride and Prejudice.", ["Toma Ardel wrote Pride and Prejudice."]),
    ("He met Anna and Bob.", ["Toma Ardel met Anna.", "Toma Ardel met Bob."]),
    ("他是画家。", ["他是画家。"]),
    ("He is a Brazilian footballer from Lima, Peru.",
     ["Toma Ardel is Brazilian.", "Toma Ardel is a footballer.", "Toma Ardel is from Lima, Peru.", "Lima is in Peru."]),
    ("He appeared in films such as \"Rain\" (1950) and \"Snow\".",
     ["Toma Ardel appeared in films.", "Toma Ardel appeared in \"Rain\".", "Toma Ardel appeared in \"Snow\".",
      "\"Rain\" is a film.", "\"Snow\" is a film.", "\"Rain\" was released in 1950."]),
    ("Born in Osk in 1920, he moved to Vetra.",
     ["Toma Ardel moved to Vetra.", "Toma Ardel was born in Osk.", "Toma Ardel was born in 1920."]),
    ("In 1950, he won a prize in Osk.",
     ["Toma Ardel won a prize.", "Toma Ardel won a prize in Osk.", "Toma Ardel won a prize in 1950."]),
    ("He is the founder and director of the Lomar Bank.",
     ["Toma Ardel is the founder of the Lomar Bank.", "Toma Ardel is the director of the Lomar Bank."]),
    ("He won gold at the 1980 Games and, in 1984, he won silver.",
     ["Toma Ardel won gold at the 1980 Games.", "Toma Ardel won silver in 1984."]),
    ("He worked for papers, painting his house and eventually becoming a judge.",
     ["Toma Ardel worked for papers.", "Toma Ardel painted his house.", "Toma Ardel eventually became a judge."]),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "expected"), DIVIDED)
def test_clauses(sentence: str, expected: list[str]) -> None:
    response = Response("r", Question("q", "?", title=TOPIC), sentence)
    claims = [Claim(n, claim, sentence=0) for n, claim in enumerate(clauses(sentence))]
    assert [claim.text for claim in resolve(claims, response)] == expected


FAITHFUL = [  # a sentence, what must be among its claims, and words that no claim may have
    # examples are of the films and firms, not of the work
    ("He worked as an engineer for firms such as Google and Lomar Labs.", ["He worked as an engineer for Lomar Labs."],
     r"as (?:Google|Lomar)"),
    ("He also invented a number of devices, including a lamp and a clock.", ["He also invented a lamp."], r"number of a"),
    ("He received several awards for his films, including the Lomar Prize.",
     ["He received the Lomar Prize."], r"for the Lomar"),
    ("He went on to manage several clubs, including Osk United.", ["He went on to manage Osk United."], r"went on (?:to )?Osk"),
    # roles
    ("She was tried for treason in Osk and executed in 1900.", ["She was executed in 1900."], r"She executed"),
    ("The bank was bought by Lomar Group in 1990 and sold to Osk Holdings.",
     ["The bank was sold to Osk Holdings."], r"bank sold"),
    ("The house was built by Toma for Mira and painted by Bo.", ["The house was painted by Bo."], r"house painted"),
    ("She had been beaten and robbed.", ["She had been beaten and robbed."], r"She robbed|She was robbed"),
    ("Toma Ardel defeated Bo in 1950 and was defeated by Ana in 1960.", ["Toma Ardel was defeated by Ana."], r"defeated Ana"),
    ("She was sued by several people who claimed he had lied.", ["She was sued by several people who claimed he had lied."],
     r"(?:She|Several people) claimed"),
    ("The record was held by a sailor, Bo Bolt, who died in 1920.", ["Bo Bolt died in 1920."], r"record died"),
    ("She was the guardian of a boy named Bo Bolt, who is the heir.", ["Bo Bolt is the heir."], r"She is the heir"),
    ("Her father, Bo Bolt, was a baker and her mother, Ana Bolt, was a cook.",
     ["Her father was a baker.", "Her mother was a cook."],
     r"father was (?:a cook|her mother)|is her mother"),
    ("Toma Ardel is a major figure in Vetran society, known for his wit.",
     ["Toma Ardel was known for his wit."], r"society was"),
    ("He is a hero to others, who see him as a saint who freed Osk.", [], r"^He freed"),
    # names
    ("He worked at Marks and Spencer.", ["He worked at Marks and Spencer."], r"Marks\.|at Spencer"),
    ("She starred in Romeo and Juliet in 1950.", ["She starred in Romeo and Juliet."], r"in Romeo\.|in Juliet"),
    ("He was Minister of Agriculture, Fisheries and Food.",
     ["He was Minister of Agriculture, Fisheries and Food."], r"of Food|Fisheries\."),
    ("He was born in Anantnag, Jammu and Kashmir.", ["He was born in Anantnag, Jammu and Kashmir."], r"in (?:Jammu|Kashmir)\."),
    ("She studied at Eton College and Corpus College, Oxford.", ["She studied at Corpus College, Oxford."], r"at Oxford"),
    ("Its books include Door and Wall, Rain, and Snow.", ["Its books include Door and Wall."], r"include Wall"),
    ("She co-wrote What We Do in the Shadows.", ["She co-wrote What We Do in the Shadows."], r"in the Shadows$|We Do\."),
    ("She played in the 1988 and 1992 Summer Games.", [], r"the 1988\."),
    ("It is a show tune from the 1950 Bolt and Ardel musical Rain.", [], r"Bolt\.|Ardel musical Rain is|is Ardel"),
    # dates
    ("She was born in Osk on May 3, 1920, and passed away on June 4, 1990.",
     ["She was born on May 3, 1920.", "She passed away on June 4, 1990."], r"born on June"),
    ("He founded the lab in 1936, which became a bank.", ["The lab became a bank."], r"1936 became"),
    ("He played on until his death in 1990.", [], r"played (?:on )?in 1990"),
    ("He published the book written in 1920 by Ana Bo in 1950.", [], r"published (?:the book )?in 1920"),
    ("He lived in Osk until 1950, when Ana left.", [], r"lived until"),
    ("Toma and Mira had a son, Bo, born in 1950.", [], r"Mira was born"),
    ("He served as mayor of Osk from 1990 to 1994 and of Vetra from 1994 to 1998.", [], r"Osk from 1994"),
    ("He left in 1950, two years after his brother died.", [], r"left after"),
    ("He married Ana in 1950 and Mira in 1960.", ["He married Ana in 1950 and Mira in 1960."], r"Ana in 1960"),
    ("The four presidents were Ana Bo (1990–1994).", [], r"born"),
    ("He scored 10 and 12 goals in 1950 and 1951, respectively.", [], r"10 goals|12 goals in 1950\."),
    # denials, restrictions, conditions
    ("She did not win the prize in 1950 in Vetra.", ["She did not win the prize in 1950 in Vetra."], r"prize\."),
    ("He never lived in Paris or in Osk.", ["He never lived in Paris or in Osk."], r"Paris\."),
    ("She was the first woman to win the prize in Vetra.",
     ["She was the first woman to win the prize in Vetra."], r"woman\.|prize\."),
    ("He retired with the second-most goals in its history.", [], r"goals\."),
    ("If he had won, he would have left Osk and joined the army.", [], r"^He (?:joined|would)"),
    ("He would have won the race and left Osk.", ["He would have won the race and left Osk."], r"^He left"),
    ("It is not a dream but a plan that works.", ["It is not a dream but a plan that works."], r"dream\.|^A plan"),
    ("She left Osk in 1950 without her husband and her son.", [], r"her son\.$(?<!husband and her son\.)"),
    # what others say, and what may be so
    ("Mira said that Toma was guilty and fled to Osk.",
     ["Mira said that Toma was guilty and fled to Osk."], r"^Mira fled|^Toma"),
    ("Mira said Toma stole the ring and sold it.", ["Mira said Toma stole the ring and sold it."], r"Mira sold|^Toma"),
    ("According to Mira Bolt, Toma was a thief and lied.", [], r"^Mira Bolt|^Toma|^(?!According)"),
    ("He may have killed the king and burned the city.", [], r"^He burned"),
    ("He is said to have written the book and burned the city.", [], r"^He burned"),
    ("She allegedly stole the ring and sold it.", [], r"^She sold"),
    ("It can be inferred that he lied and stole the ring.", [], r"^It stole|^He"),
    ("She thought about leaving Osk and becoming a cook.", [], r"became|left"),
    ("His death was believed to be related to his work, and it sparked riots.",
     ["It sparked riots."], r"related to his work.*riots"),
    # what stands before the subject
    ("Regardless of its age, the clock has become a sign of wealth.", [], r"^Regardless of its age (?:is|has)"),
    ("So, the clock was used as a sign.", ["The clock was used as a sign."], r"^So"),
    ("In 1990 he met Ana, a cook.", ["Ana was a cook."], r"^A cook"),
    ("The history of the Osk Jets, a football team, begins in 1990.",
     ["Osk Jets is a football team."], r"^The history of the Osk Jets is"),
    # lists of nouns that look like verbs, and verbs that look like nouns
    ("He wrote novels, plays and poems.", ["He wrote plays."], r"^He plays"),
    ("Her music has been heard in films, and TV shows around the world.", [], r"^TV shows"),
    ("He is known for his speed, dribbling skills, and ball control.", [], r"dribbled"),
    ("She reports on politics and organized crime.", [], r"She organized"),
    ("Other states with ports include Osk, Vetra and Lomar.",
     ["Other states with ports include Lomar."], r"with (?:Vetra|Lomar)"),
    ("It was developed as a breed separate from the Osk hound.", [], r"separate\.|developed from"),
    ("He is an English teacher.", ["He is an English teacher."], r"is English\."),
    ("She is a retired American football player.", [], r"is American\."),
    ("He lived in Mexico, Peru, and Chile.", ["He lived in Peru."], r"is in"),
    # alternatives: neither need hold
    ("Ana Bo was born in 1950 or 1951.", ["Ana Bo was born in 1950 or 1951."], r"in 195\d\."),
    ("Ana Bo is a painter or a poet from Osk.", ["Ana Bo is a painter or a poet from Osk."], r"painter\.|is a poet|is from"),
    ("Ana Bo is a Lomarian painter, poet or cook.", [], r"painter\.|is a (?:poet|cook)"),
    ("He lived in Osk or in Vetra.", [], r"Osk\.|lived in Vetra"),
    ("He met Ana, Mira or Bo.", [], r"Ana\.|met (?:Mira|Bo)"),
    ("He wrote a book in 1950 or a play in 1951.", [], r"wrote (?:a play|in)|play\.|book in 1951"),
    ("She acted in films such as Rain or Snow.", [], r"Rain\.|in Snow|Rain is|Snow is"),
    ("He sold the house, gave it away, or burned it.", [], r"house\.|^He (?:gave|burned)"),
    ("She read \"Sink or Swim\" and \"Rain\".", ["She read \"Sink or Swim\".", "She read \"Rain\"."], r"Sink\."),
    # what is so only in what leads the sentence in
    ("In the film, Ana Bo is a thief and a murderer.",
     ["Ana Bo is a thief in the film.", "Ana Bo is a murderer in the film."], r"thief\.|murderer\."),
    ("In a dream, Ana Bo killed the king and fled to Osk.", ["Ana Bo fled to Osk in a dream."], r"king\.|Osk\."),
    ("In the film, she meets Bo, who is a thief.", [], r"^Bo"),
    ("In the film, Ana Bo, a thief, lives in Osk and works in Vetra.", [], r"^Ana Bo is"),
    ("In the film, he met Ana Bo, a cook.", [], r"^Ana Bo"),
    ("Under the proposal, Osk is a city and a state.", ["Osk is a state under the proposal."], r"(?:city|state)\."),
    ("Under the terms of the very long new proposal that had been made by the last mayor of Osk, Vetra is a city and a state.",
     [], r"^Vetra"),
    ("Until 1990, Ana Bo was a clerk and a cook.", ["Ana Bo was a cook until 1990."], r"(?:clerk|cook)\."),
    ("Until 1990, Ana Bo lived in Osk and worked in Vetra.", ["Ana Bo worked in Vetra until 1990."], r"(?:Osk|Vetra)\."),
    ("In 1950, he left Osk and moved to Vetra.", ["He left Osk in 1950.", "He moved to Vetra."], r"to Vetra in"),
    ("Although he was old, he won the race and left Osk.", ["He left Osk."], r"left Osk although"),
    ("Throughout her life, she wrote books such as The Door and The Hill.", ["She wrote The Door."], r"(?:Door|Hill) th"),
    # what is not quite so of the first may not be so of the second
    ("Ana Bo is a fake doctor and lawyer.", ["Ana Bo is a fake doctor and lawyer."], r"a lawyer|doctor\."),
    ("Ana Bo worked as a so-called doctor and lawyer.", [], r"as a lawyer|doctor\."),
    ("Ana Bo is a painter, aspiring singer and actor from Osk.", ["Ana Bo is from Osk."], r"an actor|singer\."),
    ("Ana Bo is a former actor and a singer.", ["Ana Bo is a former actor.", "Ana Bo is a singer."], r"is an actor"),
    ("He is known for his acting and singing.", ["He is known for his singing."], r"is known for singing"),
    # a place in a land
    ("In London, England, Ana Bo founded a school and a clinic.",
     ["Ana Bo founded a school in London, England.", "Ana Bo founded a clinic.", "London is in England."], r"^England"),
    ("In Austin, Texas, United States, Ana Bo founded a school.",
     ["Ana Bo founded a school in Austin, Texas, United States."], r"^(?:Texas|United States),"),
    ("In Europe, England, Scotland and Wales are known for rain.", [], r"^Scotland|Europe, England|^Wales|is in"),
    # a list that leads the sentence in
    ("In France, Germany, and Italy, he won the race and left Osk.",
     ["He won the race in France, Germany, and Italy.", "He left Osk in France, Germany, and Italy."], r"^Germany|Osk\."),
    ("In 1990, 1992, and 1994, Ana Bo won the prize.", ["Ana Bo won the prize in 1990, 1992, and 1994."], r"^1992|prize\."),
    ("When many of the people who live in Osk vote, the law may pass.",
     ["When many of the people who live in Osk vote, the law may pass."], r"^The law"),
    # what follows from a whole clause, and who does what
    ("The firm makes cars, making it the largest in Osk.", ["The firm makes cars."], r"firm made it"),
    ("The laptops are linked, allowing them to share files.", [], r"laptops allowed"),
    ("The head of the bank is Ana Bo, who has led it since 1990, replacing Bo Osk.",
     ["Ana Bo replaced Bo Osk."], r"bank replaced"),
    ("She saw the light falling through the leaves, warming the ground.", [], r"She warmed"),
    ("Some people danced, and soon everyone sang, moving to the music.", [], r"Some people moved"),
    ("He learned the joy of splashing and playing in the sea.", [], r"He played"),
    ("It could be sold with a filter, reducing waste.", [], r"It reduced"),
    ("Ana Bo was inspired by the flag, known as Rain, flying above Osk.", [], r"Ana Bo flew"),
    ("Ana Bo is a cook in Osk, holding the record.", ["Ana Bo is a cook in Osk, holding the record."], r"Ana Bo held"),
    ("He left the firm after Ana and Bo, who were old, fell out.", [], r"He fell|after Ana and Bo\."),
    ("The body consists of members who are called judges. ", [], r"body are"),
    ("The book tells the story of Ana, who lives in Osk.", ["Ana lives in Osk."], r"The story of Ana lives"),
    ("She starred with Bo Bolt in Rain, which was directed by Ana Osk.", [], r"Bo Bolt in Rain was"),
    ("The army fought against the men under the command of Bo in Osk.", [], r"army fought under"),
    ("The role was played by Bo Osk in Vetra and Ana Bolt took the role in Lomar.", [], r"by Ana|played in Lomar"),
    # nouns that look like verbs, and verbs that look like nouns
    ("The primary features of a hill include the land making it seem high.", [], r"^The primary made"),
    ("The fees mentioned in the list vary, depending on the bank.", [], r"depending\.|mentioned on"),
    ("The river rises in Osk, flows through Vetra and Lomar, and empties into the sea.", [], r"Osk flows|through empties"),
    ("Each side had 800 poorly trained and poorly led men.", [], r"trained\.|side poorly"),
    ("It was directed by Ana Bo from a book by Toma Ardel and stars Mira Bolt.", [], r"directed by Toma"),
    ("The law to allow it passed on May 3, 1990 and received assent from the king the next day.", [], r"passed (?:it )?from"),
    ("The dance involves a motion performed in rhythm with a drum in the hall.", [], r"motion performed in the hall"),
    # lists of two depths, and of what only all of them are
    ("It can cause harm, hurt, and damage to people and towns.", [], r"cause towns"),
    ("It deals with theft, prevention of crime and care of wife, child and parents.", [], r"with (?:child|parents)\."),
    ("It helps us to know the cost of their plans, find gaps, and mend them.", [], r"their find|their mend"),
    ("It will keep readers on their seats and inspire them.", [], r"their inspire"),
    ("The song reached number one in Osk and number five in Vetra.", [], r"in number|one in Vetra"),
    ("It has two seasons, spring and autumn.", [], r"has spring\."),
    ("His parents were Ana and Toma.", ["His parents were Ana and Toma."], r"were Ana\.|were Toma"),
    ("It grew due to the progress in art and the presence of money.", [], r"progress in the presence"),
    ("Bo blended jazz, ska, and rock in his songs.", [], r"blended (?:jazz|ska|rock) in"),
    ("It may have side effects such as fever and pain.", [], r"have (?:fever|pain)"),
    ("Osk has a population of 5,000, up from 4,000 in 1990.", [], r"up in 1990"),
    # denials, doubts and exceptions
    ("Neither Ana nor Bo won the prize and left Osk.", ["Neither Ana nor Bo won the prize and left Osk."],
     r"nor Bo left"),
    ("The prize is given in Osk, except in 1955, when it was given in Vetra.", [], r"^It was"),
    ("It is believed that Ana Bo left Osk and died.", ["It is believed that Ana Bo left Osk and died."], r"^Ana"),
    ("After the war, he left Osk and is a cook.", ["He left Osk after the war.", "He is a cook."], r"cook after"),
    ("She acted in \"Rain,\" \"Snow,\" and \"Oh!", [], r"in \"Rain\"\."),
    ("Nonetheless, the bridge has a tower and may fall.", ["The bridge has a tower."], r"^Nonetheless (?:is|has|may)"),
    ("The Battle of Osk, the name used by Bo, was fought in 1861.", ["The Battle of Osk was fought in 1861."], r"is the name"),
    # what must be divided as before
    ("Ana Bo, who never married, left Osk in 1950 and moved to Vetra.",
     ["Ana Bo never married.", "Ana Bo left Osk in 1950.", "Ana Bo moved to Vetra."], r"^Ana Bo married"),
    ("The law was introduced in 1950 by Ana Bo and came into force in 1951.",
     ["The law was introduced by Ana Bo.", "The law came into force in 1951."], r"force by"),
    ("She was tried in Osk and, in 1904 she fled to Vetra.", [], r"Osk she|tried in 1904"),
    ("He won the cup in 1903, and in 1904 he won the race.",
     ["He won the cup in 1903.", "He won the race in 1904."], r"cup in 1904|1904 he|race in 1903"),
    ("The Osk Tower is open on weekdays and closed on Sundays.", ["The Osk Tower is closed on Sundays."], r"open on Sundays"),
    # of a chain of phrases the first may be told alone, but none without those before it
    ("She took part in the Osk Festival in Vetra.", ["She took part in the Osk Festival."], r"part in Vetra"),
    ("He resigned from a club for the vacancy at Osk.", ["He resigned from a club for the vacancy at Osk."], r"resigned at"),
    ("He served in the Lomar army as a nurse.", ["He served as a nurse."], r"army\. as"),
    ("He wrote a column for Lume in 1950.", ["He wrote a column.", "He wrote a column for Lume in 1950."], r"wrote for"),
    ("He was there until his death in 1939 in Osk.", ["He was there until his death in 1939 in Osk."], r"there in 1939"),
    # nothing stays of a list whose end may belong to all of it, or to whose items it is not plain what belongs
    ("He has also worked in the history and philosophy of science.",
     ["He has also worked in the history and philosophy of science."], r"history\."),
    ("It was built for the inventor and maker Bo Ardel.", ["It was built for the inventor and maker Bo Ardel."],
     r"inventor\."),
    ("Of them 56% were bakers, 35% cooks and 9% smiths.", ["Of them 56% were bakers, 35% cooks and 9% smiths."], r"were \d"),
    ("Two episodes were released in May 2008 and June 2009.", ["Two episodes were released in May 2008 and June 2009."],
     r"2008\."),
    # whom a clause is about, and what only it makes known
    ("It shows the life of Ana Bo, a student from Osk who joined the army.", ["Ana Bo is a student from Osk."], r"^Osk joined"),
    ("It is a film about a widow who keeps her farm.", ["It is a film."], r"^It keeps"),
    ("Ana Bo was one of the six men who left the ship.", ["Ana Bo was one of the six men who left the ship."], r"men\."),
    ("He left many paintings, but his last work, which he finished in 1900, was burnt.",
     ["He left many paintings, but his last work, which he finished in 1900, was burnt."], r"^He was burnt"),
    ("It was a track known as the Osk Oval, named after a horse.",
     ["It was a track known as the Osk Oval, named after a horse."], r"^It was named"),
    # a word in "-ing" is somebody's, where only somebody does it
    ("She sang on the album, featuring the guitar of Bo.", ["She sang on the album."], r"^She featured"),
    ("The team is a member of the league, joining in 2005.", ["The team is a member of the league."], r"^The team is joining"),
    # names and subjects
    ("Ana do Vale is a painter.", ["Ana do Vale is a painter."], r"^Ana is|^Ana\."),
    ("\"Rain\" is a song by American singer Ana Bo.", ["\"Rain\" is a song."], r"is American"),
    ("Bo Ardel, the mayor, and Ana Osk, the judge, were named co-chairs.",
     ["Bo Ardel, the mayor, and Ana Osk, the judge were named co-chairs."], r"^Bo Ardel (?:is|was|were)"),
    ("Officially, all of his wins came abroad.", ["Officially, all of his wins came abroad."], r"^All"),
    ("The stock was, ironically, kept in Osk.", ["The stock was, ironically, kept in Osk."], r"ironically\.|^The stock kept"),
    # whose clause it is: two with one each, one broken off by a comma, one of many lamps, one that comes back to its subject
    ("The cup was held by Ana Bo, who had won in Osk, and Mira Bolt, who had won in Vetra.",
     ["The cup was held by Ana Bo, who had won in Osk, and Mira Bolt, who had won in Vetra."], r"Osk, and Mira Bolt\.|^Ana"),
    ("Osk worked with renowned maker Ana Bo who, with ten years work, has taught Mira Bolt, The Rain and Bo Osk.",
     ["Osk worked with renowned maker Ana Bo who, with ten years work, has taught Mira Bolt, The Rain and Bo Osk."],
     r"^Osk has|work\."),
    ("It tells of Ana Bo, a girl who, keeping a promise, goes to Osk.",
     ["It tells of Ana Bo, a girl who, keeping a promise, goes to Osk."], r"^Keeping|^Ana Bo (?:goes|kept)"),
    ("Osk makes large lamps, each of which costs a fortune and has to be shipped by sea.",
     ["Osk makes large lamps, each of which costs a fortune and has to be shipped by sea."], r"^Osk has"),
    ("She moved to Osk after her mother, a baker, was sent there.",
     ["She moved to Osk after her mother, a baker, was sent there."], r"^She was|baker\."),
    ("It became a landmark of art: Ana Bo, who knew it well, praised it.",
     ["It became a landmark of art: Ana Bo, who knew it well, praised it."], r"Ana Bo\.|^It praised"),
    ("The band made \"Rain\", which sold well, being played in Osk.",
     ["\"Rain\" sold well.", "\"Rain\" sold well, being played in Osk."], r"band sold"),
    ("At the 1950 Osk Games she won a medal.", ["She won a medal at the 1950 Osk Games."], r"^At"),
    ("Before it was passed, the old rule of Osk meant that a wife owned nothing.",
     ["Before it was passed, the old rule of Osk meant that a wife owned nothing."], r"^The|passed\."),
    # what a thing named last is not
    ("It is a sequel of Bo Osk's 1950 play \"Rain\", which was staged in Vetra.",
     ["It is a sequel of Bo Osk's 1950 play \"Rain\"."], r"^A sequel"),
    ("The show was made in a hall in Osk, Lomar, called \"The Barn\".", ["The show was made in a hall."], r"^Lomar"),
    ("Osk is a port on the western coast of Lomar, located in the north.", ["Osk is a port."], r"^The western"),
    ("\"Rain\" is a 1950 film starring Ana Hunter and Mira Bolt.",
     ["\"Rain\" is a 1950 film starring Ana Hunter and Mira Bolt."], r"is Mira|Hunter\."),
    ("It is an Italian bestseller.", ["It is an Italian bestseller."], r"is Italian"),
    # what only all items of a list share, or only the last one is
    ("Osk beat Vetra 3–0 with tries from Ana Bo, Mira Bolt and Toma Osk.",
     ["Osk beat Vetra 3–0 with tries from Ana Bo, Mira Bolt and Toma Osk."], r"Bo\.|from Mira"),
    ("He made 30 flights during his time in the North Lomar Hills and Vetra Valley.",
     ["He made 30 flights during his time in the North Lomar Hills and Vetra Valley."], r"Hills\.|in Vetra"),
    ("Osk made several lamps for rooms such as the Great Hall and the Red Barn.",
     ["Osk made several lamps for rooms such as the Great Hall and the Red Barn."], r"for the"),
    ("It was a Lomarian fighter, bomber and transport wing.", ["It was a Lomarian fighter, bomber and transport wing."],
     r"fighter\.|a bomber"),
    ("The bank is a part of the Royal Ards and Osk Council's housing office.",
     ["The bank is a part of the Royal Ards and Osk Council's housing office."], r"Ards\.|of (?:the )?Osk"),
    ("It shows two bakers as they meet the flood and famine, based on stories of Osk.",
     ["It shows two bakers as they meet the flood and famine."], r"as (?:the )?famine"),
    ("She studied under Ana Bo and later Mira Bolt.", ["She studied under Ana Bo and later Mira Bolt."], r"under later"),
    ("He was an actor and later a director.", ["He was an actor.", "He was later a director."], r"a later"),
    ("She won two prizes in Osk, becoming the first to be honoured for both singing and dancing.",
     ["She became the first to be honoured for both singing and dancing."], r"singing\.|^She danced"),
    ("He won the Osk Prize for Best Play for Rain and a second prize for his script of Snow.",
     ["He won the Osk Prize for Best Play for Rain and a second prize for his script of Snow."], r"for a second"),
    # what does not say it all
    ("The prize is given with a medal and follows the same rules; as the two are separate, works may win both.",
     ["The prize is given with a medal."], r"separate\.|prize works"),
    ("The land included Vetra, Osk (excluding the port), and Lomar.",
     ["The land included Vetra, Osk (excluding the port), and Lomar."], r"Osk,"),
    ("She wrote poems on a number of themes, ranging from the sea to the stars.",
     ["She wrote poems on a number of themes, ranging from the sea to the stars."], r"ranging\."),
    ("The club held its yearly fair at Osk Park and left in 1950.",
     ["The club held its yearly fair at Osk Park.", "The club left in 1950."], r"fair\."),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "among", "never"), FAITHFUL)
def test_claims_say_what_their_sentence_says(sentence: str, among: list[str], never: str) -> None:
    claims = clauses(sentence)
    assert claims and set(among) <= set(claims)
    assert not [claim for claim in claims if re.search(never, claim)]


@pytest.mark.slow
def test_many_sentences_take_time_in_proportion() -> None:
    """Ten times the sentences take about ten times as long, not a hundred times."""
    sentence = (
        'Toma Ardel, a painter from Lima, Peru, wrote books such as "A" and "B", and in 1950 he left Osk, where he died. '
    )
    seconds = []
    for many in (300, 3_000):
        begun = time.process_time()
        assert len(extract(sentence * many).claims) > 4 * many
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 30 * seconds[0]


def test_whom_a_relative_clause_is_about_is_soon_found() -> None:
    """What may be a name behind "by" is looked for in the last words alone, and not from every "by" to every word."""
    seconds = []
    for many in (1, 4):
        begun = time.process_time()
        sentence = f"Ana met Bo {'by ' * 75 * many}{'A ' * 120 * many}a, who sang."
        assert len(sentence) < LONGEST and clauses(sentence)
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 30 * max(seconds[0], 0.01)


@pytest.mark.parametrize("piece", [" and wrote a book in Osk", " and won the prize"])
@pytest.mark.parametrize("begun", ["He met those who sang in Osk", "She met people who left Osk"])
def test_claims_do_not_grow_with_the_square_of_their_sentence(begun: str, piece: str) -> None:
    sentence = begun + 60 * piece
    claims = clauses(sentence)
    assert claims[-1] == f"{sentence}." and len("".join(claims)) < 2 * len(sentence)
    assert clauses(begun + piece)[-1] == f"{begun}{piece}."


def extract(text: str, title: str = TOPIC, decontextual: bool = False) -> Claims:
    return rules(decontextual)([Response("r", Question("q", "?", title=title), text)])[0]


def test_claims_carry_section_sentence_and_place() -> None:
    text = "<think>He was born in Vetra in 1921.</think><answer>I don't know. Who is he? He won.</answer>"
    found = extract(text)
    assert [(c.id, c.text, c.section, c.sentence, text[slice(*c.span)] if c.span else "") for c in found.claims] == [
        (0, "Toma Ardel was born in Vetra.", "think", 0, "He was born in Vetra"),
        (1, "Toma Ardel was born in 1921.", "think", 0, "He was born in Vetra in 1921"),
        (2, "Toma Ardel won.", "answer", 3, "He won"),
    ]
    assert found.verdicts == () and found.error is None and found.cost.calls == 0


def test_the_topic_comes_from_the_title_the_question_or_the_response() -> None:
    for question in (Question("q", "?", title="Toma Ardel (painter)"), Question("q", "Tell me a bio of Toma Ardel.")):
        assert rules()([Response("r", question, "He won.")])[0].claims[0].text == "Toma Ardel won."
    assert [c.text for c in extract("Toma Ardel is a baker. He won.", "").claims] == [
        "Toma Ardel is a baker.",
        "Toma Ardel won.",
    ]
    assert [c.text for c in extract("nobody knows him. He won.", "").claims][-1] == "He won."


PRONOUNS = [  # question, response, its last claim
    ("Is the Tarven bridge older than Osk?", "The Tarven bridge was painted green. It is long.", "The Tarven bridge is long."),
    ("Is it long?", "The bridge was opened in 1934. It is long.", "The bridge is long."),
    ("What is Tavor?", "Tavor is a drug. It was released in 1899.", "Tavor was released in 1899."),
    ("Where is Osk?", "Yes. It is long.", "Osk is long."),
    ("How long is Osk?", "Lomar lies on the Osk. It is 9 km long.", "Osk is 9 km long."),
    ("What is Cerva?", "Cerva is a lab. The Large Ring is its machine. It was founded in 1954.", "It was founded in 1954."),
    ("How high is the Osk Tower?", "Critics disliked the tower. It is 330 metres tall.", "Osk Tower is 330 metres tall."),
    ("What is Osk like?", "Osk is a town. It is known that bears lived there.", "It is known that bears lived there."),
    ("Who wrote Rain?", "Mira Bolt wrote Rain. She was born in Vetra.", "Mira Bolt was born in Vetra."),
    ("Who is it?", "Mira Bolt was born in Vetra. Vetra is a city. She won.", "Mira Bolt won."),
    ("Who is it?", "Mira Bolt lives in Vetra. Her father is Bo Bolt, a baker. She won.", "Mira Bolt won."),
    ("Who is Mira Bolt?", "Mira Bolt was born in Vetra. Bo Bolt taught physics. She won.", "She won."),
    ("Who is Mira Bolt?", "Bolt was born in Vetra. She won.", "Mira Bolt won."),
    ("When was Bolt born?", "He was born in 1879.", "Bolt was born in 1879."),
    ("Who?", "The book was a success. He wrote it.", "He wrote it."),
    ("Where is Cerva in Lomar?", "Cerva is a lab. It was founded in 1954.", "Cerva was founded in 1954."),
    ("Add a line about her.", "She left Osk.", "She left Osk."),
    ("Whom did he marry? Did Ana know?", "He was told of Ana's prize.", "He was told of Ana's prize."),
    ("What is Tavor?", "Cerva has a lab. It was founded in 1954.", "It was founded in 1954."),
    ("What fell?", "The result was a war. It was long.", "It was long."),
    ("What is Tavor?", "Tavor is a drug. It's new.", "It's new."),
    ("Who?", "Toma Ardel married Mira Bolt. She was a baker.", "She was a baker."),
    ("Who?", "Toma Ardel was a baker. He married Mira Bolt. He won.", "Toma Ardel won."),
    ("Who?", "Mira Bolt was a baker. She won. Her husband was Bo Ardel. He lost.", "He lost."),
]


@pytest.mark.parametrize(("question", "text", "expected"), PRONOUNS)
def test_without_a_title_a_pronoun_is_what_the_words_show_it_to_be(question: str, text: str, expected: str) -> None:
    claims = rules()([Response("r", Question("q", question), text)])[0].claims
    assert claims[-1].text == expected and claims[0].text != "Yes."


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Rain", "Mira Bolt wrote Rain. She was born in Vetra.", "Mira Bolt was born in Vetra."),
        ("Rain", "Rain is a film. Mira Bolt directed it. She was born in Vetra.", "She was born in Vetra."),
        ("Mira Bolt", "Mira Bolt is a painter. Bo Bolt taught physics. She won.", "Mira Bolt won."),
        ("Mira Bolt", "Her father is Bo Bolt, a baker. She won.", "Mira Bolt won."),
        ("Mira Bolt", "Mira Bolt was a baker. Bo Ardel was her husband. He won.", "He won."),
        ("Bo Bolt", "Bo Bolt Osk is a cook. Bo Bolt Ardel was a Lomarian painter. He won.", "He won."),
        ("Bo Bolt", "Bo Bolt is a cook. Toma Ardel was a painter. Bo Bolt was born in Osk. He won.", "Bo Bolt won."),
        ("Rain", "Rain is a film. It is up to the reader to judge it.", "It is up to the reader to judge it."),
    ],
)
def test_with_a_title_a_pronoun_is_the_title_unless_it_can_only_be_another(title: str, text: str, expected: str) -> None:
    assert extract(text, title).claims[-1].text == expected


def test_decontextualised_claims_name_the_topic_everywhere() -> None:
    text = "Ardel sold his house and gave it to her. Mayor Ardelson met him."
    assert [c.text for c in extract(text, decontextual=True).claims] == [
        "Toma Ardel sold Toma Ardel's house.",
        "Toma Ardel gave it to Toma Ardel.",
        "Mayor Ardelson met Toma Ardel.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rainy Days! (Lomarian: Mest! Osk: Duv!) is a novel.", [(2, "Rainy Days! is a novel.")]),
        ("He sang on \"Run... Now!\", and in 1950 he left Osk.",
         [(0, "Toma Ardel sang on \"Run... Now!\"."), (1, "Toma Ardel left Osk in 1950.")]),
        ("Ana said: \"I won. It was late.\"", [(0, "Ana said: \"I won. It was late\".")]),
        # sentences within brackets and a sign that is not closed hide nothing
        ("Toma Ardel won (in Osk. He left in 1950).", [(0, "Toma Ardel won (in Osk."), (1, "Toma Ardel left in 1950).")]),
        ("He sang \"Rain. He won. He left. He ran. He fell.",
         [(0, "Toma Ardel sang \"Rain."), (1, "Toma Ardel won."), (2, "Toma Ardel left."), (3, "Toma Ardel ran."),
          (4, "Toma Ardel fell.")]),
        ("It is 5\" wide. It is 7\" long.", [(0, "Toma Ardel is 5\" wide."), (1, "Toma Ardel is 7\" long.")]),
        ("\"He won. He left.\"", [(0, "\"He won."), (1, "Toma Ardel left\".")]),
        ("He won \"the cup.\n\nHe left\" Osk.", [(0, "Toma Ardel won \"the cup."), (1, "Toma Ardel left\" Osk.")]),
    ],
)  # fmt: skip
def test_a_sign_within_a_title_ends_no_sentence(text: str, expected: list[tuple[int, str]]) -> None:
    found = extract(text)
    assert [(claim.sentence, claim.text) for claim in found.claims] == expected
    assert found.sentences == sentences(text)


def test_code_headings_and_plans_are_not_taken_apart() -> None:
    text = "[Outline] He won. [Answer]\n```\nHe ran. He won.\n```\n## Career\n| year | prize |\nHe lost."
    assert [c.text for c in extract(text).claims] == ["Toma Ardel lost."]


@settings(max_examples=100)
@given(
    st.lists(
        st.sampled_from(
            'He was born in Vetra , and who won a the "prize" (1920–1999) ; including Lomar , known for 12 . is'.split()
        )
    )
)
def test_any_words_give_claims_within_their_sentences(words: list[str]) -> None:
    text = " ".join(words)
    found = extract(text)
    for claim in found.claims:
        assert claim.text and claim.sentence is not None
        begin, end = found.sentences[claim.sentence]
        assert claim.span is None or begin <= claim.span[0] < claim.span[1] <= end


PHRASES = st.sampled_from(
    ["in 1950", "on May 2, 1920", "in Osk", "as a nurse", "with Bo", "by Ana Osk", "until 1960", "until his death in 1939"]
)


@given(
    st.sampled_from(["born", "served", "won", "wrote", "moved"]),
    st.sampled_from(["", "a prize", "three prizes", "his career"]),
    st.lists(PHRASES, max_size=4),
    st.sampled_from(["", "in 1999"]),
)
def test_what_says_less_keeps_the_words_in_order(verb: str, core: str, behind: list[str], lead: str) -> None:
    """Every piece is made of the core and of whole phrases, in the order in which they stand; but for a date and what
    somebody serves as, none has a phrase without all before it."""
    rest = " ".join([core, *behind]).strip()
    units = [one for one in (core, *behind, lead) if one]
    pieces = spread(verb, rest, core, behind, lead)
    assert pieces or not units
    for piece in pieces:
        left, used = piece, list[int]()
        for number, unit in enumerate(units):
            if left == unit or left.startswith(f"{unit} "):
                left, used = left[len(unit) :].strip(), [*used, number]
        assert left == "" and (used or not piece)
        gaps = [unit for number, unit in enumerate(units[: used[-1] if used else 0]) if number not in used]
        told = units[used[-1]] if used else ""
        assert not gaps or verb == "born" or re.search(r"\d{4}$|^as a", told) or all(re.search(r"\d{4}$", gap) for gap in gaps)


@pytest.mark.parametrize("sentence", [sentence for sentence, *_ in DIVIDED] + [sentence for sentence, *_ in FAITHFUL])
def test_a_claim_alone_has_the_words_of_its_sentence(sentence: str) -> None:
    claims = clauses(sentence)
    said, told = (Counter(re.findall(r"\w+", text.casefold())) for text in (sentence, claims[0]))
    assert len(claims) > 1 or told <= said + Counter(["on"])  # "born on"


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["and he was ", "Aa", "A, ", "(", "in 1920 ", ", who was", '" and "', "in a "])
def test_long_degenerate_sentences_come_back(piece: str) -> None:
    assert extract(piece * (20_000 // len(piece)) + " x").claims
    assert clauses(piece * (1900 // len(piece)) + " x")


def test_claims_of_people(slices: Path) -> None:
    """Every sentence that people found claims in gives some here too; most of theirs share most words with one of ours."""
    sentences, found = 0, 0
    for line in (slices / "factscore_human" / "InstructGPT.jsonl").read_text(encoding="utf-8").splitlines():
        for one in json.loads(line)["annotations"] or ():
            theirs = [set(fact["text"].casefold().rstrip(".").split()) for fact in one.get("human-atomic-facts") or ()]
            ours = [set(claim.casefold().rstrip(".").split()) for claim in clauses(one["text"])]
            sentences += len(theirs)
            found += sum(any(2 * len(a & b) >= 1.5 * max(len(a), len(b)) for b in ours) for a in theirs)
    assert sentences > 500 and found / sentences > 0.4


def test_a_thing_is_named_and_a_place_kept_with_its_time() -> None:
    text = "The Osk bridge was opened in 1934, and it carries two lanes. It has been in the valley since 1934. I find it ugly."
    [found] = rules()([Response("r", Question("q", "What is the Osk bridge?", title="Osk bridge"), text)])
    assert [claim.text for claim in found.claims] == [
        "The Osk bridge was opened in 1934.",
        "Osk bridge carries two lanes.",
        "Osk bridge has been in the valley since 1934.",
    ]
    [of_a_person] = rules()([Response("r", Question("q", "Who is Ana?", title="Ana Bo"), "He wrote Dusk. It won a prize.")])
    assert [claim.text for claim in of_a_person.claims] == ["Ana Bo wrote Dusk.", "It won a prize."]
