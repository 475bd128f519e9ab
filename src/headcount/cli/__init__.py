"""The command line: `headcount --help`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a mistake of the user's is a sentence and exit code 2."""
    from headcount.cli.app import app
    from headcount.exceptions import HeadcountError

    try:
        app()
    except HeadcountError as error:
        setting = getattr(error, "setting", None)
        hint = f" (option --{setting})" if setting else ""
        print(f"headcount: {error}{hint}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a place that cannot be written to or read from
        print(f"headcount: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("headcount: stopped.", file=sys.stderr)
        sys.exit(130)
