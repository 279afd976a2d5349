"""`hec doctor`: what a trace needs is named, and what is in its way."""
import json
import os
import shutil

from conftest import BUILD



def checks(hec, *arguments, env=None):
    told = json.loads(hec.ok("doctor", "--json", *arguments, env=env).stdout)
    return {(row["area"], row["name"]): row for row in told["checks"]}


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


PLACE = "lib/python3.11/site-packages/nvidia/cuda_cupti/lib"


def put_cupti(folder, library):
    place = folder / PLACE
    place.mkdir(parents=True)
    shutil.copy(library, place / "libcupti.so.12")


def test_a_relative_environment_is_passed_over(hec):
    """What VIRTUAL_ENV=venv names depends on the folder that hec happens to be in: it may be anybody's."""
    put_cupti(hec.folder / "venv", BUILD / "lib/hec/sim/cupti-12/libcupti.so.12")
    found = checks(hec, env={"VIRTUAL_ENV": str(hec.folder / "venv")})["trace", "CUPTI"]["finding"]
    assert str(hec.folder / "venv" / PLACE) in found
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        for value in ("venv", "./venv"):
            assert "venv" not in checks(hec, env={"VIRTUAL_ENV": "", variable: value})["trace", "CUPTI"]["finding"]


def test_a_library_that_ends_its_process_does_not_end_doctor(hec):
    put_cupti(hec.folder / "venv", BUILD / "tests/lib/libcupti_deadly.so")
    mark = hec.folder / "loaded"
    row = checks(hec, env={"VIRTUAL_ENV": str(hec.folder / "venv"), "CUPTI_DEADLY_MARK": str(mark)})["trace", "CUPTI"]
    assert mark.exists() and "venv" not in row["finding"]


def test_another_tool_is_in_the_way(hec):
    row = checks(hec, env={"CUDA_INJECTION64_PATH": "/opt/nsight/libInjection.so"})["trace", "way in"]
    assert row["status"] == "missing" and "/opt/nsight/libInjection.so" in row["finding"] and "unset" in row["remedy"]
    ours = os.path.dirname(hec.path) + "/../lib/hec/libhectrace.so"
    assert checks(hec, env={"CUDA_INJECTION64_PATH": ours})["trace", "way in"]["status"] == "ok"
