"""TFRecord files and tf.train.Examples: bytes in, values out."""
