"""What tests of the whole chain need: a real server, and the trainers' own environment.

A test here is never skipped: without the variables that script/test-trainers sets it fails and
says what to run.
"""

import os
from pathlib import Path

import pytest

from tests.sglang.conftest import make_real_server, real_server, sglang_home

__all__ = ["make_real_server", "real_server", "sglang_home"]  # fixtures, found by their names

HOME_VARIABLE = "LONGWATCH_TRAINERS_HOME"
TEST_BOUND_S = 900


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("real_sglang")
            item.add_marker(pytest.mark.timeout(TEST_BOUND_S))


@pytest.fixture(scope="session")
def trainers() -> Path:
    """The folder of the trainers' environment, whose `bin` has `python` and `speculators`."""
    value = os.environ.get(HOME_VARIABLE)
    if not value or not (Path(value) / "ready").exists():
        pytest.fail(
            f"{HOME_VARIABLE} names no environment: run script/test-trainers", pytrace=False
        )
    return Path(value)
