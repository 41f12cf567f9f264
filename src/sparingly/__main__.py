"""`python -m sparingly` is the command `sparingly`."""

from sparingly.cli import main

if __name__ == "__main__":
    main()
