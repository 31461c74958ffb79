"""ImageNet (ILSVRC2012) as TFRecord shards."""
