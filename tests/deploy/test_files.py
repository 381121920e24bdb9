"""The files in deploy/ match the processes that they start."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest
import uvicorn
import yaml
from django.conf import settings
from django.core.management import call_command, get_commands, load_command_class
from django.urls import NoReverseMatch, reverse

from config.runtime import web
from tests.shape.ports import reserved_port

ROOT = Path(settings.BASE_DIR)
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
PYTHON = "/opt/strata/.venv/bin/python"
# Which tasks a worker has at a time, and where the web listens, is for who deploys it to say.
CHOSEN = {"${STRATA_CONCURRENCY}": "2", "4": "2", "%i": "8000", "0.0.0.0": "127.0.0.1"}


def command(words: list[str]) -> list[str]:
    """A command without the interpreter's place, and with choices as the tests make them."""
    return [CHOSEN.get(word, word) for word in words[1:]]


def of_ours(words: list[str]) -> bool:
    """Whether it is a command of manage.py."""
    parsed = command(words)
    if "--queues" in words:
        # A unit's queue is the name of its instance.
        parsed[words.index("--queues")] = "chat"
    return parsed[0] == "manage.py" and container_runs(parsed[1:])


def container_runs(words: list[str]) -> bool:
    """Whether the image's entry point knows this command and these options."""
    load_command_class("config", words[0]).create_parser("strata", words[0]).parse_args(words[1:])
    return words[0] in get_commands()


def exec_start(unit: Path) -> list[str]:
    [line] = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
    assert line.startswith(f"{PYTHON} ")
    return line.split()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_what_up_starts(unit):
    assert of_ours(exec_start(unit))


@pytest.mark.parametrize(("options", "seconds"), [(["--drain", "25"], 25), ([], 5)])
def test_a_web_process_leaves_proxy_headers_to_the_settings_and_stops_in_time(
    monkeypatch, options, seconds
):
    started: list[uvicorn.Config] = []
    monkeypatch.setattr(web.Server, "run", lambda server, sockets: started.append(server.config))
    monkeypatch.chdir(ROOT)
    with reserved_port()[0] as reservation:
        port = reservation.getsockname()[1]
        call_command("run", "web", "--port", str(port), *options)
    [config] = started
    assert (config.proxy_headers, config.timeout_graceful_shutdown) == (False, seconds)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_fenced_in(unit):
    configuration = unit.read_text()
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "User=strata", "PrivateTmp=yes"):
        assert line in configuration.splitlines()


@pytest.mark.parametrize(
    "unit", [unit for unit in UNITS if "@" in unit.name], ids=lambda unit: unit.name
)
def test_a_unit_counts_where_all_of_its_machine_do(unit):
    configuration = unit.read_text().splitlines()
    assert "Environment=PROMETHEUS_MULTIPROC_DIR=%t/strata" in configuration
    assert "RuntimeDirectory=strata" in configuration
    # Else whichever stops takes the counts of all others along.
    assert "RuntimeDirectoryPreserve=yes" in configuration


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
def test_systemd_takes_the_units(tmp_path):
    for unit in UNITS:
        text = unit.read_text().replace(PYTHON, sys.executable).replace("/opt/strata", str(ROOT))
        (tmp_path / unit.name).write_text(text)
    instances = [
        str(tmp_path / unit.name.replace("@.", "@chat." if "worker" in unit.name else "@8000."))
        for unit in UNITS
    ]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *instances], capture_output=True, text=True
    )
    ours = [line for line in done.stderr.splitlines() if "strata-" in line]
    assert not ours


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((DEPLOY / "docker/compose.production.yml").read_text())


@pytest.mark.parametrize(
    "check",
    [
        [
            *("check-jsonschema", "--builtin-schema", "vendor.compose-spec"),
            *("compose.yml", "compose.production.yml"),
        ],
        ["hadolint", "--no-color", "Dockerfile"],
    ],
    ids=lambda check: check[0],
)
def test_those_who_know_containers_find_nothing(check):
    linter, *arguments = check
    path = Path(sys.executable).with_name(linter)
    done = subprocess.run(
        [path, *arguments], cwd=DEPLOY / "docker", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_containers_start_what_up_starts(compose):
    ours = [service for service in compose["services"].values() if service["image"] == "strata"]
    commands = [service["command"] for service in ours if "command" in service]
    assert all(map(container_runs, commands))
    queues = {words[words.index("--queues") + 1] for words in commands if "--queues" in words}
    assert queues == set(settings.QUEUES)
    assert len(ours) == len(commands)


def test_containers_name_what_there_is(compose):
    for service in compose["services"].values():
        for needed in service.get("depends_on", ()):
            assert needed in compose["services"]
        for secret in service.get("secrets", ()):
            assert secret in compose["secrets"]
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            known = source in compose["volumes"] or (DEPLOY / "docker" / source).exists()
            assert known, volume


def test_containers_count_where_any_web_process_tells_of_it(compose):
    ours = [item for item in compose["services"].values() if item["image"] == "strata"]
    for service in ours:
        folder = service["environment"]["PROMETHEUS_MULTIPROC_DIR"]
        [name] = [
            volume.split(":")[0] for volume in service["volumes"] if volume.split(":")[1] == folder
        ]
        # In memory, so that it is empty when all of them have stopped; for the image's user.
        options = compose["volumes"][name]["driver_opts"]
        assert options["type"] == "tmpfs" and "uid=10001" in options["o"].split(",")
    assert "--uid 10001" in (DEPLOY / "docker/Dockerfile").read_text()


def test_the_small_installation_needs_no_secret_and_writes_only_where_it_may():
    file = yaml.safe_load((DEPLOY / "docker/compose.yml").read_text())
    [service] = file["services"].values()
    assert "secrets" not in file and "environment" not in service
    # Otherwise, uploads could fill the memory of the machine.
    assert service["read_only"] and service["tmpfs"] == ["/tmp:size=2g"]
    assert {"data:/data"} == set(service["volumes"])
    assert service["env_file"] == [{"path": ".env", "required": False}]


def test_all_containers_know_the_proxy(compose):
    """`prepare` would warn of redirects that never end."""
    ours = [item for item in compose["services"].values() if item["image"] == "strata"]
    assert {item["environment"].get("STRATA_TRUSTED_PROXIES") for item in ours} == {"1"}


def test_no_secret_is_written_into_the_containers_file(compose):
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            secret = re.search("PASSWORD|SECRET|KEY|DATABASE_URL", name)
            assert not secret or (name.endswith("_FILE") and value.startswith("/run/secrets/"))


def test_the_image_copies_what_there_is_and_runs_as_nobody_in_particular():
    lines = (DEPLOY / "docker/Dockerfile").read_text().splitlines()
    for line in lines:
        if line.startswith("COPY "):
            assert (ROOT / line.split()[1]).exists()
    copied = {line.split()[1] for line in lines if line.startswith("COPY ")}
    assert copied >= {"config", "projects", "chat", "memory", "templates", "static"}
    assert "USER 10001" in lines
    [default] = [line for line in lines if line.startswith("CMD ")]
    assert container_runs(yaml.safe_load(default.removeprefix("CMD ")))
    assert any(line.startswith("HEALTHCHECK") for line in lines)


@pytest.mark.skipif(not shutil.which("nginx", path="/usr/sbin:/usr/bin"), reason="no nginx here")
def test_nginx_takes_its_file(tmp_path):
    configuration = (DEPLOY / "proxy/nginx.conf").read_text()
    configuration = re.sub(r"    (ssl_certificate.*|listen 443 ssl;)\n", "", configuration)
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off;\n{configuration}}}"
    )
    command = ["nginx", "-t", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("file", "unit"), [("nginx.conf", "m;"), ("Caddyfile", "MiB\n")])
def test_a_proxy_takes_the_largest_form(file, unit):
    """In nginx, m is 2**20 bytes. In Caddy, MiB is, and MB is 10**6."""
    [limit] = re.findall(rf"max\w*_size (\d+){unit}", (DEPLOY / "proxy" / file).read_text())
    assert int(limit) * 2**20 == settings.MAX_FORM_BYTES


@pytest.mark.parametrize("file", ["nginx.conf", "Caddyfile"])
def test_a_proxy_keeps_nothing_back(file):
    configuration = (DEPLOY / "proxy" / file).read_text()
    assert "proxy_buffering off;" in configuration or "flush_interval -1" in configuration


def reply_paths() -> re.Pattern[str]:
    """Which paths the proxies send to the processes in which replies are said."""
    [nginx] = re.findall(r'"~(.*)" strata_streams;', (DEPLOY / "proxy/nginx.conf").read_text())
    [caddy] = re.findall(r"@says path_regexp (.*)", (DEPLOY / "proxy/Caddyfile").read_text())
    assert nginx == caddy
    return re.compile(nginx)


@pytest.mark.parametrize(
    ("name", "apart"),
    [
        ("session-new", True),
        ("session-post", True),
        ("session-events", True),
        ("message-rerun", True),
        ("message-regenerate", True),
        ("reply-stream", True),
        ("api-messages", True),
        ("api-stream", True),
        ("v1-completions", True),
        ("projects", False),
        ("project", False),
        ("session", False),
        ("session-prompt", False),
        ("session-images", False),
        ("memory", False),
        ("admin:index", False),
    ],
)
def test_no_page_waits_behind_a_reply(name, apart):
    arguments = {"slug": "chats", "pk": UUID(int=7)}
    paths = [
        reverse_with(name, arguments, wanted) for wanted in ([], ["slug"], ["pk"], [*arguments])
    ]
    [path] = filter(None, paths)
    assert bool(reply_paths().search(path)) == apart
    assert reply_paths().search("/mcp")


def reverse_with(name: str, arguments: dict[str, object], wanted: list[str]) -> str | None:
    try:
        return reverse(name, kwargs={key: arguments[key] for key in wanted})
    except NoReverseMatch:
        return None
