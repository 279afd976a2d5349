"""The Python package against a stand-in collector, and without one."""

import os
import subprocess
import sys
import tempfile
import textwrap

import pytest

from listener import BEGIN, END, KNOB, RANGE, STEP, UNITS, Listener
from warm_python import HANGS_S


@pytest.fixture
def listener():
    with tempfile.TemporaryDirectory(prefix="hec-") as folder:  # a short path: a Unix socket has 107 bytes
        made = Listener(folder)
        yield made
        made.close()


@pytest.fixture
def observed(source, libhec, listener):
    """Runs programs beside the listener: what they print."""
    return lambda program, knobs=None: run(source, program, libhec, listener.path, knobs)


def run(source, program, libhec=None, socket=None, knobs=None, check=True, arguments=()):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEC_")}
    environment["PYTHONPATH"] = str(source / "python")
    for key, value in (("HEC_LIB", libhec), ("HEC_SOCKET", socket), ("HEC_KNOBS", knobs)):
        if value is not None:
            environment[key] = value
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments, "-c", textwrap.dedent(program)],
        env=environment, capture_output=True, text=True, timeout=HANGS_S,
    )  # fmt: skip
    if check:
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


ALL = """
    import hec
    hec.step()
    hec.step(3)
    hec.step(samples=128)
    hec.step(samples=2.5, tokens=64)
    hec.step(5, tokens=7)
    hec.units("token", 10)
    hec.units("image")
    with hec.phase("data"):
        with hec.phase("caf\\u00e9"):
            pass

    @hec.phase("train")
    def train(x, *, y):
        "Doc."
        return x + y

    assert train(1, y=2) == 3
    assert train.__name__ == "train" and train.__doc__ == "Doc."
    assert hec.knob("batch", 64) == 64
    """


def test_marks_arrive(observed, listener):
    observed(ALL)
    ((pid, records),) = listener.rings()
    assert {tid for _, tid, _, _ in records} == {pid}
    assert [(kind, name, value) for kind, _, name, value in records] == [
        (STEP, None, 1.0),
        (STEP, None, 3.0),
        (STEP, "sample", 128.0),
        (STEP, "sample", 2.5),
        (UNITS, "token", 64.0),
        (STEP, None, 5.0),
        (UNITS, "token", 7.0),
        (UNITS, "token", 10.0),
        (UNITS, "image", 1.0),
        (BEGIN, "data", 0.0),
        (BEGIN, "caf\u00e9", 0.0),
        (END, "caf\u00e9", 0.0),
        (END, "data", 0.0),
        (BEGIN, "train", 0.0),
        (END, "train", 0.0),
        (KNOB, "batch", (64, 0)),
    ]


def test_a_phase_ends_when_an_exception_leaves_it(observed, listener):
    program = """
        import hec
        try:
            with hec.phase("a"):
                raise KeyError("seen by the program")
        except KeyError as error:
            print(error)
    """
    observed(program)
    ((_, records),) = listener.rings()
    assert [(kind, name) for kind, _, name, _ in records] == [(BEGIN, "a"), (END, "a")]


def test_coroutines_are_marked_to_their_end(observed, listener):
    program = """
        import asyncio, inspect, hec

        @hec.phase("request")
        async def serve():
            await asyncio.sleep(0)
            hec.units("request")
            return "answer"

        assert inspect.iscoroutinefunction(serve)
        print(asyncio.run(serve()))
    """
    out = observed(program)
    ((_, records),) = listener.rings()
    assert out == "answer\n"
    assert [kind for kind, *_ in records] == [BEGIN, UNITS, END]


def test_forked_workers_are_processes_of_their_own(observed, listener):
    program = """
        import os, hec
        hec.step()
        for _ in range(2):
            child = os.fork()
            if child == 0:
                hec.units("item", 5)
                os._exit(0 if hec.active() else 1)
            assert os.waitpid(child, 0)[1] == 0
    """
    observed(program)
    rings = listener.rings()
    assert len({pid for pid, _ in rings}) == 3
    assert [[(kind, name) for kind, _, name, _ in records] for _, records in rings] == [
        [(STEP, None)],
        [(UNITS, "item")],
        [(UNITS, "item")],
    ]


KNOBS = """
    import hec
    got = [hec.knob(n, d) for n, d in [
        ("batch", 1), ("lr", 0.1), ("mode", "fast"), ("amp", False), ("off", True), ("one", False), ("unset", 7),
        ("mode", 5), ("mode", True), ("huge", 2**70), ("none", None), ("list", [1])]]
    print(repr(got))
    print([type(x).__name__ for x in got])
    """
KNOB_LIST = "batch=64;lr=0.25;mode=slo\\;w;amp=true;off=false;one=1;huge=3;none=1;list=1"
KNOBS_READ = (
    f"{[64, 0.25, 'slo;w', True, False, True, 7, 5, True, 2**70, None, [1]]!r}\n"
    "['int', 'float', 'str', 'bool', 'bool', 'bool', 'int', 'int', 'bool', 'int', 'NoneType', 'list']\n"
)


def test_knobs_have_the_type_of_their_default(observed, listener):
    out = observed(KNOBS, KNOB_LIST)
    ((_, records),) = listener.rings()
    assert out == KNOBS_READ
    assert [record[2:] for record in records] == [
        ("batch", (64, 1)),
        ("lr", (0.25, 1)),
        ("mode", ("slo;w", 1)),
        ("amp", (1, 1)),
        ("off", (0, 1)),
        ("one", (1, 1)),
        ("unset", (7, 0)),
        ("mode", (5, 2)),
        ("mode", (1, 2)),
    ]


RANGES = """
    import hec
    for name, default, least, most in [
            ("batch", 128, 32, 512), ("high", 128, 32, 512), ("unset", 7, 1, 9), ("lr", 0.1, 0.01, 1.0), ("steep", 0.1, 0.01, 1.0),
            ("batch", 128, 40.5, 63.5), ("upside", 3, 9, 1), ("nan", 0.5, float("nan"), 1.0), ("whole", 5, float("nan"), 9),
            ("half", 7, None, 9), ("mode", "a", "a", "b"), ("amp", False, 0, 1), ("huge", 7, -2**70, 2**70)]:
        print(hec.knob(name, default, least, most), end=" ")
    """
RANGE_LIST = "batch=64;high=513;lr=0.5;steep=2;upside=64;nan=8;whole=64;half=64;mode=c;amp=1;huge=8"
RANGES_READ = "64 128 7 0.5 0.1 64 64 8.0 64 64 c True 8 "


def test_knobs_stay_in_their_range(observed, listener):
    assert observed(RANGES, RANGE_LIST) == RANGES_READ
    ((_, records),) = listener.rings()
    ranges = [(name, value) for kind, _, name, value in records if kind == RANGE]
    assert ranges[:7] == [("batch", (128, 32, 512)), ("high", (128, 32, 512)), ("unset", (7, 1, 9)), ("lr", (0.1, 0.01, 1.0)),
                          ("steep", (0.1, 0.01, 1.0)), ("batch", (128, 41, 63)), ("upside", (3, 9, 1))]  # fmt: skip
    assert [name for name, _ in ranges[7:]] == ["nan", "whole", "huge"] and ranges[-1][1] == (7, -(2**63), 2**63 - 1)
    reads = [(name, value) for kind, _, name, value in records if kind == KNOB]
    assert reads[:6] == [("batch", (64, 1)), ("high", (128, 4)), ("unset", (7, 0)), ("lr", (0.5, 1)), ("steep", (0.1, 4)),
                         ("batch", (64, 1))]  # fmt: skip


def test_ranges_count_without_an_observer_and_without_hec(source, libhec):
    assert run(source, RANGES, libhec, None, RANGE_LIST) == RANGES_READ
    assert run(source, RANGES) == "128 128 7 0.1 0.1 128 3 0.5 5 7 a False 7 "
    assert run(source, RANGES, "/nowhere/libhec.so.0", None, None) == "128 128 7 0.1 0.1 128 3 0.5 5 7 a False 7 "


def test_an_older_library_keeps_to_the_range_too(observed, listener):
    """One that has no reads with a range: as many values are taken, and nothing says between which they may be."""
    program = """
    import ctypes
    class Old(ctypes.PyDLL):
        def __getattr__(self, name):
            if name.endswith("_in"):
                raise AttributeError(name)
            return super().__getattr__(name)
    ctypes.PyDLL = Old
    """
    assert observed(program + RANGES, RANGE_LIST) == RANGES_READ
    ((_, records),) = listener.rings()
    assert [kind for kind, _, _, _ in records] == [KNOB] * 13


def test_knobs_work_without_an_observer(source, libhec):
    assert run(source, KNOBS, libhec, None, KNOB_LIST) == KNOBS_READ


def test_without_hec_nothing_is_imported_and_all_is_quiet(source):
    out = run(
        source,
        ALL
        + """
    import sys
    print(hec.active(), "ctypes" in sys.modules, "hec._ctypes" in sys.modules, "hec._decorate" in sys.modules)
    def plain(): pass
    print(hec.phase("x")(plain) is plain)
    """,
        arguments=["-S"],
    )
    assert out == "False False False False\nTrue\n"


@pytest.mark.parametrize("case", ["nobody listens", "no library", "not a library", "library of something else"])
def test_a_broken_installation_is_no_matter_of_the_program(source, libhec, tmp_path, case):
    library = {"nobody listens": libhec, "no library": "/nowhere/libhec.so.0"}.get(case)
    if case == "not a library":
        library = str(tmp_path / "text")
        (tmp_path / "text").write_text("not an ELF file")
    if case == "library of something else":
        library = "libc.so.6"
    out = run(source, ALL + "\n    print(hec.active())\n", library, str(tmp_path / "marks"))
    assert out == "False\n"


def test_wrong_arguments_raise_nothing(observed):
    program = """
        import hec
        hec.step("many"); hec.step(samples=None); hec.step(samples=float("nan")); hec.step(-1)
        hec.units(None, 1); hec.units("x", object()); hec.units("\\ud800", 1); hec.units([], 1)
        with hec.phase(None): pass
        with hec.phase(7): pass
        hec.knob(None, 1); hec.knob("a\\0b", "c\\0d"); hec.knob("x", "\\ud800")
        assert hec.active()
    """
    observed(program)


def test_the_example_runs_observed_and_alone(source, libhec, observed, listener):
    program = (source / "examples/marks.py").read_text()
    knobs = "steps=3;batch=2"
    out = observed(program, knobs)
    ((_, records),) = listener.rings()
    assert out == "3 steps of 2 samples, observed\n"
    steps = [(name, value) for kind, _, name, value in records if kind == STEP]
    assert steps == [("sample", 2.0)] * 3
    assert run(source, program, libhec, None, knobs) == "3 steps of 2 samples, not observed\n"
