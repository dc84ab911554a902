"""What runs of plans say of a machine's exchange: fitted on some settings and judged on others."""
