"""Processes that work together: start them, watch them, name the one that is missing."""
