"""Fits: the constants of the cost model out of published tables, as constants.yaml keeps them."""

from planner.bench.fits.refit import GPU_MODELS, PHASE_TABLES, Refit, refit
from planner.bench.fits.tables import Tables, read_tables

__all__ = ["GPU_MODELS", "PHASE_TABLES", "Refit", "Tables", "read_tables", "refit"]
