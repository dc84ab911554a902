"""The plan's own dispatch, expert compute and combine, run by one process a GPU."""
