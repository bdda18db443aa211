"""What the teams of the big American leagues are called without their city: "the Saints" of "New Orleans Saints".

A nickname that several teams share ("Giants") is given to each: what is asked says which league is meant. The city
alone names no
team *(the list is ours)*.
"""

from __future__ import annotations

import re
from functools import cache

_TEAMS = """
Arizona: Cardinals, Diamondbacks, Coyotes|Atlanta: Falcons, Braves, Hawks|Baltimore: Ravens, Orioles
Boston: Red Sox, Celtics, Bruins|Brooklyn: Nets, Dodgers|Buffalo: Bills, Sabres|Calgary: Flames|Carolina: Panthers, Hurricanes
Charlotte: Hornets, Bobcats|Chicago: Bears, Cubs, White Sox, Bulls, Blackhawks|Cincinnati: Bengals, Reds
Cleveland: Browns, Indians, Guardians, Cavaliers|Colorado: Rockies, Avalanche|Columbus: Blue Jackets
Dallas: Cowboys, Mavericks, Stars|Denver: Broncos, Nuggets|Detroit: Lions, Tigers, Pistons, Red Wings|Edmonton: Oilers
Florida: Panthers, Marlins|Golden State: Warriors|Green Bay: Packers|Houston: Texans, Astros, Rockets, Oilers
Indiana: Pacers|Indianapolis: Colts|Jacksonville: Jaguars|Kansas City: Chiefs, Royals|Las Vegas: Raiders, Golden Knights
Los Angeles: Rams, Chargers, Dodgers, Angels, Lakers, Clippers, Kings, Raiders|Memphis: Grizzlies
Miami: Dolphins, Marlins, Heat|Milwaukee: Brewers, Bucks, Braves|Minnesota: Vikings, Twins, Timberwolves, Wild
Montreal: Canadiens, Expos|Nashville: Predators|New England: Patriots|New Jersey: Devils, Nets|New Orleans: Saints, Pelicans
New York: Giants, Jets, Yankees, Mets, Knicks, Rangers, Islanders|Oakland: Athletics, Raiders|Oklahoma City: Thunder
Orlando: Magic|Ottawa: Senators|Philadelphia: Eagles, Phillies, 76ers, Flyers|Phoenix: Suns, Coyotes
Pittsburgh: Steelers, Pirates, Penguins|Portland: Trail Blazers|Sacramento: Kings|San Antonio: Spurs
San Diego: Padres, Chargers|San Francisco: 49ers, Giants|San Jose: Sharks|Seattle: Seahawks, Mariners, SuperSonics, Kraken
St. Louis: Cardinals, Rams, Blues|Tampa Bay: Buccaneers, Rays, Lightning|Tennessee: Titans|Texas: Rangers
Toronto: Blue Jays, Raptors, Maple Leafs|Utah: Jazz|Vancouver: Canucks|Vegas: Golden Knights
Washington: Redskins, Commanders, Nationals, Wizards, Capitals|Winnipeg: Jets|Anaheim: Ducks, Angels|Anaheim Mighty: Ducks
"""


@cache
def _nicknames() -> dict[str, str]:
    entries = (entry.partition(": ") for entry in re.split(r"[|\n]", _TEAMS.strip()))
    return {f"{city} {name}".lower(): name for city, _, names in entries for name in names.split(", ")}


def nicknamed(team: str) -> str | None:
    """The nickname of a team that is named in full; None of anything else."""
    return _nicknames().get(team.strip().removeprefix("the ").removeprefix("The ").lower())
