"""Parquet files of images, as Hugging Face's datasets write them."""

from __future__ import annotations

from imagenet_prep.recipes.layouts._sample_layout import SampleLayout

_LAYOUT = SampleLayout("parquet", lambda inspection: inspection.holders.get("parquet", ()))
recognise, describe, recipe = _LAYOUT.recognise, _LAYOUT.describe, _LAYOUT.recipe
