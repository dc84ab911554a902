"""What can be wrong with what a person gave us.

A fault of our own is an ordinary exception and keeps its traceback.

BadInput                a file, a flag or a value we cannot use         exit code 2
└── Infeasible          a question that has no answer, and its nearest ones that have
Stopped                 a signal that asks us to end, as Ctrl-C does    exit code 128 and its number
"""

import signal


class BadInput(Exception):
    """One line for the person who gave the input: what is wrong, where, which value, what to do."""


class Infeasible(BadInput):
    """The question has no answer; the message names the broken rule and the nearest feasible questions."""


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end; it unwinds as on Ctrl-C. `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number
