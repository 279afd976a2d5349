"""Statistics and adding up: arrays in, results out."""
import random
import re
import statistics

KINDS = ("status", "signal", "stdout", "stderr", "hung")
CASES_KEPT = 12  # of each program and mode


def interval(values, middle=statistics.median, rounds=4000):
    """95 % bootstrap interval of the middle of values."""
    rng = random.Random(2)
    draws = sorted(middle(rng.choices(values, k=len(values))) for _ in range(rounds))
    return [draws[round(0.025 * (rounds - 1))], draws[round(0.975 * (rounds - 1))]]


def slowdown(rounds, variant, key="ms"):
    """Of rounds [{variant: {key: milliseconds}}] against the same round's run without HEC: ratios less 1."""
    pairs = [(r[variant].get(key), r["none"].get(key)) for r in rounds if variant in r and "none" in r]
    ratios = [a / b - 1 for a, b in pairs if a and b]
    if not ratios:
        return None
    return {"ratio": statistics.median(ratios), "ci95": interval(ratios), "pairs": len(ratios)}


def claims(rounds, variant, measured):
    """What HEC said of these runs. `contain` counts those whose interval contains the measured slowdown, `overlap` those
    whose interval meets the measured interval; where HEC says "unknown" there is nothing to compare."""
    told = [r[variant]["claim"] for r in rounds if variant in r and r[variant].get("claim")]
    out = {"runs": len(told), "unknown": 0, "alone": 0, "contain": 0, "overlap": 0, "values": [c["overhead"] for c in told]}
    for claim in told:
        low, high = claim.get("low"), claim.get("high")
        if claim.get("overhead") is None:
            out["unknown"] += 1
        elif low is None or high is None:
            out["alone"] += 1
        elif measured:
            out["contain"] += low <= measured["ratio"] <= high
            out["overlap"] += low <= measured["ci95"][1] and high >= measured["ci95"][0]
    return out


def masked(text):
    return re.sub(r"0x[0-9a-f]+|\d+", "N", text)


def shell_status(status):
    """As hec and a shell give it: 128 + n for signal n."""
    return 128 - status if status < 0 else status


def abnormal(run, reference):
    """Which kinds of difference a run under HEC shows; nothing where it did as the reference did."""
    if run["hung"]:
        return ["hung"]
    found = []
    expected = shell_status(reference["status"])
    if run["status"] != expected:
        signalled = run["status"] < 0 or 128 < run["status"] < 160
        found.append("signal" if signalled else "status")
    if run["stdout"] != reference["stdout"]:
        found.append("stdout")
    same = masked if reference.get("varies") else str
    if same(run["stderr"]) != same(reference["stderr"]):
        found.append("stderr")
    return found


def ran_out_of_memory(run):
    return "OutOfMemoryError" in run["stderr"] or "RESOURCE_EXHAUSTED" in run["stderr"]


def add(total, found, case=None):
    """Count one run in `total` ({} for the first)."""
    total["runs"] = total.get("runs", 0) + 1
    total["abnormal"] = total.get("abnormal", 0) + bool(found)
    for kind in found:
        total.setdefault("kinds", {})[kind] = total.get("kinds", {}).get(kind, 0) + 1
    if case and len(total.setdefault("cases", [])) < CASES_KEPT:
        total["cases"].append(case)
    return total


def upper_bound(abnormal_ends, runs):
    """Upper end of the 95 % interval of the share of abnormal ends (Clopper-Pearson, one side), by bisection."""
    if runs == 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        p, term, total = (low + high) / 2, 0.0, 0.0
        term = (1 - p) ** runs
        total = term
        for k in range(1, abnormal_ends + 1):
            term *= (runs - k + 1) / k * p / (1 - p) if p < 1 else 0
            total += term
        low, high = (p, high) if total > 0.05 else (low, p)
    return high


def next_of(wanted, done, fits):
    """The (mode, program) that is furthest behind its share: `wanted` and `done` count runs."""
    open_ = [key for key in wanted if done.get(key, 0) < wanted[key] and fits(key)]
    return min(open_, key=lambda key: (done.get(key, 0) / wanted[key], -wanted[key], key), default=None)
