"""Places and peoples that `workbench.extract.rules` knows: what "Lima, Peru" and "a Brazilian
footballer" say besides.
"""

from __future__ import annotations

import re
from itertools import pairwise

from workbench.extract import english

COUNTRIES = frozenset(
    "Afghanistan|Albania|Algeria|Angola|Argentina|Armenia|Australia|Austria|Azerbaijan|Bahrain|Bangladesh|Barbados|Belarus"
    "|Belgium|Belize|Benin|Bhutan|Bolivia|Bosnia and Herzegovina|Botswana|Brazil|Bulgaria|Burkina"
    " Faso|Burundi|Cambodia"
    "|Cameroon|Canada|Chad|Chile|China|Colombia|Congo|Costa Rica|Croatia|Cuba|Cyprus|Czech"
    " Republic|Denmark"
    "|Dominican Republic|Ecuador|Egypt|El"
    " Salvador|England|Eritrea|Estonia|Ethiopia|Fiji|Finland|France|Gabon|Gambia|Germany"
    "|Ghana|Greece|Guatemala|Guinea|Guyana|Haiti|Honduras|Hungary|Iceland|India|Indonesia|Iran|Iraq|Ireland|Israel|Italy"
    "|Ivory"
    " Coast|Jamaica|Japan|Jordan|Kazakhstan|Kenya|Kosovo|Kuwait|Kyrgyzstan|Laos|Latvia|Lebanon|Liberia|Libya"
    "|Lithuania|Luxembourg|Madagascar|Malawi|Malaysia|Mali|Malta|Mauritius|Mexico|Moldova|Monaco|Mongolia|Montenegro|Morocco"
    "|Mozambique|Myanmar|Namibia|Nepal|Netherlands|New Zealand|Nicaragua|Niger|Nigeria|North"
    " Korea|Northern Ireland|Norway"
    "|Oman|Pakistan|Palestine|Panama|Paraguay|Peru|Philippines|Poland|Portugal|Puerto"
    " Rico|Qatar|Romania|Russia|Rwanda"
    "|Saudi Arabia|Scotland|Senegal|Serbia|Sierra Leone|Singapore|Slovakia|Slovenia|Somalia|South"
    " Africa|South Korea|Spain"
    "|Sri Lanka|Sudan|Suriname|Sweden|Switzerland|Syria|Taiwan|Tajikistan|Tanzania|Thailand|Togo|Trinidad"
    " and Tobago|Tunisia"
    "|Turkey|Turkmenistan|Uganda|Ukraine|United Kingdom|United States|United States of"
    " America|UK|U.K.|US|U.S.|USA|U.S.A"
    "|Uruguay|Uzbekistan|Venezuela|Vietnam|Wales|Yemen|Zambia|Zimbabwe".split("|")
)
# parts of countries; "Georgia", the state or the country, is taken for a region
REGIONS = frozenset(
    "Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|Idaho|Illinois|Indiana"
    "|Iowa|Kansas|Kentucky|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri|Montana|Nebraska"
    "|Nevada|New Hampshire|New Jersey|New Mexico|New York|North Carolina|North"
    " Dakota|Ohio|Oklahoma|Oregon|Pennsylvania"
    "|Rhode Island|South Carolina|South"
    " Dakota|Tennessee|Texas|Utah|Vermont|Virginia|Washington|West Virginia|Wisconsin"
    "|Wyoming|D.C|Alberta|British Columbia|Manitoba|New Brunswick|Newfoundland|Newfoundland and"
    " Labrador|Nova Scotia|Ontario"
    "|Quebec|Saskatchewan|New South Wales|Queensland|South Australia|Tasmania|Victoria|Western"
    " Australia|Andhra Pradesh|Assam"
    "|Bihar|Goa|Gujarat|Haryana|Himachal Pradesh|Jammu and"
    " Kashmir|Jharkhand|Karnataka|Kerala|Madhya Pradesh|Maharashtra"
    "|Odisha|Punjab|Rajasthan|Tamil Nadu|Telangana|Uttar Pradesh|Uttarakhand|West"
    " Bengal|Bavaria|Saxony|Hesse|Prussia"
    "|Catalonia|Andalusia|Galicia|Sicily|Sardinia|Tuscany|Lombardy|Normandy|Brittany|Kent|Surrey|Sussex|Essex|Yorkshire"
    "|Lancashire|Cornwall|Devon|Norfolk|Suffolk|Cheshire|Jalisco|Veracruz|Chihuahua|Sonora|Oaxaca|Sindh|Tyrol".split(
        "|"
    )
)
CONTINENTS = frozenset(
    "Africa|Asia|Europe|North America|South America|Latin America|Oceania|the Middle East".split(
        "|"
    )
)
_NATION = (
    "Afghan|African|Albanian|Algerian|American|Argentine|Argentinian|Armenian|Asian|Australian|Austrian|Bangladeshi|Belgian"
    "|Bolivian|Bosnian|Brazilian|British|Bulgarian|Burmese|Cambodian|Cameroonian|Canadian|Catalan|Chilean|Chinese|Colombian"
    "|Congolese|Croatian|Cuban|Czech|Danish|Dominican|Dutch|Ecuadorian|Egyptian|English|Estonian|Ethiopian|Filipino|Finnish"
    "|French|German|Ghanaian|Greek|Haitian|Honduran|Hungarian|Icelandic|Indian|Indonesian|Iranian|Iraqi|Irish|Israeli"
    "|Italian|Jamaican|Japanese|Jordanian|Kashmiri|Kenyan|Korean|Latvian|Lebanese|Libyan|Lithuanian|Malaysian|Maltese"
    "|Mexican|Mongolian|Moroccan|Nepalese|Nigerian|Norwegian|Pakistani|Palestinian|Panamanian|Paraguayan|Persian|Peruvian"
    "|Polish|Portuguese|Puerto"
    " Rican|Romanian|Russian|Salvadoran|Scottish|Senegalese|Serbian|Singaporean|Slovak|Slovenian"
    "|Somali|South African|South"
    " Korean|Soviet|Spanish|Sudanese|Swedish|Swiss|Syrian|Taiwanese|Thai|Tunisian|Turkish|Ugandan"
    "|Ukrainian|Uruguayan|Venezuelan|Vietnamese|Welsh|Yugoslav|Zimbabwean"
)
_BEFORE = (  # a people's name: "a former Brazilian footballer", but not "a song by American singer"
    r"(?:former|retired|late|young|well|noted|renowned|prominent|professional"
    r"|[a-z-]+(?:al|ive|ous|ful|ic|ary|ing)|[a-z]\w+-\w+)"
)
_PEOPLE = re.compile(rf"(?P<people>(?:{_NATION})(?:[-–](?:{_NATION}))*) (?P<what>[a-z].*)")
# words between a people and a profession that leave the person one of the people
_KIND_OF = re.compile(
    r"(?:film|television|tv|radio|stage|theatre|theater|voice|rock|pop|folk|jazz|opera|soul|hip-hop|fashion|soccer|baseball"
    r"|basketball|tennis|cricket|rugby|golf|hockey|badminton|volleyball|handball|softball|swimming|wrestling|cycling"
    r"|racing|skating|table|ice|chess|track|field|and|football|rights|human|war|children's|stand-up"
    r"|computer|mixed|martial|arts|video|game|screen|character|comic|sports|sport|news|beauty|singer|record|music|dance"
    r"|\w+(?:[ai]c|al|ive|ous|ing|ed|ary|ern|-winning|-selling|-born))"
)
_TEACHING = re.compile(
    r"(?:teacher|tutor|professor|instructor|lecturer|scholar|translator|speaker|student|major"
    r"|football)s?\b"
)


def people_of(phrase: str) -> tuple[str, str] | None:
    """ "a former Brazilian footballer" → ("Brazilian", "a former footballer"); None where the
    people could belong to something else: an English teacher, a French horn player, an American
    football coach, the first Indian actress."""
    match = re.fullmatch(rf"(an?|one) ((?:{_BEFORE} ){{0,3}})(.+)", phrase)
    named = match and re.match(_PEOPLE, match[3])
    if not match or not named:
        return None
    said = named["what"]
    words = re.match(
        r"[\w'’-]+(?: [\w'’-]+)*",
        re.split(r",| (?:of|in|for|at|with|to|on|by|that|as|from|and)\b", said)[0],
    )
    if _TEACHING.search(words[0]):
        return None
    *kinds, head = words[0].split()
    if not english.AGENTS.search(head) or not all(_KIND_OF.fullmatch(kind) for kind in kinds):
        return None
    return named["people"], english.article(f"{match[2]}{said}")


_CAPITAL = r"[^\W\d_a-z][\w'’.-]*"
_RUN = rf"(?:{_CAPITAL} (?:(?:de|del|la|le|los|las|of|upon|on|sur|di|da|do) )*){{0,5}}{_CAPITAL}"
LAND = "|".join(sorted(map(re.escape, COUNTRIES | REGIONS), key=len, reverse=True))
WHOLE_LAND = "|".join(sorted(map(re.escape, COUNTRIES | CONTINENTS)))
_WITHIN = re.compile(
    rf"\b(?:in|at|from|to|near|called|named|(?:city|town|village|state|province|district|county|suburb|region)"
    rf" of) "
    rf"(?P<first>{_RUN}),"
    rf" (?P<all>(?:(?:{LAND}|{_RUN}), )?(?:{LAND}))(?![\w'’-]|,? (?:and|or) [A-Z]|, [A-Z]|/)"
)


def places_of(claim: str) -> list[str]:
    """What a claim says of its places: "in Lima, Peru" that Lima is in Peru. A list of places
    says nothing of the kind.
    """
    found = []
    for match in _WITHIN.finditer(claim):
        chain = [match["first"], *match["all"].split(", ")]
        level = [
            0 if name not in COUNTRIES | REGIONS else 1 if name in REGIONS else 2 for name in chain
        ]
        level = [
            number or at - len(chain) for at, number in enumerate(level)
        ]  # of places that are not known the first is within
        if level == sorted(set(level)):
            found += [f"{inner} is in {outer}." for inner, outer in pairwise(chain)]
    return found
