"""All-to-all bandwidth: measured here, or read from nccl-tests; fitted, and put into a topology."""
