"""Settings, methods and scores chosen by the error on bags."""
