"""The network between hosts: switches, cables, rails, and names that tools give them."""
