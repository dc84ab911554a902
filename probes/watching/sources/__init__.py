"""What tells the load of a running server. One file a source, found by its name."""
