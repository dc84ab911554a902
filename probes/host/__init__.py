"""The host at hand: GPUs, adapters, PCI paths and what is wrong with them."""
