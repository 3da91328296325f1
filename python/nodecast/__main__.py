"""The command ``nodecast``, also as ``python -m nodecast``."""

import signal
import sys

from ._nodecast import main as run_command


def main() -> int:
    """Runs the command on ``sys.argv`` and returns its exit code."""
    # Python only notes that Ctrl-C was pressed and raises later, which would be when the program is over.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["nodecast", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
