"""Dispatch and combine as engines have them: a file for each library, found by its NAME."""
