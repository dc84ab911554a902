"""Watching: what tells a running server's load, a file a source; how it is handed a map, a file an engine."""
