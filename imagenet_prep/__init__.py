"""ImageNet (ILSVRC2012) as TFRecord shards."""

__version__ = "0.1.0"
