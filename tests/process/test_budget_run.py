"""A whole run ends near its token budget: real processes, answers that run to their end."""

from pathlib import Path

import pytest

from benchmarks.budget_run import BAR, BUDGET_TOKENS, spend


@pytest.mark.slow
def test_a_real_run_ends_near_its_token_budget(tmp_path: Path) -> None:
    spent = spend(tmp_path, BUDGET_TOKENS)

    assert abs(spent.off_ratio) <= BAR
    assert spent.wasted_tokens == 0
    assert spent.n_left > 0
