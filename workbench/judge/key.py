"""Which key an endpoint is sent: of the environment variables that may hold one, the first that
is meant for it.
"""

from __future__ import annotations

import os

from workbench.judge.address import has_login, leads_to
from workbench.types import WorkbenchError

# the environment variable that may hold the key of whatever endpoint is named
KEY = "WORKBENCH_JUDGE_KEY"
HOSTS = {
    "OPENAI_API_KEY": ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")
}  # another's, and where alone it is sent


def key_of(url: str, variable: str | None = None) -> str | None:
    """The endpoint's key: of the `variable` that was named, else of `KEY`, else of one whose own
    host is asked.

    Raises:
        WorkbenchError: the variable that was named is not there.
    """
    if variable is not None:
        if key := os.environ.get(variable):
            return key
        raise WorkbenchError(
            "--api-key-env: no environment variable of this name is set (it takes a name, not the"
            " key)"
        )
    if has_login(url):
        return None
    fitting = (name for name, hosts in HOSTS.items() if leads_to(url, hosts))
    return next((key for name in (KEY, *fitting) if (key := os.environ.get(name))), None)
