"""This host: GPUs, adapters, PCI paths and what is wrong with them."""
