"""image-net.org: where its archives are, and where one signs up for them."""

from __future__ import annotations

BASE_URL = "https://image-net.org/data/ILSVRC/2012/"
SIGN_UP_URL = "https://image-net.org/download-images"
