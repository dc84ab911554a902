"""Memory: what lies on each GPU, what a request takes of the rest, and the constraint that a plan fits."""
