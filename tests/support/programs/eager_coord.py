"""The `coord` command, whose followers save after a few events, so that a kill can hit every step of that."""

import os

from coord.followers import runner
from coord.transports.cli.main import run

CWD = "TEST_CWD"

if __name__ == "__main__":
    os.chdir(os.environ.get(CWD, "."))
    runner.SAVE_EVENTS, runner.SAVE_PAUSE_MS = 7, 0
    run()
