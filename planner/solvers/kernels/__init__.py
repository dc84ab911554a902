"""What methods share: work on rows of slots as plain arrays, up to a Problem."""
