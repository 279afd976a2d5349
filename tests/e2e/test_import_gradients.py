"""Gradients that are synchronised more often than the optimizer steps, seen in the traces of ranks."""
import pytest

import rank_traces

BYTES = 4 * 6_000_000 * rank_traces.BUCKETS


def imported(hec, tmp_path, **more):
    hec.ok("import", "-q", "-f", "-o", "job.hec", *rank_traces.write(tmp_path / "traces", 2, make=rank_traces.ddp_trace, **more))
    return hec.report("job.hec")


def causes(report):
    return [f["cause"] for f in report["findings"]]


def test_synchronised_in_each_of_four_passes(hec, tmp_path):
    report = imported(hec, tmp_path)
    gradients, first = report["job"]["gradients"], report["findings"][0]
    assert gradients == {"syncs": 40, "passes": 40, "steps": 10, "bytes": BYTES, "bucket_bytes": BYTES / rank_traces.BUCKETS}
    assert first["cause"] == "gradient_sync" and "4 times a step" in report["headline"] and first["actionable"]
    comm, = [row["step_ms"] / report["steps"]["mean_ms"] for row in report["devices"][0]["ledger"] if row["state"] == "comm"]
    step = first["predicted"]["step"]
    assert step["replayed"] and step["seconds_fraction"][1] == pytest.approx(0.75 * comm, abs=0.02)  # of four passes three
    assert "no_sync" in hec.ok("report", "job.hec").stdout


@pytest.mark.parametrize("more, passes", [
    ({"no_sync": True}, 40), ({"passes": 1}, 10), ({"no_sync": True, "loss": True}, 40),  # as it should be
    ({"optimizer": False}, None), ({"backward": False}, None),  # not shown
    ({"tensor_parallel": True}, None)])  # communication is mostly of something else
def test_nothing_is_claimed(hec, tmp_path, more, passes):
    report = imported(hec, tmp_path, **more)
    assert "gradient_sync" not in causes(report)
    gradients = report["job"]["gradients"]
    if passes is None:
        assert gradients is None
    else:
        assert (gradients["syncs"], gradients["passes"], gradients["steps"], gradients["bytes"]) == (10, passes, 10, BYTES)
