"""Commands of manage.py in processes that need not start from nothing: `python -m tests.commands`
reads from its input what to run, forks, and says how it ended.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock

ROOT = Path(__file__).resolve().parents[1]


class Commands:
    """Runs commands of manage.py in `environment`; what they have in common is imported once."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen | None = None
        self._alone = Lock()

    def run(self, *arguments: str) -> str:
        """What it printed. Raises CalledProcessError when it fails."""
        with self._alone, NamedTemporaryFile("r") as printed:
            if self._process is None:
                self._process = self._start()
            process = self._process
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps([arguments, printed.name]) + "\n")
            process.stdin.flush()
            status = int(process.stdout.readline())
            text = printed.read()
            if status:
                raise subprocess.CalledProcessError(status, ["manage.py", *arguments], text)
            return text

    def end(self) -> None:
        if self._process is not None:
            self._process.communicate()

    def _start(self) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.commands"],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


def _serve() -> None:
    import django

    django.setup()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        arguments, output = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(arguments, output)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _become(arguments: list[str], output: str) -> None:
    """This process runs a command, printing to the file `output`, and ends."""
    import manage

    for descriptor, path in ((0, os.devnull), (1, output)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, descriptor)
        os.close(opened)
    try:
        sys.argv = ["manage.py", *arguments]
        manage.main()
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    _serve()
