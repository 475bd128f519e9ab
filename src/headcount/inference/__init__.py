"""How sure an estimate is: simulated bags, posteriors, intervals, diagnoses, limits, tests."""
