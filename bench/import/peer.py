"""What Holistic Trace Analysis says of one trace, as JSON. Runs inside the virtual environment that bench/import/run makes.

usage: peer.py TRACE [VARIANT...]   variants:
  as_is         as its users see it: loading drops what was launched in the last ProfilerStep
  whole         the same analysis of everything in the file
  without_sync  of everything but rows of the category cuda_sync, which its code counts as busy
With no variant: loads and analyses once, as is, for time and memory."""
import json
import os
import sys
import time

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"  # else fractions of microseconds are cut
started = time.monotonic()

import logging  # noqa: E402

from hta.common.trace import Trace  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

imported = time.monotonic()
logging.disable(logging.CRITICAL)


def analyse(path, variant):
    original = Trace._filter_irrelevant_gpu_kernels
    if variant != "as_is":
        Trace._filter_irrelevant_gpu_kernels = lambda self, *rest: None
    try:
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir=os.path.dirname(path))
    finally:
        Trace._filter_irrelevant_gpu_kernels = original
    if variant == "without_sync":
        sync = analysis.t.symbol_table.get_sym_id_map().get("cuda_sync")
        frame = analysis.t.traces[0]
        analysis.t.traces[0] = frame[frame["cat"] != sync]
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    overlap = float(analysis.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"])
    return {
        "window": float(row["kernel_time(us)"]),
        "compute": float(row["compute_time(us)"]),
        "non_compute": float(row["non_compute_time(us)"]),
        "idle": float(row["idle_time(us)"]),
        "overlap": None if overlap != overlap else overlap / 100,
    }


path = os.path.abspath(sys.argv[1])
results = {variant: analyse(path, variant) for variant in sys.argv[2:] or ["as_is"]}
results["seconds"] = {"importing_hta": imported - started, "load_and_analysis": time.monotonic() - imported}
print(json.dumps(results))
