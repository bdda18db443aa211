"""Claims by rules say what their sentence says."""

import re
from collections import Counter

from tests.helpers import table
from workbench.claims.clauses import clauses

EXAMPLES = table("claims")


def test_claims_say_what_their_sentence_says() -> None:
    wrong = []
    for sentence, among, never in EXAMPLES:
        claims = clauses(sentence)
        missing = {claim for claim in among.split(" | ") if claim} - set(claims)
        if missing or not claims or any(re.search(never, claim) for claim in claims):
            wrong.append((sentence, claims))
    assert len(EXAMPLES) > 100 and wrong == []


def test_a_claim_alone_has_the_words_of_its_sentence() -> None:
    for sentence, *_ in EXAMPLES:
        claims = clauses(sentence)
        words, claimed = (Counter(re.findall(r"\w+", t.casefold())) for t in (sentence, claims[0]))
        assert len(claims) > 1 or claimed <= words + Counter(["on"])  # "born on"
