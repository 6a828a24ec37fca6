"""`python -m dmsgd`: the command line."""

from dmsgd.commands import main

if __name__ == "__main__":
    main()
