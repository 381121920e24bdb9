"""Runs tesseract without rights: it reads an image from standard input and prints its text."""

import json
import os
import sys
from pathlib import Path

from memory.files.parsers.confinement import limit_resources
from memory.files.parsers.kernel import restrict

# The folders of programs, their libraries and language data, which tesseract may read.
FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/opt", "/etc/ld.so.cache")


def main() -> None:
    """Replace this process by the program that the job in the first argument names."""
    job = json.loads(sys.argv[-1])
    limit_resources(job["memory_bytes"], job["cpu_s"])
    restrict((*FOLDERS, str(Path(job["program"]).resolve().parent)), programs=True)
    # One thread, because the system calls that start threads are refused.
    environment = {"OMP_THREAD_LIMIT": "1", "LC_ALL": "C.UTF-8"}
    arguments = ["tesseract", "stdin", "stdout", "-l", job["languages"]]
    os.execve(job["program"], arguments, environment)
