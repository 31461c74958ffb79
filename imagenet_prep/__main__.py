"""``python -m imagenet_prep``."""

from imagenet_prep.cli import main

if __name__ == "__main__":
    main()
