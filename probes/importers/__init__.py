"""From files that other tools wrote to facts. One file a kind; adding one touches no other."""
