"""Becomes tesseract, confined: reads an image from standard input and prints its text."""

import json
import os
import sys
from pathlib import Path

from memory.files.parsers.confinement import limit_resources
from memory.files.parsers.kernel import restrict

# Programs, their libraries and the data of languages.
FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/etc/ld.so.cache")


def main() -> None:
    """Run the program of the first argument's job in place of this process."""
    job = json.loads(sys.argv[-1])
    limit_resources(job["memory_bytes"], job["cpu_s"])
    restrict((*FOLDERS, str(Path(job["program"]).resolve().parent)), programs=True)
    # Threads are among the calls that are refused.
    environment = {"OMP_THREAD_LIMIT": "1", "LC_ALL": "C.UTF-8"}
    arguments = ["tesseract", "stdin", "stdout", "-l", job["languages"]]
    os.execve(job["program"], arguments, environment)
