"""`python -m sparingly` is the command `sparingly`."""

from sparingly.commands.main import main

if __name__ == "__main__":
    main()
