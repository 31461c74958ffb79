"""TensorFlow as a fixture: it takes seconds to import,
so that only tests which use it wait for it.
"""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest


@pytest.fixture(scope="session")
def tf() -> Any:
    """The tensorflow module, quiet and on the CPU."""
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    import tensorflow

    gc.freeze()
    return tensorflow
