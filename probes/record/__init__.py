"""What a probe found, as a file: written, read back, merged, made anonymous."""
