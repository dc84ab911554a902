"""What engines share: the interface, commands and scripts, releases, DeepEP's limits, vLLM's words."""
