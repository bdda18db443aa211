"""Claims extracted by rules keep the meaning of their sentence."""

import re
from collections import Counter

from tests.helpers import table
from workbench.claims.clauses import clauses

EXAMPLES = table("claims")


def test_claims_keep_the_meaning_of_their_sentence() -> None:
    wrong = []
    for sentence, among, never in EXAMPLES:
        claims = clauses(sentence)
        missing = {claim for claim in among.split(" | ") if claim} - set(claims)
        if missing or not claims or any(re.search(never, claim) for claim in claims):
            wrong.append((sentence, claims))
    assert len(EXAMPLES) > 100 and wrong == []


def test_a_single_claim_has_only_words_of_its_sentence() -> None:
    for sentence, *_ in EXAMPLES:
        claims = clauses(sentence)
        words, claimed = (Counter(re.findall(r"\w+", t.casefold())) for t in (sentence, claims[0]))
        assert len(claims) > 1 or claimed <= words + Counter(["on"])  # "born on"
