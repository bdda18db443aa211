"""Regular expressions that are compiled at their first use.

The rules of this library have about 250 patterns. Compiling them takes a quarter of a second, which
would delay every command, also those that use none of them.
"""

import re
from typing import Any, cast


class _Lazy:
    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, value)  # later uses find it without this function
        return value


def regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return the compiled pattern, as `re.compile` does, but compile it when it is first used.

    The functions of `re` do not accept it: call its methods, such as `regex("a").sub("b", text)`.

    Raises:
        re.error: at the first use; `source` is not a regular expression.
    """
    return cast("re.Pattern[str]", _Lazy(source, flags))
