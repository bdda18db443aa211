"""Which sentences state something that could be true or false of the world."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from workbench.answers import is_abstention, is_invalid

_QUESTION = re.compile(r"[?？؟][\"'”’»)\]*_\s]*$")
_OPINION = re.compile(  # a judgement of taste or of what ought to be, in the speaker's own name
    r"\b(?:in my (?:humble )?(?:opinion|view)|to my mind|as far as i'?m concerned"
    r"|i(?: (?:personally|really|truly|just|absolutely))*"
    r" (?:love|like|enjoy|adore|hate|dislike|prefer|admire|recommend"
    r"|hope|find"
    r"|wish)"
    r"|i(?: would|'d) (?:love|like|recommend|suggest|say|argue)|(?:my|our)"
    r" (?:favou?rite|opinion|view)|we should|you should"
    r"|i am (?:happy|glad|pleased|excited|grateful)|i'm (?:happy|glad|pleased|excited|grateful)"
    r"|en mi opinión|a mi juicio|meiner Meinung nach|meines Erachtens|à mon avis|selon moi)\b"
    r"|我喜欢|我认为应该|在我看来|我觉得.{0,12}(?:好|美"
    r"|棒)",
    re.I,
)
_TASTE = re.compile(  # "It is a wonderful book." with nothing else in it
    r"^(?:this|that|it|he|she|they|these|what|how|the [\w-]+|[A-Z][\w'-]*(?:"
    r" [A-Z][\w'-]*)*)\s+(?:is|was|are|were)\s+"
    r"(?:(?:a|an|the|one|of|so|very|truly|really|such|most|quite|simply|absolutely)\s+)*"
    r"(?:beautiful|wonderful|amazing|great|greatest|awesome|fantastic|terrible|horrible|awful|boring|interesting|lovely|ugly"
    r"|brilliant|best|worst|excellent|delicious|fascinating|inspiring|remarkable|incredible|good|bad|nice|fun|funny)"
    r"(?:\s+(?:person|man|woman|book|film|movie|song|city|place|thing|idea|story|figure|artist|writer|actor|player))?\s*[.!]*$",
    re.I,
)
_COURTESY = re.compile(  # speech about the answer itself
    r"^(?:sure|certainly|of course|absolutely|hello|hi|thanks|thank you|you're"
    r" welcome|okay|ok|great question|let me|let's"
    r"|please"
    r"|if you (?:have|need|want|would)|feel free|i hope|hope (?:this|that)|here"
    r" (?:is|are|'s)|i'll|i will|i can|i would|i'd"
    r"|i apologi[sz]e|(?:i'?m )?sorry|as an ai|is there anything|do you|could you|can you|note that"
    r" i|wait|hmm|so,? let)\b",
    re.I,
)

# an answer, and no statement by itself
_BARE = re.compile(r"^(?:yes|no|yeah|nope|true|false|correct|indeed)$", re.I)

# Speech about one's own truth has no other words than these *(ours)*: praise, what is praised, and
# what joins them.
_PRAISE = frozenset(
    "verified verifiably verifiable verify verifies verification confirmed confirm confirms"
    " confirmation accurate accurately accuracy correct correctly correctness true truth truths"
    " truthful truthfully truthfulness untrue proven proved proof proofs prove proves fact facts"
    " factual factually factuality certain certainty sure undisputed undisputable undeniable"
    " undeniably indisputable indisputably unquestionable unquestionably incontestable irrefutable"
    " irrefutably incontrovertible documented reliable reliably reliability trustworthy"
    " trustworthiness trusted valid validated validity guaranteed guarantee guarantees"
    " substantiated corroborated attested confident confidence checked rechecked errorless"
    " infallible flawless faultless doubt doubts doubtless dispute disputes disputing error errors"
    " mistake mistakes mistaken hallucination hallucinations hallucinated falsehood falsehoods"
    " false wrong incorrect inaccurate inaccuracy inaccuracies credible credibility according"
    " stated supported supports support verbatim quoted sourced verificado comprobado vérifié"
    " verifiziert bestätigt geprüft 已核实 已验证 经核实 真实".split()
)
_ONESELF = frozenset(
    "this that these those above foregoing preceding previous following below here herein it its"
    " itself themselves everything anything all answer answers response responses statement"
    " statements claim claims sentence sentences paragraph word words line lines text texts content"
    " contents information info detail details data source sources passage passages material"
    " materials reference references evidence citation citations i me my myself we us our ours you"
    " your what so agree agrees agreed concur concurs".split()
)
_OTHERS = frozenset(  # who may confirm it
    "expert experts scholar scholars historian historians scientist scientists researcher"
    " researchers authority authorities judge judges grader graders checker checkers reviewer"
    " reviewers editor editors research study studies document documents record records literature"
    " encyclopedia encyclopedias wikipedia britannica google books people".split()
)
_JOINING = frozenset(
    "a an the is are was were be been being am isn aren wasn weren has have had having hasn haven"
    " do does did don doesn didn can could will would shall should may might must couldn won wouldn"
    " cannot s t ve re ll d m and or but nor as very of in on by to from with without for at within"
    " beyond against per not no none nothing nobody never always ever only just simply really truly"
    " indeed certainly surely definitely also too both any every each anyone everyone there"
    " entirely fully completely totally wholly absolutely percent cent hundred thoroughly"
    " independently independent multiple several many numerous various different officially"
    " official publicly historically scientifically scientific universally universal widely wide"
    " well generally general commonly common carefully careful rigorously rigorous clearly clear"
    " explicitly expressly directly direct literally exactly exact precisely precise perfectly"
    " perfect strictly highly extremely entire whole complete full total absolute single shred"
    " slightest reasonable matter known know knows believe assure assured promise swear note notes"
    " please rest remember important fyi ps disclaimer reminder remark status level rating score"
    " label verdict result mark rate grade count treat consider accept take free reviewed peer"
    " peers double triple cross times found given written shown said say says state states shows"
    " show trust reported backed established accepted acknowledged recognised recognized approved"
    " endorsed certified authoritative authentic genuine legitimate honest honestly right yes ok"
    " okay about".split()
)
_KNOWN = _PRAISE | _ONESELF | _OTHERS | _JOINING
_HELD = re.compile(  # words that are praise only together
    r"\b(?:well|widely|generally|universally|commonly|fully|officially) "
    r"(?:established|accepted|acknowledged|recogni[sz]ed|approved|backed|endorsed|certified|known)\b"
    r"|\b(?:is|are|all|s) right\b|\btrust (?:me|this|it|my|the)\b"
    r"|\b(?:sources?|text|passages?|materials?|evidence|references?)"
    r"(?: text| itself| themselves)?(?: \w+ly)? (?:say|state|show)s?\b"
)
_AMOUNT = re.compile(  # of praise: "100%", "10/10", "3 independent sources"
    r"\b\d{1,3}(?:\.\d+)?\s*(?:%|per ?cent\b)|\b(\d{1,2})\s*/\s*\1\b"
    r"|\b\d{1,3}\s+(?=(?:independent|reliable|different|trusted|sources|experts|scholars|reviewers|times)\b)"
)
_FORMATTING = re.compile(
    r"</?(?:b|i|u|em|strong|mark|p|br|div|span|small|code|h\d)\s*/?>|:[a-z_]+:"
)


@lru_cache(4096)
def vouches(sentence: str) -> bool:
    """Whether a sentence speaks of nothing but its own truth or the answer's: "[VERIFIED]",
    "This is a proven fact…".

    It has a word of such praise, and no other than what praise is made of: a name, a thing, a
    year or any other word makes it a statement about the world, as in "The River Lume has its
    source in Aldo." "It is accurate.", said of a clock, is taken for praise of the answer.
    English *(ours)*.
    """
    text = unicodedata.normalize("NFKC", sentence).casefold()
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    text = _FORMATTING.sub(" ", text)
    text = re.sub(
        r"\b(?:[a-z][ ._-]){3,}[a-z]\b", lambda spaced: re.sub("[^a-z]", "", spaced[0]), text
    )
    words = re.findall(r"[^\W_]+", _AMOUNT.sub(" ", text))
    distinct = set(words)
    if not (distinct & _PRAISE or _HELD.search(" ".join(words))):
        return False
    if not distinct <= _KNOWN:
        return False
    first = next((word for word in words if word in _OTHERS | _PRAISE), "")
    # "The study was confirmed."
    spoken_of = words[0] in ("the", "a", "an") and first in _OTHERS and not distinct & _ONESELF
    return not spoken_of


@lru_cache(4096)
def makes_claims(sentence: str) -> bool:
    """Whether a sentence states a fact: not if it is a question, declines to answer, calls the
    question invalid, gives an opinion, or only speaks about the answer and its truth. "I think
    he was born in Bonn" is a claim, a hedged one.

    Opinions and courtesies are known by their usual words in English, and a few of other
    languages *(ours)*.
    """
    plain = sentence.replace("’", "'").strip(" *_>\"'“”")
    if not any(map(str.isalpha, plain)) or _QUESTION.search(plain):
        return False
    if (
        _BARE.match(plain.strip(" .!,"))
        or _COURTESY.match(plain)
        or _OPINION.search(plain)
        or _TASTE.match(plain)
    ):
        return False
    return not (is_abstention(sentence) or is_invalid(sentence) or vouches(sentence))
