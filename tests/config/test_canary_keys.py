"""No dump, backup, export or log contains the key of a provider."""

import io
import tempfile
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from zipfile import ZipFile

import pytest
from django.core.management import call_command
from django.urls import reverse

from chat import providers
from chat.exporters import json as json_exporter
from chat.models import ModelProvider, Session
from config.backup import archive, pg_tools
from memory.portability.exporting import export
from memory.portability.tables import ExportScope
from tests.scripted import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-key-0123456789"
WORD = "nightingale"


@pytest.fixture
def lab(settings, tmp_path) -> Iterator[ScriptedModel]:
    """A server of models that accepts the canary only."""
    settings.OUTBOUND_ALLOW = [ip_network("127.0.0.0/8")]
    settings.TOMBSTONES = tmp_path / "tombstones.jsonl"
    settings.MEDIA_ROOT = tmp_path / "files"
    providers.clear_provider_cache()
    with ScriptedModel(default=f"A {WORD}.") as model:
        model.key = CANARY
        yield model
    providers.clear_provider_cache()


def plain_sql(dump: bytes) -> bytes:
    """What a dump of pg_dump's own format restores."""
    with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryFile() as errors:
        file.write(dump)
        file.flush()
        with pg_tools.start(
            "pg_restore", ["--file=-", file.name], 18, errors, stdout=pg_tools.subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            return process.stdout.read()


def full_dump() -> bytes:
    with (
        tempfile.TemporaryFile() as errors,
        pg_tools.start("pg_dump", [], 18, errors, stdout=pg_tools.subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        return process.stdout.read()


def test_a_key_is_in_no_dump_backup_export_or_log(
    lab, admin_client, api, owner, project, tmp_path, caplog, capfd
):
    caplog.set_level("DEBUG")
    admin_client.post("/accounts/confirm/", {"password": "password"})
    fields = {"kind": "compatible", "name": "lab", "address": lab.base_url}
    refused = admin_client.post(reverse("models"), fields | {"key": f"wrong-{CANARY}"})
    assert refused.status_code == 400
    assert admin_client.post(reverse("models"), fields | {"key": CANARY}).status_code == 302
    session = Session.objects.create(project=project, creator=owner, chat_model="lab:scripted")
    for status in (200, 401, 500):
        if status != 200:
            lab.status(status)
        url = f"/api/v1/sessions/{session.pk}/messages/"
        assert api(owner).post(url, {"content": "Which bird?"}, "json").status_code == 201

    session.refresh_from_db()
    call_command("backup", str(tmp_path / "b.tar"), stdout=io.StringIO())
    project_file = io.BytesIO()
    export(ExportScope(project), project_file)
    with ZipFile(project_file) as bundle:
        exported = b"".join(bundle.read(name) for name in bundle.namelist())
    members = {name: data.read() for name, data in archive.members(tmp_path / "b.tar")}
    database = b"".join(data for name, data in members.items() if name.startswith("database/"))
    backup = plain_sql(database)
    texts = {
        "dump": full_dump(),
        "backup": backup,
        "project": exported,
        "chat": "".join(json_exporter.render(session)).encode(),
    }
    # Each contains the reply, so that the search below can find something.
    assert [name for name, text in texts.items() if WORD.encode() not in text] == []
    captured = capfd.readouterr()
    texts |= {f"backup {name}": data for name, data in members.items()}
    texts["log"] = (caplog.text + captured.out + captured.err).encode()
    texts["pages"] = admin_client.get(reverse("models")).content + refused.content
    texts["admin"] = admin_client.get("/admin/chat/modelprovider/").content
    texts["files"] = b"".join(it.read_bytes() for it in Path(tmp_path).rglob("*") if it.is_file())
    assert [name for name, text in texts.items() if CANARY.encode() in text] == []
    assert ModelProvider.objects.get().key == CANARY
