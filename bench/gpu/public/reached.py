"""What searches of one program came to, from the receipts of `hec try`: what the live one saves of what the thorough ones save, and in
what part of their time."""
import math

THOROUGH = ("climb", "reverse")
WANTED_SAVING, WANTED_TIME = 0.95, 0.25


def levers_of(text):
    return [lever for lever in text.split(",") if lever]


def figures(receipt):
    """What counts of a receipt. saved: of the joules of a unit of work, [low, best, high] at 95 %, 0 where nothing was shown; None where
    they were not measured. search_s: without the proof."""
    verdict = receipt["verdict"]
    tried = [{"levers": row["levers"], "outcome": row["outcome"], "ratio": row["joules"] and row["joules"][1]} for row in receipt["tried"]]
    out = {"kept": receipt["commands"]["levers"] if verdict else [], "unit": receipt["unit"], "before": None, "after": None,
           "saved": [0, 0, 0], "quality": None, "search_s": receipt["plan"]["spent_seconds"], "tried": tried,
           "trials": sum(row["trials"] for row in receipt["tried"]),
           "conditions": {fact["name"]: fact["value"] for fact in receipt["facts"]}}
    base = next((row["joules_per_unit"] for row in receipt["tried"] if row["outcome"] == "base"), None)
    if not verdict:
        return {**out, "before": base, "after": base, "saved": [0, 0, 0] if base is not None else None}
    joules = next(row for row in verdict["quantities"] if row["name"] == "joules_per_unit")
    if joules["ratio"] is None:
        return {**out, "saved": None}
    shown = joules["shown"] == "better" and verdict["quality"]["verdict"] != "fail"
    return {**out, "before": joules["a"], "after": joules["b"], "quality": verdict["quality"]["verdict"],
            "saved": [1 - ratio for ratio in reversed(joules["ratio"])] if shown else [0, 0, 0]}


def names(*searches):
    """All levers that these searches tried, in the order in which they came, but for those that only failed."""
    rows = [row for search in searches for row in search.get("tried", [])]
    came = dict.fromkeys(lever for row in rows for lever in levers_of(row["levers"]))
    ran = {lever for row in rows if row["outcome"] != "failed" for lever in levers_of(row["levers"])}
    return [lever for lever in came if lever in ran]


def thorough(searches):
    """The thorough searches together, or None where none was proven: the most that one of them saves, in the time of their trials and of
    one proof, that of the best; cut: one of them had no time to try all, or is yet to be made."""
    known = [searches[name] for name in THOROUGH if name in searches and "failed" not in searches[name]]
    proven = [search for search in known if search["saved"] is not None and not search["interrupted"]]
    if not proven:
        return None
    best = max(proven, key=lambda search: search["saved"][1])
    return {**best, "seconds": sum(search["search_s"] for search in known) + best["seconds"] - best["search_s"],
            "cut": any(search["cut"] for search in known) or len(known) < len(THOROUGH)}


def compared(searches):
    """saving: what live saves by what the thorough ones save, [low, best, high], by the outer ends of both intervals; where these find
    nothing, 1. seconds: its time by theirs, and by that of the climb alone. None: not known yet."""
    live, all_of = searches.get("live"), thorough(searches)
    if not live or not all_of or "failed" in live or live["saved"] is None or live["interrupted"]:
        return None
    (low, best, high), most = live["saved"], all_of["saved"]
    saving = [low / most[2], best / most[1], high / most[0] if most[0] > 0 else math.inf] if most[1] > 0 else [1, 1, 1]
    climb = searches.get("climb", {}).get("seconds")
    return {"saving": saving, "seconds": live["seconds"] / all_of["seconds"], "by_climb": climb and live["seconds"] / climb,
            "cut": all_of["cut"], "kept": all_of["kept"],
            "met": saving[1] >= WANTED_SAVING and live["seconds"] <= WANTED_TIME * all_of["seconds"]}


def amount(value):
    return "–" if value is None else f"{value:.4g}"


def percent(saved):
    return "–" if saved is None else "0 %" if saved[1] == 0 else f"{100 * saved[1]:.1f} % ({100 * saved[0]:.1f} to {100 * saved[2]:.1f})"


def cell(text):
    return str(text).replace("|", "/").replace("\n", " ")


def row_of(program, name, search):
    if "failed" in search:
        return f"| {program} | {name} | failed: {cell(search['failed'])[-200:]} |" + " |" * 6
    end = ", interrupted" if search["interrupted"] else ", cut" if search["cut"] else ""
    after = amount(search["after"])
    if search["saved"] and search["saved"][1]:
        low, high = (search["before"] * (1 - saved) for saved in (search["saved"][2], search["saved"][0]))
        after += f" ({low:.4g} to {high:.4g})"
    return (f"| {program} | {name}{end} | {', '.join(search['kept']) or 'nothing'} | {amount(search['before'])} | {after} | "
            f"{percent(search['saved'])} | {search['quality'] or '–'} | {search['trials']} | {search['search_s']:.0f} of "
            f"{search['seconds']:.0f} |")


def markdown(result, kinds):
    """The tables. kinds: what each program is."""
    lines = ["# What the live search reaches of a thorough one", ""] + [f"- {key}: {'; '.join(values)}" for key, values in result["conditions"].items()]
    lines += [f"- {name}: {owner} at {commit[:12]}" for name, (owner, commit) in result["repositories"].items()]
    lines += [f"- command: `{command}`" for command in result["commands"]]
    lines += ["", "| program | kind | of the saving | of the time | of the climb's time | thorough: kept | met |",
              "| --- | --- | --- | --- | --- | --- | --- |"]
    both = {name: compared(searches) for name, searches in result["programs"].items()}
    for name, found in both.items():
        if found:
            low, best, high = (100 * value for value in found["saving"])
            lines.append(f"| {name} | {kinds[name]} | {best:.0f} % ({low:.0f} to {high:.0f}) | {found['seconds']:.2f} | "
                         f"{amount(found['by_climb'])} | {', '.join(found['kept']) or 'nothing'}{', not all was tried' * found['cut']} | "
                         f"{'yes' if found['met'] else 'no'} |")
    known = [found for found in both.values() if found]
    lines += ["", f"{sum(found['met'] for found in known)} of {len(known)} programs reach {100 * WANTED_SAVING:.0f} % of the saving in "
              f"{WANTED_TIME:g} of the time; in {sum(found['cut'] for found in known)} of these not all was tried.", "",
              "| program | search | kept | J a unit, before | after | saved | quality | trials, blocks | s of search, of all |",
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    lines += [row_of(program, name, search) for program, searches in result["programs"].items() for name, search in searches.items()]
    return "\n".join(lines) + "\n"
