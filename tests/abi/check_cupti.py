#!/usr/bin/env python3
"""Our declarations of CUPTI against NVIDIA's own headers of several versions.

usage: check_cupti.py SOURCE_FOLDER HEADERS_FOLDER      (environment: CC)

Fetches the headers when they are not there. Exit status 0: all agree; 1: a row is wrong, named; 77: no headers could be had.
"""
import glob
import os
import re
import subprocess
import sys

SKIPPED = 77


def newest_struct(text, name):
    """CUpti_ActivityKernel9 of the versions of a struct in a header: the one that this library fills."""
    numbers = [int(number or 1) for number in re.findall(r"}\s*CUpti_Activity%s(\d*)\s*;" % name, text)]
    if not numbers:
        return None
    newest = max(numbers)
    return f"CUpti_Activity{name}{newest if newest > 1 else ''}"


def check(source, headers, version):
    include = os.path.join(headers, f"cupti-{version}")
    with open(os.path.join(include, "cupti_activity.h"), encoding="utf-8", errors="replace") as file:
        text = file.read()
    with open(os.path.join(source, "src/tracer/records.def"), encoding="utf-8") as file:
        records = re.findall(r"^RECORD\((\w+), (\w+), \d+\)", file.read(), re.M)
    with open(os.path.join(source, "src/tracer/cupti.def"), encoding="utf-8") as file:
        calls = re.findall(r"^CALL\((\w+), (\w+), \((.*)\)\)", file.read(), re.M)
    assert len(records) == 5 and len(calls) == 9
    definitions = []
    for record, name in records:
        struct = newest_struct(text, name)
        if not struct:
            return f"there is no CUpti_Activity{name}"
        definitions.append(f"-DHEC_THEIRS_{record}={struct}")
    everything = "".join(open(path, encoding="utf-8", errors="replace").read()
                         for path in glob.glob(os.path.join(include, "cupti_*.h")))
    for name, needed, parameters in calls:
        found = re.search(r"CUPTIAPI\s+cupti%s\s*\(([^)]*)\)" % name, everything)
        definitions.append(f"-DHEC_HAS_{name}(x)={'x' if found else ''}")
        if not found:
            if needed == "true":
                return f"there is no cupti{name}"
            continue
        count = 0 if parameters == "void" else parameters.count(",") + 1
        theirs = found.group(1).strip()
        if count != (0 if theirs in ("", "void") else theirs.count(",") + 1):
            return f"cupti{name} has other parameters: {' '.join(theirs.split())}"
    cuda = os.path.join(headers, f"cuda-{version.split('.')[0]}")
    done = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-w", "-fsyntax-only", "-I", include, "-I", cuda,
                           "-I", os.path.join(headers, "cuda-crt"), "-I", os.path.join(source, "src"), *definitions,
                           os.path.join(source, "tests/abi/cupti_offsets.c")], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


def main(source, headers):
    fetched = subprocess.run([sys.executable, os.path.join(source, "scripts/fetch-cupti-headers"), headers])
    versions = sorted((name[len("cupti-"):] for name in os.listdir(headers)
                       if name.startswith("cupti-") and not name.endswith(".partial")),
                      key=lambda version: [int(part) for part in version.split(".")])
    versions = [v for v in versions if os.path.isdir(os.path.join(headers, f"cuda-{v.split('.')[0]}"))]
    if fetched.returncode != 0 and not versions:
        print("SKIPPED: NVIDIA's headers could not be fetched")
        return SKIPPED
    failed = False
    for version in versions:
        why = check(source, headers, version)
        print(f"CUPTI {version}: {'agrees' if why is None else why}")
        failed |= why is not None
    if failed:
        return 1
    if fetched.returncode != 0:
        print("SKIPPED: not all versions could be fetched")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
