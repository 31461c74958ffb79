"""TensorFlow's messages in protobuf's pure Python implementation: the one that sorts names as C++ does.

Run as a program it reads pickled messages and writes their bytes. It is a process of its own because the
implementation is chosen once a process, and because TensorFlow itself need not be loaded for its messages.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import types
from typing import Any

FeatureValue = tuple[str, list[Any]] | None
"""The list of a feature by its name in feature.proto, bytes_list and so on, and its values; None where it is unset."""


def serialize(messages: list[tuple[dict[str, FeatureValue], dict[str, list[FeatureValue]] | None]]) -> list[bytes]:
    """The deterministic bytes of Examples, and of SequenceExamples where there are feature lists."""
    environment = {**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"}
    call = [sys.executable, __file__]
    done = subprocess.run(call, input=pickle.dumps(messages), capture_output=True, check=True, env=environment)
    answers: list[bytes] = pickle.loads(done.stdout)
    return answers


def main() -> None:
    """Read from standard input, write to standard output."""
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None
    package = types.ModuleType("tensorflow")  # the package without its own code
    package.__path__ = list(spec.submodule_search_locations or [])
    sys.modules["tensorflow"] = package
    from google.protobuf.internal import api_implementation
    from tensorflow.core.example import example_pb2

    assert api_implementation.Type() == "python"
    answers = []
    for features, feature_lists in pickle.loads(sys.stdin.buffer.read()):
        example = example_pb2.Example()
        if feature_lists is not None:
            example = example_pb2.SequenceExample()
            example.feature_lists.SetInParent()
            for name, steps in feature_lists.items():
                feature_list = example.feature_lists.feature_list[name]
                for step in steps:
                    fill(feature_list.feature.add(), step)
        part = example.features if feature_lists is None else example.context
        part.SetInParent()
        for name, value in features.items():
            fill(part.feature[name], value)
        answers.append(example.SerializeToString(deterministic=True))
    sys.stdout.buffer.write(pickle.dumps(answers))


def fill(feature: Any, value: FeatureValue) -> None:
    """Set a feature's one list, be it empty; or leave it unset."""
    if value is not None:
        kind, values = value
        chosen = getattr(feature, kind)
        chosen.SetInParent()
        chosen.value.extend(values)


if __name__ == "__main__":
    main()
