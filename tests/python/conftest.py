"""What the tests share."""

import numpy as np
import pytest


@pytest.fixture
def random():
    """Numbers that are the same in every run."""
    return np.random.default_rng(20260101)
