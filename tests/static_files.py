"""Look up the paths of static files once in a process."""

from whitenoise.middleware import WhiteNoiseMiddleware

FOUND: dict = {}
_look = WhiteNoiseMiddleware.add_files_from_finders


def _look_once(middleware: WhiteNoiseMiddleware) -> None:
    if not FOUND:
        _look(middleware)
        FOUND.update(middleware.files)
    middleware.files.update(FOUND)


def once() -> None:
    """From now on: each test client makes its own middleware, and would look at every file."""
    WhiteNoiseMiddleware.add_files_from_finders = _look_once
