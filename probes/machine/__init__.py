"""From facts to one machine: hosts merged, domains found, a topology where every needed number is known."""
