"""`python -m coord` is the `coord` command."""

from coord.transports.cli.main import run

if __name__ == "__main__":
    run()
