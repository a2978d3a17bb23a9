"""`python -m dpscreen` is the command `dpscreen`."""

from dpscreen.cli import main

if __name__ == "__main__":
    main()
