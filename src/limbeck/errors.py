"""The one exception that is meant for the person at the keyboard."""


class UserError(Exception):
    """A mistake in what the user gave: one line that says what, where, and what to do.

    The command line prints it without a traceback and exits with code 2. The text never holds a
    value from a private row.
    """
