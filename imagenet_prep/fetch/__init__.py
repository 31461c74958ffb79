"""Getting files over HTTP: sign-in (access), the sites (providers),
and every byte exactly once (transfer).
"""

BASE_URL = "https://image-net.org/data/ILSVRC/2012/"
SIGN_UP_URL = "https://image-net.org/download-images"

USERNAME_VARIABLE = "IMAGENET_USERNAME"
ACCESS_KEY_VARIABLE = "IMAGENET_ACCESS_KEY"
