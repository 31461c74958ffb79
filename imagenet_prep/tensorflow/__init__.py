"""TensorFlow: dataset gives batches for training; parse_example and feature_spec serve your own pipelines."""

import importlib.util

if importlib.util.find_spec("tensorflow") is None:
    needs = "imagenet_prep.tensorflow needs TensorFlow: pip install 'imagenet-prep[tensorflow]'"
    raise ModuleNotFoundError(needs, name="tensorflow")

from imagenet_prep.tensorflow.input_pipeline import dataset, feature_spec, parse_example

__all__ = ["dataset", "feature_spec", "parse_example"]
