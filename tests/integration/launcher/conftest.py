"""Tests that need PyTorch run where TRAINWATCH_TEST_TORCH names a Python that has it; elsewhere they are left out."""
from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("TRAINWATCH_TEST_TORCH"):
        return
    left_out = [item for item in items if item.get_closest_marker("torch")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
