"""How large a model may be: far past any that exists, and small enough that no file takes all memory."""

MOST_LAYERS = 10_000
MOST_EXPERTS = 100_000
LARGEST_WIDTH = 10_000_000  # elements of a vector, heads, ranks, tokens of a window
MOST_CELLS = 1 << 24  # experts of all layers together
