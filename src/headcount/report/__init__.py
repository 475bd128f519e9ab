"""Results to tables, tests and figures; everything here reads the tidy results table."""
