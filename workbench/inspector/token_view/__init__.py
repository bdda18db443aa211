"""The token view: one script and one style for the inspector, the notebooks and exported pages.

`payload` turns feedback into plain data; the script draws it. Text from models and files only
ever becomes text nodes.
"""

from workbench.inspector.token_view.page import DRAWN, VIEW, export_html, page, script, style
from workbench.inspector.token_view.payload import as_json, payload

__all__ = ["DRAWN", "VIEW", "as_json", "export_html", "page", "payload", "script", "style"]
