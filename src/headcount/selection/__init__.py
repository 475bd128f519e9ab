"""Selection of settings, classifiers and methods by their error on validation bags."""
