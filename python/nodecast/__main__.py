"""The command ``nodecast``, also as ``python -m nodecast``."""

import signal
import sys

from . import _nodecast


def main() -> int:
    """Runs the command on ``sys.argv`` and returns its exit code."""
    # Python only notes that Ctrl-C was pressed and raises later, which would be when the program is over.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _nodecast.main(["nodecast", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
