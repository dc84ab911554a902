"""Measuring all-to-all: with nccl-tests where it is installed, else with torch.distributed."""
