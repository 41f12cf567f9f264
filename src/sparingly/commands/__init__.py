"""The command line: each file one command or one family of commands; `main` registers them."""
