"""How Strata's processes are called, each as a command. Any number of each may run, anywhere."""

import sys

PYTHON = [sys.executable, "-m"]


def web(port: int, host: str = "127.0.0.1") -> list[str]:
    # What proxies say is weighed in one place: STRATA_TRUSTED_PROXIES.
    return [
        *(*PYTHON, "uvicorn", "config.asgi:application", "--host", host, "--port", str(port)),
        *("--no-proxy-headers", "--no-access-log", "--log-level", "warning"),
        *("--timeout-graceful-shutdown", "5"),
    ]


def worker(*queues: str) -> list[str]:
    """One that takes from these queues and does two things at a time."""
    return [
        *(*PYTHON, "celery", "-A", "config", "--quiet", "worker"),
        *("--concurrency", "2", "-Q", ",".join(queues)),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]


def beat() -> list[str]:
    """One of those that take turns: see config/beat.py."""
    return [*PYTHON, "celery", "-A", "config", "--quiet", "beat", "--pidfile="]
