"""Capacity factors: what engines drop that bound how much an expert takes."""
