"""Getting files over HTTP: who we are (access), where files are (providers), and every byte exactly once (transfer)."""

BASE_URL = "https://image-net.org/data/ILSVRC/2012/"
SIGN_UP_URL = "https://image-net.org/download-images"
