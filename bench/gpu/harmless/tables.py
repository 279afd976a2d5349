"""The tables of the results, in Markdown."""
import statistics

import figures


def percent(value, signed=True):
    return "–" if value is None else f"{100 * value:{'+' if signed else ''}.1f} %"


def words(total):
    parts = [f"{count} {kind}" for kind, count in sorted(total.get("kinds", {}).items())]
    if total.get("memory"):
        parts.append(f"{total['memory']} more ran out of device memory, not counted")
    return "; ".join(parts)


def ends_rows(part):
    lines = ["", "## Ends", "", "| program | mode | runs | abnormal | share at most (95 %) | note |", "| --- | --- | --- | --- | --- | --- |"]
    for mode, programs in part.get("modes", {}).items():
        for name, total in sorted(programs.items()):
            runs, wrong = total.get("runs", 0), total.get("abnormal", 0)
            lines.append(f"| {name} | {mode} | {runs} | {wrong} | {percent(figures.upper_bound(wrong, runs), False)} | {words(total)} |")
        runs, wrong = (sum(t.get(key, 0) for t in programs.values()) for key in ("runs", "abnormal"))
        lines.append(f"| **all** | {mode} | {runs} | {wrong} | {percent(figures.upper_bound(wrong, runs), False)} | |")
    lines += [f"| {name} | none | | | | left out: ends with {reference['status']} by itself |"
              for name, reference in part.get("references", {}).items() if reference.get("bad")]
    return lines


def claim_words(claims):
    values = [value for value in claims["values"] if value is not None]
    if not claims["runs"]:
        return "–", "–"
    told = f"{percent(min(values))} to {percent(max(values))}" if values else "unknown"
    intervals = claims["runs"] - claims["unknown"] - claims["alone"]
    held = f"{claims['contain']} of {intervals} contain it, {claims['overlap']} meet its interval"
    return told + (f" ({claims['unknown']} unknown)" if values and claims["unknown"] else ""), held if intervals else "no interval given"


def slow_rows(part):
    lines = ["", "## Slowdown, whole processes in turns", "",
             "| program | variant | rounds | ms a step | slowdown | 95 % | of the mean | of CPU time | its claim | claim against measured |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name, rounds in part.get("rounds", {}).items():
        for variant in sorted({v for r in rounds for v in r}, key=["none", "client", "nothing", "hooks", "auto", "full"].index):
            times = [r[variant]["ms"] for r in rounds if variant in r and r[variant].get("ms")]
            cost, (mean, cpu) = figures.slowdown(rounds, variant), [figures.slowdown(rounds, variant, key) for key in ("ms_mean", "ms_cpu")]
            if not times or not cost:
                continue
            spread = f"{statistics.median(times):.2f} ({min(times):.2f}–{max(times):.2f})"
            if variant == "none":
                lines.append(f"| {name} | no HEC | {len(times)} | {spread} | | | | | | |")
                continue
            told, held = claim_words(figures.claims(rounds, variant, cost))
            low, high = cost["ci95"]
            lines.append(f"| {name} | {variant} | {len(times)} | {spread} | {percent(cost['ratio'])} | {percent(low)} to {percent(high)} | "
                         f"{percent(mean and mean['ratio'])} | {percent(cpu and cpu['ratio'])} | {told} | {held} |")
    lines += [f"\nfailed: {name} {variant}: status {status}" for name, variant, status, _ in part.get("failed", [])]
    return lines


def forks_rows(part):
    lines = ["", "## Forked children", "", "| mode | said | status | seconds |", "| --- | --- | --- | --- |"]
    return lines + [f"| {mode} | {run['said'] or run['stderr'][-200:]} | {run['status']} | {run['seconds']} |"
                    for mode, runs in part.items() for run in runs]


def memory_rows(part):
    lines = ["", "## Memory of the observed process", "", "| program | mode | steps | peak, MB | more | private, MB | more |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, modes in part.items():
        base = {}
        for mode, runs in modes.items():
            good = [run for run in runs if "VmHWM" in run]
            if not good:
                lines.append(f"| {name} | {mode} | failed: status {runs[-1].get('status')} | | | | |")
                continue
            cells = []
            for key in ("VmHWM", "RssAnon"):
                value = statistics.median(run[key] for run in good) * 1024 / 1e6
                base.setdefault(key, value if mode == "none" else None)
                cells += [f"{value:.0f}", "" if mode == "none" or base[key] is None else f"{value - base[key]:+.0f}"]
            lines.append(f"| {name} | {mode} | {good[-1]['steps']} | " + " | ".join(cells) + " |")
    return lines


PARTS = {"ends": ends_rows, "slow": slow_rows, "forks": forks_rows, "memory": memory_rows}


def markdown(result):
    lines = ["# Harmless: programs with and without HEC", ""]
    lines += [f"- {key}: {value}" for key, value in result["machine"].items()]
    lines += [f"- command: `{command}`" for command in result["commands"]]
    for name, part in result["parts"].items():
        if part:
            lines += PARTS[name](part)
    return "\n".join(lines) + "\n"
