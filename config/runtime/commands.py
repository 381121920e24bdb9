"""The command lines of Strata's processes. Any number of each may run, on any machine."""

import sys

PYTHON = [sys.executable, "-m"]


def web(port: int, host: str = "127.0.0.1") -> list[str]:
    # Proxy headers are evaluated in one place only: by STRATA_TRUSTED_PROXIES.
    return [
        *(*PYTHON, "uvicorn", "config.asgi:application", "--host", host, "--port", str(port)),
        *("--no-proxy-headers", "--no-access-log", "--log-level", "warning"),
        *("--timeout-graceful-shutdown", "5"),
    ]


def worker(*queues: str, pool: str = "prefork", concurrency: int = 2) -> list[str]:
    """Return the command of a worker that consumes these queues, `concurrency` tasks at a time.

    The pool `threads` is for tasks that mostly wait, and needs no process for each of them. It has
    no time limits; its tasks have their own limits.
    """
    return [
        *(*PYTHON, "celery", "-A", "config", "--quiet", "worker"),
        *(("--pool", pool) if pool != "prefork" else ()),
        *("--concurrency", str(concurrency), "-Q", ",".join(queues)),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]


def beat() -> list[str]:
    """Return the command of beat. Several beats elect a leader (config/broker/scheduler.py)."""
    return [*PYTHON, "celery", "-A", "config", "--quiet", "beat", "--pidfile="]
