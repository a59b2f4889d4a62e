"""``python -m stirred``: the command ``stirred``."""

from stirred.cli import main

if __name__ == "__main__":
    main()
