"""Fitting: linear forms fitted by their mean relative error, and judged on what they have not seen."""

from planner.fitting.relative import held_out_N, mean_error, positive_fit, relative_fit, relative_weight_N

__all__ = ["held_out_N", "mean_error", "positive_fit", "relative_fit", "relative_weight_N"]
