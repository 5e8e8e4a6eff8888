"""The examples in the docstrings of pure modules are true."""

import doctest
import importlib
import pkgutil

import pytest

import app.core

MODULES = [f"app.core.{each.name}" for each in pkgutil.iter_modules(app.core.__path__)]
OTHERS = ["app.clock", "app.sglang.protocol", "app.notifying.addresses"]


@pytest.mark.parametrize("name", [*MODULES, *OTHERS])
def test_the_examples_are_true(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))

    assert outcome.failed == 0
