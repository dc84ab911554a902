"""Does it pay? Default, permutation, static plan, online and perfect balancing, side by side."""
