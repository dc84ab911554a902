"""Methods, one file an idea: every file here that has a `solve` is one.

None knows another, but for the portfolio `auto`.
"""
