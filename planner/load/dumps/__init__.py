"""What serving engines write down of their load. One file an engine."""
