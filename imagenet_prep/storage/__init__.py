"""Where bytes go and come from."""
