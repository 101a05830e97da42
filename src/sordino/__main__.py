"""`python -m sordino`: the command line."""

from sordino.cli.app import main

if __name__ == "__main__":
    main()
