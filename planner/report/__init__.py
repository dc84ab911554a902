"""What a person reads: tables and pictures made of values. Nothing here prints."""
