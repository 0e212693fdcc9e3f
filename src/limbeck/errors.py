"""The one exception that is meant for the person at the keyboard."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what the user gave: one line that says what, where, and what to do.

    The command line prints it without a traceback and exits with code 2. The text never holds a
    value from a private row.
    """


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to say after a word that is not known: the nearest that is, or all of them.

    Examples
    --------
    >>> suggestion("techers", ["teachers", "steps"])
    "; did you mean 'teachers'?"
    >>> suggestion("x", ["b", "a"])
    '; choose from: b, a'
    """
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean '{near[0]}'?" if near else f"; choose from: {', '.join(known)}"
