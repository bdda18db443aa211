"""What several test modules share."""

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Cli = Callable[..., tuple[int, str, str]]  # arguments -> exit code, stdout, stderr
