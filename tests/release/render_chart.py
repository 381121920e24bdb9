"""Renders the chart with the library of Helm, checks it against the schemas of Kubernetes, and
prints the objects as JSON: `render_chart.py CHART VALUES VERSION`.

test_chart.py installs the packages for this.
"""

import json
import sys

import helm_python
import kubernetes_validate
import yaml


def main(chart_folder: str, values: str, version: str) -> None:
    with helm_python.Chart.load(chart_folder) as chart:
        chart.validate_schema(json.loads(values))
        files = chart.render(json.loads(values), name="strata", namespace="prod")
    objects = [
        item
        for name, text in files.items()
        if name.endswith(".yaml")
        for item in yaml.safe_load_all(text)
        if item
    ]
    for item in objects:
        kubernetes_validate.validate(item, version, strict=True)
    print(json.dumps(objects))


if __name__ == "__main__":
    main(*sys.argv[1:])
