"""What can be wrong with what a person gave us.

A fault of our own is an ordinary exception and keeps its traceback.

BadInput                a file, a flag or a value we cannot use         exit code 2
└── Infeasible          a question that has no answer, and its nearest ones that have
"""


class BadInput(Exception):
    """One line for the person who gave the input: what is wrong, where, which value, what to do."""


class Infeasible(BadInput):
    """The question has no answer; the message names the broken rule and the nearest feasible questions."""
