"""What goes wrong in a launched rank before the run begins. No torch here until it does."""

import contextlib
import importlib.util
import os
from collections.abc import Iterator

from probes.ranks.launch import is_launched
from probes.ranks.party import RankBugError, RunFailed
from probes.ranks.stop import stoppable


@contextlib.contextmanager
def taking_part() -> Iterator[None]:
    """For all that a rank does from its start on: should it fail, the others hear why within seconds.

    Otherwise they would wait for it until their time is over. A fault of the run itself has been told.
    """
    try:
        yield
    except (RunFailed, RankBugError):
        raise
    except Exception as error:  # whatever it is, the others hear of it before it goes on
        if is_launched() and os.environ["WORLD_SIZE"] != "1" and importlib.util.find_spec("torch"):
            from probes.ranks.launched import tell_others

            with stoppable():
                tell_others(error)
        raise
