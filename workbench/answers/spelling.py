"""One spelling of words that are written in two ways: British and American, with and without ligatures *(the lists are ours)*.

The American form is taken. Only listed stems are changed, so that no name or other word becomes another ("otherwise", "four",
"Michael").
"""

from __future__ import annotations

import re
from functools import lru_cache

_OUR = (
    "arm behavi cand col demean endeav fav ferv flav glam harb hon hum lab neighb od parl ranc rig rum sav splend succ "
    "tum val vap vig"
)
_RE = "cent calib fib lit lust meag met mit och sab scept sepulch somb spect theat centimet kilomet millimet decilit millilit"
_ISE = (
    "apolog author bapt capital categor central character civil colon critic crystal emphas energ equal familiar fertil final "
    "formal general global hospital ideal immun industrial ion legal liberal local magnet marginal material maxim mechan memor "
    "militar minim mobil modern monopol national natural neutral normal optim organ oxid pasteur patron penal personal polar "
    "popular pressur priorit privat public radical random rational real recogn reorgan revital "
    "revolution scrutin sensit social "
    "special stabil standard steril subsid summar symbol sympath synchron synthes terror theor urban util vandal "
    "vapor victim visual western"
)
_AE = "aesth anaem anaesth caesium encyclopaed faec gynaec haem ischaem leukaem mediaev orthopaed paed palae septicaem"
_OE = "diarrhoe foet manoeuv oed oesoph oestr amoeb homoeo"
_DOUBLED = (
    "cancel channel counsel dial enrol equal fuel jewel label level marvel model quarrel rival signal total travel tunnel"
)
_OTHERS = """
aeroplane: airplane|aluminium: aluminum|analogue: analog|analyse: analyze|artefact: artifact|axe: ax|catalogue: catalog
catalyse: catalyze|cosy: cozy|defence: defense|dialogue: dialog|doughnut: donut|draught: draft|epilogue: epilog|grey: gray
jewellery: jewelry|kerb: curb|licence: license|mould: mold|moustache: mustache|offence: offense|omelette: omelet
paralyse: paralyze|plough: plow|pretence: pretense|programme: program|prologue: prolog|pyjamas: pajamas|sceptic: skeptic
skilful: skillful|smoulder: smolder|speciality: specialty|sulphate: sulfate|sulphide: sulfide|sulphur: sulfur
sulphuric: sulfuric|tsar: czar|tzar: czar|tyre: tire|tyres: tires|whiskey: whisky|yoghurt: yogurt
"""
_WHOLE = dict(entry.split(": ") for entry in re.split(r"[|\n]", _OTHERS.strip()))
_PATTERNS = (
    (re.compile(rf"(?<!\w)({'|'.join(_OUR.split())})our(?=s?$|ed$|ing$|able$|ful$|ite$|ites$|less$|er$|ers$|hood$)"), r"\1or"),
    (re.compile(rf"(?<!\w)({'|'.join(_RE.split())})re(s?)$"), r"\1er\2"),
    (re.compile(rf"(?<!\w)({'|'.join(_ISE.split())})is(?=e[ds]?$|ing$|ers?$|ations?$|ational$)"), r"\1iz"),
    (re.compile(rf"(?<!\w)({'|'.join(_DOUBLED.split())})l(?=ed$|ing$|ers?$)"), r"\1"),
)
_LIGATURES = tuple(
    (re.compile(rf"(?<!\w)(\w*?)({'|'.join(stems.split())})"), pair) for stems, pair in ((_AE, "ae"), (_OE, "oe"))
)


@lru_cache(maxsize=4096)
def spelt(word: str) -> str:
    """The American spelling of a word in small letters."""
    if word in _WHOLE:
        return _WHOLE[word]
    for pattern, by in _PATTERNS:
        word = pattern.sub(by, word)
    for pattern, pair in _LIGATURES:
        word = pattern.sub(lambda match, pair=pair: match[1] + match[2].replace(pair, "e"), word)  # type: ignore[misc]
    return word
