"""From files, or from the machine at hand, to one topology with what was found beside it."""
