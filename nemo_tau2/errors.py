"""The one exception for bad input: what is wrong, where, and how to mend it."""


class UserError(Exception):
    """Bad input. Its message is one line a person can act on; the command line exits with 2."""
