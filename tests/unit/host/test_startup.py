"""Programs that run a single command start quickly."""

import subprocess
import sys


def test_a_hook_needs_no_decimals() -> None:
    """Speed of hooks: msgspec works without the module, and a later import gets the real one."""
    ask = (
        "from coord.host.startup import import_msgspec; import_msgspec(only_plain=True); import msgspec, sys;"
        "print('decimal' in sys.modules, msgspec.json.decode(b'[1.5, {}]'));"
        "import decimal; print(decimal.Decimal(1) / 4)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "False [1.5, {}]\n0.25\n"
