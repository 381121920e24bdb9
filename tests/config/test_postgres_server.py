"""The embedded PostgreSQL, with real servers in throw-away folders."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from config.postgres import server as embedded

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
# Uses the server until its standard input closes; prints the server's process id.
USER = """
import sys
from pathlib import Path
from config.postgres import server as embedded
data_dir = Path(sys.argv[1])
with embedded.attached(data_dir):
    embedded.install_broker(embedded.broker_url(embedded.socket_directory(data_dir)))
    print((data_dir / "postgres" / "postmaster.pid").read_text().split()[0], flush=True)
    sys.stdin.read()
"""


class User:
    """Another process that uses the server of `data_dir`."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(data_dir)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def server(self) -> int:
        assert self.process.stdout
        return int(self.process.stdout.readline())

    def leave(self) -> None:
        self.process.communicate()

    def die(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def data_dir(tmp_path) -> Iterator[Path]:
    yield tmp_path
    embedded.stop(tmp_path)


def connect(data_dir: Path) -> psycopg.Connection:
    return psycopg.connect(
        host=str(embedded.socket_directory(data_dir)), user="postgres", dbname="postgres"
    )


def answers(data_dir: Path) -> bool:
    with connect(data_dir) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def server_of(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().split()[0])


def test_a_failed_start_is_reported_with_its_error(data_dir, monkeypatch):
    log = """
        LOG:  starting PostgreSQL 18.4
        FATAL:  the database system is not yet accepting connections
        FATAL:  could not write to file "pg_wal/xlogtemp.21198": No space left on device
        LOG:  startup process (PID 21198) exited with exit code 1
        LOG:  terminating any other active server processes
        LOG:  shutting down due to startup process failure
        LOG:  database system is shut down
    """
    monkeypatch.setattr(
        embedded, "_launch", lambda folder, _: (folder / "server.log").write_text(log.strip())
    )
    with (
        pytest.raises(embedded.EmbeddedPostgresError, match="No space left on device [(]see"),
        embedded.attached(data_dir),
    ):
        pass


def test_the_last_of_two_users_stops_the_server(data_dir):
    with embedded.attached(data_dir):
        other = User(data_dir)
        assert other.server() == server_of(data_dir)
        other.leave()
        assert answers(data_dir)
    assert not embedded.is_running(data_dir)


def test_the_user_who_started_the_server_may_leave_first(data_dir):
    first = User(data_dir)
    first.server()
    with embedded.attached(data_dir):
        first.leave()
        assert answers(data_dir)
    assert not embedded.is_running(data_dir)


def test_users_who_start_at_once_share_one_server(data_dir):
    users = [User(data_dir) for _ in range(3)]
    assert len({user.server() for user in users}) == 1
    for user in users:
        user.leave()
    assert not embedded.is_running(data_dir)


def test_a_killed_user_neither_blocks_the_next_nor_keeps_the_server_alive(data_dir):
    user = User(data_dir)
    server = user.server()
    user.die()
    assert embedded.is_running(data_dir)
    with embedded.attached(data_dir):
        assert server_of(data_dir) == server
        assert answers(data_dir)
    assert not embedded.is_running(data_dir)


@pytest.mark.parametrize(
    "content",
    [
        f"{os.getpid()}\n/elsewhere\n1\n5432\n/tmp\n\n 1 1\nready   \n",
        f"{2**22 - 1}\n/elsewhere\n1\n5432\n/tmp\n\n 1 1\nready   \n",
        "",
    ],
    ids=["its number is another's now", "its process is gone", "empty"],
)
def test_a_lock_file_left_by_a_crash_does_not_stop_the_start(data_dir, content):
    with embedded.attached(data_dir):
        pass
    (data_dir / "postgres" / "postmaster.pid").write_text(content)
    assert not embedded.is_running(data_dir)
    with embedded.attached(data_dir):
        assert answers(data_dir)


def test_a_killed_server_is_started_again_with_what_it_had_committed(data_dir):
    with embedded.attached(data_dir):
        with connect(data_dir) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        server = psutil.Process(server_of(data_dir))
        server.kill()
        server.wait()
        assert not embedded.is_running(data_dir)
        embedded.start(data_dir)
        with connect(data_dir) as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)


def test_an_interrupted_first_start_is_repeated(data_dir):
    draft = data_dir / "postgres.new"
    draft.mkdir()
    (draft / "PG_VERSION").write_text("18\n")
    with embedded.attached(data_dir):
        assert answers(data_dir)
    assert not draft.exists()


def test_a_long_path_gets_a_short_socket_folder_of_its_own(data_dir):
    deep = data_dir / ("long" * 25)
    deep.mkdir()
    assert embedded.socket_directory(data_dir) == data_dir / "postgres"
    assert embedded.socket_directory(deep).parent == Path("/tmp")
    with embedded.attached(deep):
        assert answers(deep)
        assert embedded.socket_directory(deep).stat().st_mode & 0o077 == 0
    assert not embedded.socket_directory(deep).exists()


def test_a_server_that_cannot_start_reports_the_reason(data_dir):
    with embedded.attached(data_dir):
        pass
    with (data_dir / "postgres" / "postgresql.conf").open("a") as file:
        file.write("work_mem = 'plenty'\n")
    with pytest.raises(embedded.EmbeddedPostgresError, match="plenty"):
        embedded.start(data_dir)


def test_the_broker_is_installed_once_by_the_first_process(data_dir):
    with embedded.attached(data_dir):
        url = embedded.broker_url(embedded.socket_directory(data_dir))
        with ThreadPoolExecutor() as pool:
            list(pool.map(embedded.install_broker, [url] * 4))
        with connect(data_dir) as connection:
            connection.execute("SELECT pgmq.create('somequeue')")


def test_words_end_at_typographic_quotes_and_case_folds_beyond_ascii(data_dir):
    with embedded.attached(data_dir), connect(data_dir) as connection:
        text = "SELECT to_tsvector('simple', '“Hello”, Äpfel — naïve')::text"
        (words,) = connection.execute(text).fetchone()
        assert words == "'hello':1 'naïve':3 'äpfel':2"


def test_the_log_holds_nothing_that_people_wrote(data_dir):
    with embedded.attached(data_dir), connect(data_dir) as connection:
        connection.execute("CREATE TABLE diary (entry text UNIQUE)")
        connection.execute("INSERT INTO diary VALUES (%s)", ["my secret"])
        connection.commit()
        for statement in ("INSERT INTO diary VALUES (%s)", "SELECT %s::int"):
            with pytest.raises(psycopg.Error):
                connection.execute(statement, ["my secret"])
            connection.rollback()
    assert "my secret" not in (data_dir / "postgres" / "server.log").read_text()


def test_the_server_listens_on_its_socket_alone(data_dir):
    with embedded.attached(data_dir):
        server = psutil.Process(server_of(data_dir))
        assert server.net_connections("inet") == []
