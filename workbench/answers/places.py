"""Countries and their parts, so that "Paris, France" is one place and "Paris, Lyon" two guesses.

A list *(ours)* of names that are nearly always those of a country or of a state, and of cities
that must not be put anywhere else: "Paris, Texas" is not Paris. A city that is not listed may
lie anywhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from workbench.answers.text import normalise

_COUNTRIES = """
Afghanistan: Kabul|Albania: Tirana|Algeria: Algiers, Oran|Argentina: Buenos Aires, Rosario|Armenia: Yerevan
Australia: Canberra, Sydney, Melbourne, Brisbane, Perth, Adelaide|Austria: Vienna, Salzburg, Graz, Innsbruck, Linz
Azerbaijan: Baku|Bangladesh: Dhaka|Belarus: Minsk|Belgium: Brussels, Antwerp, Ghent, Bruges|Bolivia: La Paz, Sucre
Bosnia and Herzegovina: Sarajevo|Botswana: Gaborone|Brazil: Brasília, Rio de Janeiro, São Paulo|Bulgaria: Sofia
Cambodia: Phnom Penh|Cameroon: Yaoundé|Canada: Ottawa, Toronto, Montreal, Vancouver, Calgary, Quebec City
Chile: Santiago, Valparaíso|China: Beijing, Shanghai, Guangzhou, Shenzhen, Wuhan|Colombia: Bogotá, Medellín
Costa Rica: San José|Croatia: Zagreb, Split|Cuba: Havana|Cyprus: Nicosia|Czech Republic: Prague, Brno|Czechia: Prague, Brno
Denmark: Copenhagen, Aarhus|Dominican Republic: Santo Domingo|Ecuador: Quito|Egypt: Cairo, Alexandria, Giza
El Salvador: San Salvador|Estonia: Tallinn|Ethiopia: Addis Ababa|Finland: Helsinki, Turku
France: Paris, Lyon, Marseille, Nice, Bordeaux, Toulouse, Strasbourg, Lille, Nantes
Germany: Berlin, Munich, Hamburg, Frankfurt, Cologne, Bonn, Dresden, Leipzig, Stuttgart|Ghana: Accra, Kumasi
Greece: Athens, Thessaloniki|Guatemala: Guatemala City|Haiti: Port-au-Prince|Honduras: Tegucigalpa|Hungary: Budapest
Iceland: Reykjavik|India: New Delhi, Delhi, Mumbai, Kolkata, Chennai, Bangalore|Indonesia: Jakarta|Iran: Tehran|Iraq: Baghdad
Ireland: Dublin, Cork, Galway|Israel: Jerusalem, Tel Aviv
Italy: Rome, Milan, Naples, Turin, Florence, Venice, Genoa, Bologna
Jamaica: Kingston|Japan: Tokyo, Osaka, Kyoto, Nagoya, Sapporo|Kazakhstan: Astana, Almaty|Kenya: Nairobi, Mombasa|Laos: Vientiane
Latvia: Riga|Lebanon: Beirut|Libya: Tripoli|Lithuania: Vilnius|Madagascar: Antananarivo|Malaysia: Kuala Lumpur|Mali: Bamako
Malta: Valletta|Mexico: Mexico City, Guadalajara, Monterrey|Mongolia: Ulaanbaatar|Morocco: Rabat, Casablanca, Marrakesh
Mozambique: Maputo|Myanmar: Yangon|Namibia: Windhoek|Nepal: Kathmandu|Netherlands: Amsterdam, Rotterdam, The Hague, Utrecht
New Zealand: Wellington, Auckland, Christchurch|Nicaragua: Managua|Nigeria: Abuja, Lagos|North Korea: Pyongyang
Norway: Oslo, Bergen, Trondheim|Pakistan: Islamabad, Karachi, Lahore|Panama: Panama City|Paraguay: Asunción|Peru: Lima, Cusco
Philippines: Manila|Poland: Warsaw, Kraków, Gdańsk|Portugal: Lisbon, Porto|Romania: Bucharest|Rwanda: Kigali
Russia: Moscow, Saint Petersburg, St. Petersburg, Novosibirsk|Saudi Arabia: Riyadh, Mecca, Medina, Jeddah|Senegal: Dakar
Serbia: Belgrade|Singapore: Singapore|Slovakia: Bratislava|Slovenia: Ljubljana|Somalia: Mogadishu
South Africa: Cape Town, Johannesburg, Pretoria, Durban|South Korea: Seoul, Busan|Spain: Madrid, Barcelona, Seville, Valencia
Sri Lanka: Colombo|Sudan: Khartoum|Sweden: Stockholm, Gothenburg|Switzerland: Bern, Zurich, Geneva, Basel, Lausanne
Syria: Damascus, Aleppo|Taiwan: Taipei|Tanzania: Dodoma, Dar es Salaam|Thailand: Bangkok|Tunisia: Tunis
Turkey: Ankara, Istanbul, Izmir|Uganda: Kampala|Ukraine: Kyiv, Kiev, Odesa, Lviv|Uruguay: Montevideo|Uzbekistan: Tashkent
Venezuela: Caracas|Vietnam: Hanoi, Ho Chi Minh City|Yemen: Sanaa|Zambia: Lusaka|Zimbabwe: Harare
"""
_PARTS = """
United States, United States of America, USA, US, U.S., U.S.A., America: Alabama, Alaska, Arizona, Arkansas, California,
Colorado, Connecticut, Delaware, Florida, Georgia, Hawaii, Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine,
Maryland, Massachusetts, Michigan, Minnesota, Mississippi, Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey,
New Mexico, New York, North Carolina, North Dakota, Ohio, Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina,
South Dakota, Tennessee, Texas, Utah, Vermont, Virginia, Washington, West Virginia, Wisconsin, Wyoming, D.C., DC
United Kingdom, UK, U.K., Great Britain, Britain: England, Scotland, Wales, Northern Ireland
Canada: Ontario, Quebec, Nova Scotia, New Brunswick, Manitoba, British Columbia, Saskatchewan, Alberta, Newfoundland
Australia: New South Wales, Queensland, South Australia, Tasmania, Western Australia
Germany: Bavaria, Saxony, Hesse|India: Kerala, Gujarat, Rajasthan, Karnataka, Tamil Nadu, Punjab|Japan: Hokkaido
Italy: Tuscany, Sicily, Lombardy|Spain: Catalonia, Andalusia|Ireland: County Cork, County Galway
England: Kent, Essex, Surrey, Sussex, Norfolk, Suffolk, Cornwall, Devon, Yorkshire, Lancashire, Hampshire, Cheshire
"""
_TOWNS = """
England: London, Liverpool, Manchester, Birmingham, Leeds, Bristol, Oxford, Cambridge, York|Scotland: Edinburgh, Glasgow
Wales: Cardiff|Northern Ireland: Belfast|Illinois: Chicago|California: Los Angeles, San Francisco, San Diego
Texas: Houston, Dallas
New York: New York City, Brooklyn, Buffalo|Massachusetts: Boston|Pennsylvania: Philadelphia, Pittsburgh
Tennessee: Memphis, Nashville|Michigan: Detroit
Georgia: Atlanta|Washington: Seattle|Florida: Miami, Orlando
Colorado: Denver|Ohio: Cleveland, Cincinnati
Louisiana: New Orleans|Nevada: Las Vegas|Hawaii: Honolulu|D.C.: Washington|DC: Washington|Maryland: Baltimore
"""
_NAME = r"[A-ZÀ-Þ][\w'’.-]*(?:[ -](?:(?:of|de|da|do|es|la|and|au) )?[A-ZÀ-Þ][\w'’-]*){0,4}"


def _entries(*tables: str) -> Iterator[tuple[set[str], set[str]]]:
    """The names of each larger place, and what lies in it."""
    for table in tables:
        for entry in re.split(r"[|\n](?=[^:|\n]+:)", table.strip()):
            whole, _, parts = entry.replace("\n", " ").partition(":")
            yield (
                {name.strip() for name in whole.split(",")},
                {part.strip() for part in parts.split(",")},
            )


@cache
def _within() -> dict[str, frozenset[str]]:
    """For each place that is listed the larger ones that it may be put in; a country may be put
    in none.
    """
    above: dict[str, set[str]] = defaultdict(set)
    for names, parts in _entries(_COUNTRIES, _PARTS, _TOWNS):
        for part in parts:
            above[part] |= names
        for name in names:
            above[name] |= set()
    for _ in range(2):  # a town of England lies in Britain too
        above = {
            name: wholes.union(*(above[whole] for whole in wholes))
            for name, wholes in above.items()
        }
    return {name: frozenset(wholes - {name}) for name, wholes in above.items()}


@cache
def _known() -> dict[str, frozenset[str]]:
    return {normalise(name): wholes for name, wholes in _within().items()}


def wholes(name: str) -> frozenset[str] | None:
    """The regions that a listed place lies in; None of what is not listed."""
    return _known().get(normalise(name))


@cache
def regions() -> frozenset[str]:
    """The names of countries and of their parts."""
    parts = {part for _, parts in _entries(_PARTS) for part in parts}
    return frozenset(parts.union(*(names for names, _ in _entries(_COUNTRIES, _PARTS, _TOWNS))))


@cache
def _placed() -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(regions(), key=len, reverse=True)))
    outer = rf"(?:in )?(?:(?:present|modern)-day |modern )?(?P<outer>{names})(?![\w’'-])"
    return re.compile(rf"(?P<inner>{_NAME}),\s+{outer}(?!,?\s+(?:[A-Z]|and\b|or\b))")


def place(text: str) -> str:
    """The text with "Paris in France" for "Paris, France"; what is put where it does not lie
    keeps its comma.
    """
    if (
        text.islower()
        and len(text) < 60
        and "," in text
        and (titled := place(text.title())) != text.title()
    ):
        return titled
    for _ in range(3):  # "Chicago, Illinois, USA" from its end
        placed = _placed().sub(_in, text) if "," in text else text
        if placed == text:
            break
        text = placed
    return text


def _in(match: re.Match[str]) -> str:
    inner, outer = match["inner"], match["outer"]
    return f"{inner} in {outer}" if outer in _wholes(inner, outer) else match[0]


def _wholes(inner: str, outer: str) -> frozenset[str]:
    """Where a name may lie; one that is not listed anywhere, and "in Chicago" of "She lives in
    Chicago" by its last words.
    """
    words = inner.split(" ")
    known = (_within().get(" ".join(words[start:])) for start in range(len(words)))
    return next((wholes for wholes in known if wholes is not None), frozenset({outer}))
