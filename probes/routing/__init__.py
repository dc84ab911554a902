"""Recording routing: which experts a model chooses, from its own forward pass or from a running server."""
