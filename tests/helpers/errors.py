"""The error that a user's mistake raises."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from workbench.types import WorkbenchError


@contextmanager
def raises_error(message: str) -> Iterator[pytest.ExceptionInfo[WorkbenchError]]:
    """Expect a `WorkbenchError` of one line that the regular expression `message` matches."""
    with pytest.raises(WorkbenchError, match=message) as raised:
        yield raised
    assert "\n" not in str(raised.value)
