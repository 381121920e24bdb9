"""Runs schemathesis, in all its phases, on the schema of a Strata that runs.

https://schemathesis.readthedocs.io/en/stable/reference/configuration/
"""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from tests.schema.world import World

# How often a parameter in a path is one that exists.
THERE = 0.8
# It would find the token that all requests are made with.
OUR_OWN_END = "DELETE /api/v1/tokens/{id}/"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


def run(
    world: World, url: str, examples: int, folder: Path, covered: str
) -> subprocess.CompletedProcess[str]:
    """All phases, with so many examples for each operation. `covered` is what the coverage phase
    tries: `all`, or what is `positive`; the others try both.
    """
    address = f"{url}/api/v1/schema/?format=json"
    with urlopen(address, timeout=30) as answer:
        schema = json.loads(answer.read())
    config = folder / "schemathesis.toml"
    config.write_text(configuration(world, operations(schema), covered))
    command = [
        *(sys.executable, "-m", "schemathesis.cli", f"--config-file={config}"),
        *(
            "run",
            f"--exclude-name={OUR_OWN_END}",
            address,
            f"--max-examples={examples}",
            f"--checks={','.join(CHECKS)}",
        ),
        "--generation-deterministic",
        *("--continue-on-failure", "--no-color"),
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def operations(schema: dict) -> list[str]:
    """Such as `GET /api/v1/projects/`."""
    paths = schema["paths"].items()
    return [f"{method.upper()} {path}" for path, methods in paths for method in methods]


def configuration(world: World, operations: list[str], covered: str) -> str:
    """What schemathesis is told, as TOML."""
    headers = {"headers": f'{{ Authorization = "Bearer {world.token}" }}'}
    dictionaries: dict[str, str] = {}
    tables = []
    for operation in operations:
        bound = []
        for name, values in world.values(operation).items():
            key = dictionaries.setdefault(json.dumps(values), f"d{len(dictionaries)}")
            bound.append(f'"path.{name}" = {{ dictionary = "{key}", probability = {THERE} }}')
        if bound:
            tables.append(
                f'[[operations]]\ninclude-name = "{operation}"\n'
                f"parameters = {{ {', '.join(bound)} }}"
            )
    return "\n".join(
        [
            *(f"{name} = {value}" for name, value in headers.items()),
            # tests/access tries each method on each route.
            "[phases.coverage]\nunexpected-methods = []",
            f'[phases.coverage.generation]\nmode = "{covered}"',
            *(f"[dictionaries.{key}]\nvalues = {values}" for values, key in dictionaries.items()),
            *tables,
        ]
    )
