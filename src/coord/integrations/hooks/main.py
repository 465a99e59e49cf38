"""The program that coding agents run for their hooks: `python -I -S main.py claude|codex|gemini [GIT-DIR]`.

The second argument names the repository that the hook was set up for; without it the hook serves all
repositories. Python compiles this file again in each run, so everything else is in `hook.py`.
"""

import gc
import os
import sys

LEVELS_BELOW_PACKAGES = 4
"""How many folders above this file the packages are: hooks, integrations, coord, site-packages."""


def find_packages() -> None:
    """Let Python find coord and its libraries if it was started without `site` (-S), 2 ms earlier."""
    if "site" in sys.modules:
        return
    root = os.path.abspath(__file__)
    for _ in range(LEVELS_BELOW_PACKAGES):
        root = os.path.dirname(root)
    sys.path.append(root)
    if not os.path.isdir(f"{root}/msgspec"):  # an editable install, or libraries in several folders
        import site

        site.main()


if __name__ == "__main__":
    gc.disable()  # the process ends before garbage matters
    find_packages()
    from coord.integrations.hooks.hook import run

    run(sys.argv[1:])
