"""The GPUs of this host, asked through NVML in a child process."""
