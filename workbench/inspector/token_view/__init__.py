"""The token view: it shows a response with the rewards of its claims and tokens.

The inspector, the notebooks and exported pages share its script and style. `payload` converts
feedback to plain data, which the script draws. Text from models and files is drawn as text and
never interpreted as HTML.
"""

from workbench.inspector.token_view.page import PICTURES, VIEW, page, script, style
from workbench.inspector.token_view.payload import as_json, payload

__all__ = [
    "PICTURES",
    "VIEW",
    "as_json",
    "page",
    "payload",
    "script",
    "style",
]
