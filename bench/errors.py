"""What the user can put right: one line on stderr, exit status 2."""


class UserError(ValueError):
    """Its text repeats what was given and says what would have been accepted."""
