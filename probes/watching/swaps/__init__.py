"""How an engine is handed a placement while it serves. One file an engine, found by its name."""
