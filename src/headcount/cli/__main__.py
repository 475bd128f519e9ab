"""`python -m headcount.cli`."""

from headcount.cli import main

main()
