"""The API under ``/api/v1``: everything that the pages do."""
