"""The wait policy of torch's threads is set before torch is imported; the user's variables stay."""

import json

import pytest

from tests.helpers import run_python
from workbench.util.threads import SPINS

ASKS = (
    "import json, os; from workbench.util.threads import use_threads; use_threads(1);"
    " print(json.dumps(dict(os.environ)))"
)
NAMES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, ("PASSIVE", str(SPINS))),
        ({"OMP_WAIT_POLICY": "active"}, ("active", None)),
        ({"OMP_WAIT_POLICY": "passive"}, ("passive", None)),
        ({"GOMP_SPINCOUNT": "7"}, ("PASSIVE", "7")),
    ],
)
def test_the_wait_policy_of_threads(
    said: dict[str, str], found: tuple[str | None, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    environment = json.loads(run_python("-c", ASKS, env=said, check=True).stdout)
    assert tuple(environment.get(name) for name in NAMES) == found
