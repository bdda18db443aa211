"""The model card of a tiny policy as Markdown, from the numbers of its build."""

from pathlib import Path

from workbench.types import JsonMapping
from workbench.world.documents import DOCUMENTS, THINK_SHARE
from workbench.world.world import World

TEMPLATE = Path(__file__).with_name("card.md")


def card_text(card: JsonMapping, world: World) -> str:
    """Return the model card as Markdown.

    Args:
        card: the numbers that `build_policy` writes into `card.json`.
        world: the world that the policy was trained on.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(card, world=world, documents=DOCUMENTS, thought=THINK_SHARE)
