"""What HEC said of a drawn program against what was measured of it. Results in, verdicts out: no files, no processes."""
import math
import statistics

from grammar import FAULTS, fix_of

COUNTS = 0.10  # of the joules: a cause that must be named
CLAIMED, BROUGHT = 0.05, 0.02  # claimed at least so much, and less than that measured: a false claim
HEALTHY = 0.05  # nothing saves as much: there is nothing to find
AS_GOOD = 0.03  # as good as the largest
WITHIN = 0.12
SLACK = 0.005
WAITS = 0.2  # of a server's time, in which nobody asks: that is true of it too
NOISY = 0.2  # spread of the turns of the program as it is, by their mean: more tells nothing of a few percent
STEADY = 0.05  # spread of the turns' seconds, by their mean: less tells what hec costs
UNLIKE = 1.3  # times as long, or as short, a unit took among the arms as in the run that HEC judged: then they are not the same program
# What is claimed is more than the fix, or less: four times the batch, where the fix of a small one is of sixteen; all that waits in a
# step, the number read at its end too, where the fix of barriers or reads leaves that; all of a chain, where the fix has one function of it.
AS_CLAIMED = {"batch": None, "sync": None, "memory": "elementwise"}  # cause -> the model that it is so of; None: of all
BESIDE = {"sync"}  # such a change comes beside the fix
STUDENT = {2: 6.31, 3: 2.92, 4: 2.35, 5: 2.13, 6: 2.02}  # of so many turns: standard errors that a truth exceeds in 5 of 100
CUT = "no time left: begun too late"  # of what failed: nothing is known of the program
ONLY_UNDER_HEC = "It ends well without hec."  # last line of what failed
NOISE, UNMEASURED, OTHERWISE = "noisy", "not measured", "runs otherwise among its arms"


def claims_more(spec, cause):
    """Whether a claim of that cause is of another change than the fix."""
    return cause in AS_CLAIMED and AS_CLAIMED[cause] in (None, spec["model"])


def saving(truth, arm, what="joules"):
    """(saved of each unit of work, its standard error), of turns in pairs."""
    pairs = [1 - after[what] / before[what] for before, after in zip(truth["base"], truth[arm])]
    mean = 1 - sum(turn[what] for turn in truth[arm]) / sum(turn[what] for turn in truth["base"])
    return mean, statistics.stdev(pairs) / math.sqrt(len(pairs)) if len(pairs) > 1 else 0.0


def upper(saved, error, turns):
    """What a fix surely saves no more than, in 95 of 100."""
    return saved + STUDENT.get(turns, 1.96) * error


def margin(truth):
    """How far the most uncertain truth may be above its mean."""
    return max((upper(*saving(truth, arm), len(turns)) - saving(truth, arm)[0] for arm, turns in truth.items() if arm != "base"), default=0.0)


def spread(result):
    """Of the turns of the program as it is."""
    joules = [turn["joules"] for turn in result["truth"]["base"]]
    return statistics.stdev(joules) / statistics.mean(joules) if len(joules) > 1 else 0.0


def unlike(result):
    """Whether the program as it is takes its time otherwise beside its arms than under HEC: the truth is of another one then. Allocating
    takes up to nine times as long where other processes hold the card too."""
    printed = result["printed"]
    if not printed.get("seconds"):
        return False
    ratio = statistics.mean(turn["seconds"] for turn in result["truth"]["base"]) * printed["units"] / printed["seconds"]
    return not 1 / UNLIKE <= ratio <= UNLIKE


def waits(result):
    """Share of its time in which a server has no request: by its seconds without a pause between them, or as drawn where that was not run."""
    if "probe-quiet" in result["truth"]:
        return saving(result["truth"], "probe-quiet", "seconds")[0]
    return result.get("waits") or 0.0


def measured(result, what="joules"):
    """Inefficiency -> (saved by its fix alone, error), of what was measured."""
    arms = {name: fix_of(result["spec"], name) for name in result["spec"]["faults"]}
    return {name: saving(result["truth"], arm, what) for name, arm in arms.items() if arm in result["truth"]}


def truth_of(result, cause, what="joules"):
    """(saved, error, by what) of what is called by this cause; None: nothing of it was measured. A fix that another cause names first tells
    only where nothing else does: a larger batch saves more than the launches that it makes fewer."""
    found = [(*of, name) for name, of in measured(result, what).items() if cause == FAULTS[name].causes[0]]
    found += [(*saving(result["truth"], f"probe-{cause}", what), "probe")] if f"probe-{cause}" in result["truth"] else []
    found = found or [(*of, name) for name, of in measured(result, what).items() if cause in FAULTS[name].causes]
    return max(found, default=None)


def brought(result, cause):
    """As truth_of, by the change that the claim is of."""
    probe = f"probe-{cause}"
    if claims_more(result["spec"], cause) and probe in result["truth"]:
        return (*saving(result["truth"], probe), "probe")
    return truth_of(result, cause)


def claims(result):
    """[(cause, low, best, high, of)]: joules that HEC says a fix saves, of a step's where it says so, else of the whole run's."""
    for finding in result["findings"]:
        if finding["cause"] == "none":
            continue
        predicted = finding["predicted"]
        step = (predicted.get("step") or {}).get("joules_fraction")
        whole = predicted.get("joules_fraction")
        if step and step[1] is not None:
            yield (finding["cause"], *step, "step")
        elif whole and whole[1] is not None:
            yield (finding["cause"], *whole, "run")


def share_of(result, of):
    """What a saving of the loop is of what the claim is of."""
    joules = result.get("joules")
    if of == "step" or not joules:
        return 1.0
    a_unit = statistics.mean(turn["joules"] for turn in result["truth"]["base"])
    return min(1.0, a_unit * result["printed"]["units"] / joules)


def first_of(result):
    """The cause that the report puts first of what can be changed; None: nothing."""
    first = next((finding for finding in result["findings"] if finding["actionable"] or finding["cause"] == "quiet"), None)
    return first["cause"] if first and first["cause"] != "none" else None


def first_right(result):
    """Whether the first finding is right of this program; None: nothing measures it."""
    cause = first_of(result)
    largest = max((of[0] for of in measured(result).values()), default=0.0)
    if cause == "quiet":
        return waits(result) >= WAITS
    if cause is None:
        return largest < HEALTHY
    true = truth_of(result, cause)
    if not true:
        return None
    if largest < HEALTHY:  # right, if it says itself that there is as little to find
        said = next((best for name, _, best, *_ in claims(result) if name == cause), HEALTHY)
        return true[0] >= HEALTHY or said < CLAIMED
    return true[0] >= largest - AS_GOOD


def verdict(result):
    """One program: what is right, what was missed, what was claimed without truth. `unjudged` says why a program's first finding is not."""
    why = NOISE if spread(result) > NOISY else OTHERWISE if unlike(result) else None
    if why:
        return {"first_right": None, "unjudged": why, "claims": [], "due": {}}
    said, named = [], {finding["cause"] for finding in result["findings"] if finding["actionable"]}
    turns = len(result["truth"]["base"])
    for cause, low, best, high, of in claims(result):
        true = brought(result, cause)
        part = share_of(result, of)
        row = {"cause": cause, "low": low, "best": best, "high": high, "of": of}
        if true:
            saved, error = true[0] * part, true[1] * part
            row |= {"saved": saved, "error": error, "by": true[2],
                    "false": best >= CLAIMED and upper(saved, error, turns) < BROUGHT * part,
                    "unsure": best >= CLAIMED and saved < BROUGHT * part <= upper(saved, error, turns),
                    "holds": low - SLACK - error <= saved <= high + SLACK + error}
        said.append(row)
    due = {name: of[0] for name, of in measured(result).items() if of[0] >= COUNTS}
    right = first_right(result)
    return {"first_right": right, "unjudged": UNMEASURED if right is None else None, "claims": said,
            "due": {name: bool(named & set(FAULTS[name].causes)) for name in due}}


def wilson(right, count, z=1.96):
    """The 95 % interval of a share."""
    if not count:
        return None
    share, square = right / count, z * z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = z / (1 + square / count) * math.sqrt(share * (1 - share) / count + square / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def totals(results):
    """[(what, right, count, wanted)] of all programs that ran; the median error, in points, or None."""
    judged = [result["judged"] for result in results if "judged" in result]
    whole = [(result, result["judged"]) for result in results if "judged" in result and result["judged"]["unjudged"] != NOISE]
    due = [named for verdict in judged for named in verdict["due"].values()]
    spoken = [row for verdict in judged for row in verdict["claims"] if row["best"] >= CLAIMED]
    known = [row for row in spoken if "saved" in row]
    errors = [abs(row["best"] - row["saved"]) for row in known]
    right = sum(verdict["first_right"] is True for verdict in judged)
    unjudged = {why: sum(verdict["unjudged"] == why for verdict in judged) for why in (NOISE, UNMEASURED, OTHERWISE)}
    rows = [("first finding right, of those judged", right, len(judged) - sum(unjudged.values()), ">= 90 %"),
            ("first finding right, what is not measured counted as wrong", right, len(judged) - unjudged[NOISE] - unjudged[OTHERWISE], ""),
            ("first finding not judged: nothing measures it", unjudged[UNMEASURED], len(judged), ""),
            ("not judged: noisy", unjudged[NOISE], len(judged), ""),
            ("causes of >= 10 % of the joules named", sum(due), len(due), ">= 85 %"),
            ("false claims (of >= 5 %, surely < 2 % measured)", sum(row["false"] for row in known), len(known), "<= 3 %"),
            ("claims of which the turns leave open whether they are false", sum(row["unsure"] for row in known), len(known), ""),
            ("predicted within 12 points", sum(error <= WITHIN for error in errors), len(errors), ">= 90 %"),
            ("intervals that hold", sum(row["holds"] for row in known), len(known), "85 to 95 %"),
            ("not judged: takes its time otherwise among its arms than under hec", unjudged[OTHERWISE], len(judged), ""),
            ("nothing said first where a fix saves >= 10 %", sum(bool(verdict["due"]) and first_of(result) is None for result, verdict in whole),
             len(whole), "0 of jobs")]
    return rows, 100 * statistics.median(errors) if errors else None


def by_cause(results):
    """{cause: (claims, median error, mean of claimed less measured, intervals that hold, false)} of claims of 5 % and more; in points."""
    known = {}
    for result in results:
        for row in result["judged"]["claims"] if "judged" in result else ():
            if row["best"] >= CLAIMED and "saved" in row:
                known.setdefault(row["cause"], []).append(row)
    return {cause: (len(rows), 100 * statistics.median(abs(row["best"] - row["saved"]) for row in rows),
                    100 * statistics.mean(row["best"] - row["saved"] for row in rows), sum(row["holds"] for row in rows),
                    sum(row["false"] for row in rows)) for cause, rows in sorted(known.items(), key=lambda item: -len(item[1]))}


def slower(results):
    """{whether it replays graphs: how much longer a unit took under hec than in the turns without, by program}, where those agree."""
    found = {True: [], False: []}
    for result in results:
        turns = [turn["seconds"] for turn in result.get("truth", {}).get("base", [])]
        if len(turns) > 1 and result["printed"].get("seconds") and statistics.stdev(turns) <= STEADY * statistics.mean(turns):
            found[bool(result["spec"]["captured"])].append(result["printed"]["seconds"] / result["printed"]["units"] / statistics.mean(turns) - 1)
    return found


def unjudged(results):
    """(seed, cause, claimed) of claims of 5 % and more that nothing measured tells of."""
    return [(result["seed"], row["cause"], row["best"]) for result in results if "judged" in result
            for row in result["judged"]["claims"] if row["best"] >= CLAIMED and "saved" not in row]


def percent(value):
    return f"{100 * value:.0f} %"


def what_is(spec):
    sizes = [f"{spec['framework']} {spec['model']} {spec['loop']}", spec["precision"], f"batch {spec['batch']}"]
    return ", ".join(sizes)


def table(results):
    """Markdown: a row a program, then the totals."""
    lines = ["| seed | program | saved by each fix | first finding | right | claims (measured) | missed |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for result in results:
        if "judged" not in result:
            continue
        verdict = result["judged"]
        turns = len(result["truth"]["base"])
        true = ", ".join(f"{name} {percent(saved)} ±{100 * (upper(saved, error, turns) - saved):.0f}"
                         for name, (saved, error) in measured(result).items()) or "none"
        said = ", ".join(f"{row['cause']} {percent(row['best'])} ({percent(row['saved']) if 'saved' in row else 'not measured'})"
                         + (" FALSE" if row.get("false") else " or false" if row.get("unsure") else "") for row in verdict["claims"] if row["best"] >= CLAIMED)
        missed = ", ".join(name for name, named in verdict["due"].items() if not named)
        right = {True: "yes", False: "NO"}.get(verdict["first_right"], verdict["unjudged"])
        lines.append(f"| {result['seed']} | {what_is(result['spec'])} | {true} | {first_of(result) or 'none'} | {right} | {said} | "
                     f"{missed} |")
    rows, median = totals(results)
    lines += ["", "| figure | measured | 95 % interval | wanted |", "| --- | --- | --- | --- |"]
    for what, right, count, wanted in rows:
        interval = wilson(right, count)
        lines.append(f"| {what} | {right} of {count}" + (f", {percent(right / count)} | {percent(interval[0])} to {percent(interval[1])} "
                                                         if count else " | ") + f"| {wanted} |")
    lines.append(f"| median error of predicted joules | {'' if median is None else f'{median:.1f} points'} | | <= 5 points |")
    causes = by_cause(results)
    if causes:
        lines += ["", "| cause | claims | median error, points | claimed less measured, mean | intervals that hold | false |",
                  "| --- | --- | --- | --- | --- | --- |"]
        lines += [f"| `{cause}` | {count} | {error:.0f} | {round(less):+d} | {hold} | {false} |" for cause, (count, error, less, hold, false) in causes.items()]
    for graphs, shares in slower(results).items():
        if len(shares) > 1:
            low, middle, high = (f"{100 * share:+.1f} %" for share in statistics.quantiles(shares, n=4))
            lines += ["", f"- a unit takes longer under hec, {len(shares)} programs that replay {'CUDA' if graphs else 'no'} graphs: median {middle} "
                          f"(quartiles {low} to {high}, most {100 * max(shares):+.1f} %)"]
    lines += [""] + [f"- not judged: {seed}: {cause}, claims {percent(best)}" for seed, cause, best in unjudged(results)]
    lines += [f"- {'cut' if result['failed'] == CUT else 'not run'}: {result['seed']}: {what_is(result['spec'])}: {last_line(result['failed'])}"
              + (" WITHOUT HEC IT ENDS WELL" if ONLY_UNDER_HEC in result["failed"] else "") for result in results if "failed" in result]
    return "\n".join(lines) + "\n"


def last_line(text):
    """Of an error: the last line that says what it was, else the last with words."""
    lines = [line for line in text.replace("\\n", "\n").splitlines() if any(letter.isalpha() for letter in line)]
    return next((line for line in reversed(lines) if "Error:" in line or "error:" in line), lines[-1] if lines else text)[-200:]
