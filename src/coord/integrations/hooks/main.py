"""The program that coding agents run for their hooks: `python -I -S main.py claude|codex|gemini [GIT-DIR]`.

The second argument names the repository that the hook was set up for; without it the hook serves all
repositories. Python compiles this file again in each run, so everything else is in `hook.py`.

An agent waits for this program before and after each call, so it starts nothing that the answer does not
need. `python -I -S -c pass` takes 5.8 ms. To that `site` would add 2 ms, `os` 0.6 ms, and the packages
around the modules of a hook 0.1 ms each. So this program loads modules by their files until it has to answer
without a hub; `hook.py` and what it loads then use `posix` in the place of `os`.
"""

import sys
from _frozen_importlib_external import SourceFileLoader

LEVELS_BELOW_PACKAGES = 4
"""How many folders above this file the packages are: hooks, integrations, coord, site-packages."""


def load(name: str) -> None:
    """Load a module of coord without the packages around it; later imports of its name find it."""
    if name not in sys.modules:
        path = f"{ROOT}/{name.replace('.', '/')}.py"
        module = type(sys)(name)
        module.__file__ = path
        SourceFileLoader(name, path).exec_module(module)
        sys.modules.setdefault(name, module)  # now that it is complete: the watcher may need it, too


def find_packages() -> None:
    """Let Python find coord and its libraries if it was started without `site` (-S)."""
    if "site" in sys.modules:
        return
    import os

    sys.path.append(ROOT)
    if not os.path.isdir(f"{ROOT}/msgspec"):  # an editable install, or libraries in several folders
        import site

        site.main()


if __name__ == "__main__":
    ROOT = __file__.rsplit("/", LEVELS_BELOW_PACKAGES)[0]
    load("coord.integrations.hooks.hook")
    from coord.integrations.hooks.hook import run

    run(sys.argv[1:], load, find_packages)
