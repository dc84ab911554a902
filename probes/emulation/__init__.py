"""Emulated clusters on one Linux machine, of network namespaces with shaped links."""
