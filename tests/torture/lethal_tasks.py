"""The Celery application with a task that kills its process, and one that does not."""

import os
import signal
from pathlib import Path

from config.celery import app

__all__ = ["app", "die", "write"]


@app.task(name="tests.lethal.die")
def die(path: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="tests.lethal.write")
def write(path: str) -> None:
    Path(path).touch()
