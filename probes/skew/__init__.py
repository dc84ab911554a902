"""The benchmark of skew: all-to-alls under known loads in emulated clusters, measured beside predicted."""
