"""Getting files over HTTP: who we are (access) and every byte exactly once (transfer)."""
