"""`hec doctor`: what a trace needs is named, and what is in its way."""
import json
import os


def checks(hec, *arguments, env=None):
    done = hec("doctor", "--json", *arguments, env=env)
    assert done.returncode == 0, done.stderr
    return {(row["area"], row["name"]): row for row in json.loads(done.stdout)["checks"]}


def test_everything_is_there(hec):
    rows = checks(hec, "--sim", "h200,cupti=13", env={"CUDA_INJECTION64_PATH": ""})
    assert {rows["trace", name]["status"] for name in ("tracer", "way in", "CUDA driver", "CUPTI")} == {"ok"}
    assert rows["trace", "CUDA driver"]["finding"] == "CUDA 13.0"
    assert rows["trace", "CUPTI"]["finding"].startswith("CUDA 13.0: ")
    assert rows["python", "hooks"]["status"] == rows["python", "marks"]["status"] == "ok"


def test_older_and_no_cupti(hec):
    assert "libcupti.so.11.8" in checks(hec, "--sim", "h200,cupti=11.8")["trace", "CUPTI"]["finding"]
    row = checks(hec, "--sim", "h200,cupti=none")["trace", "CUPTI"]
    assert row["status"] == "limited" and row["remedy"]


def test_another_tool_is_in_the_way(hec):
    row = checks(hec, env={"CUDA_INJECTION64_PATH": "/opt/nsight/libInjection.so"})["trace", "way in"]
    assert row["status"] == "missing" and "/opt/nsight/libInjection.so" in row["finding"] and "unset" in row["remedy"]
    ours = os.path.dirname(hec.path) + "/../lib/hec/libhectrace.so"
    assert checks(hec, env={"CUDA_INJECTION64_PATH": ours})["trace", "way in"]["status"] == "ok"
