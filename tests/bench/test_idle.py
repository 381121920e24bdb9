"""What a Strata costs that has nothing to do, and what its start costs."""

import statistics
from pathlib import Path

import pytest

from tests.bench import process_costs

pytestmark = pytest.mark.timeout(1_800)

ROUNDS = 3


def test_a_strata_without_work_costs_little(tmp_path: Path, report_figures):
    with process_costs.running(tmp_path):
        pass
    rounds = [process_costs.measured(tmp_path)[0] for _ in range(ROUNDS)]
    bounds = {
        # Beside other work, a start takes longer: its processor time is bounded.
        "ready_s": ("warm start to ready", "s, 3 s on a quiet machine", None),
        "processor_until_ready_s": ("processor until ready", "s", None),
        "processor_after_start_s": ("processor in the 15 s after", "s, at most 1", 1),
        "idle_cores": ("processor at idle", "of a core, at most .01", 0.01),
        "processes": ("processes at idle", ", at most 12", 12),
        "pss_mb": ("memory at idle, without the demo model", "MB (PSS), at most 500", 500),
    }
    exceeded = []
    for name, (what, unit, bound) in bounds.items():
        values = sorted(getattr(costs, name) for costs in rounds)
        report_figures(f"{what}, min, median, max", *values, unit=unit)
        if bound is not None and statistics.median(values) > bound:
            exceeded.append(name)
    assert exceeded == []
