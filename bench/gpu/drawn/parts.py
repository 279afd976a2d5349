"""Pieces of text that the writers of all frameworks use."""
import random
import re
import textwrap


class Flags:
    """A spec in the form that is written: `without` these inefficiencies, with what a probe changes."""

    def __init__(self, spec, without=frozenset(), probe=None):
        self.spec, self.probe, self.knobs = spec, probe, spec["knobs"]
        self.active = set(spec["faults"]) - set(without)
        self.batch = spec["batch"]
        if "small_batch" in self.active:
            self.batch = max(1, self.batch // 16)
        if probe == "batch":
            self.batch *= 4
        self.framed = spec["framework"] in ("lightning", "trainer") and probe != "host"  # without the framework's own Python
        self.captured = bool(spec.get("captured")) and "eager" not in self.active or probe == "launch" and not self.framed
        self.precision = "autocast" if probe == "precision" else spec["precision"]
        self.report_every = {1: 50}.get(spec["report_every"], 400) if probe in ("sync", "host") else spec["report_every"]
        loaded = {"loader_workers", "loader_work"} & self.active
        self.feed = "resident" if probe == "data" or probe == "host" and not loaded else spec["feed"]
        self.rng = random.Random(spec["style"])

    def __getitem__(self, key):
        return self.spec[key]

    def has(self, name):
        return name in self.active

    def drawn(self, name):
        return name in self.spec["faults"]


def indented(text, by=4):
    return textwrap.indent(text, " " * by)


def filled(text, **values):
    """NAME of @NAME@, so that braces stay what they are in the program's language."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


# What a program does in plain Python: a function, what it is given, and how many items a microsecond-scaled count is.
HOST_CODE = [
    ("def tally(words):\n    counts = {}\n    for word in words:\n        counts[word] = counts.get(word, 0) + 1\n    return counts\n",
     "random.Random(1).choices(range(1000), k=@N@)", "tally", 1.0),
    ("def score(values):\n    total = 0.0\n    for value in values:\n        total += value * value if value > 0.5 else -value\n"
     "    return total\n",
     "[random.random() for _ in range(@N@)]", "score", 1.5),
    ("def describe(numbers):\n    return \",\".join(f\"{number}:{number % 7}\" for number in numbers)\n",
     "list(range(@N@))", "describe", 0.4),
    ("def ordered(pairs):\n    best = {}\n    for key, value in pairs:\n        if key not in best or best[key] < value:\n"
     "            best[key] = value\n    return sorted(best)\n",
     "[(i * 7919 % 512, i) for i in range(@N@)]", "ordered", 1.2),
]
HOST_PLACES = ("host_before", "host_inside", "host_after")


def host_code(flags):
    """(functions, set-up in main, {place: the lines there})."""
    functions, setup, places = [], [], {}
    for place in HOST_PLACES:
        if not flags.drawn(place):
            continue
        function, items, name, scale = flags.rng.choice(HOST_CODE)
        functions.append(function)
        setup.append(filled(f"{name}_input = {items}\n", N=max(1, round(flags.knobs[place] * scale))))
        call = f"{name}_seen = {name}({name}_input)\n"
        if flags.has(place):
            places[place] = call
        else:
            setup.append(call)
    if flags.drawn("logging"):
        lines = "for item in range(@LINES@):\n    log.info(\"step %d item %d rate %.5f\", step, item, 1e-3 / (1 + item))\n"
        lines = filled(lines, LINES=flags.knobs["logging"])
        setup.append("logging.basicConfig(filename=\"progress.log\", level=logging.INFO)\nlog = logging.getLogger(\"loop\")\n")
        places["logging"] = lines if flags.has("logging") else "if step % 500 == 0:\n" + indented(lines)
    return "\n\n".join(functions), "".join(setup), places


def reported(flags, line):
    """A line of the loop that is for every so many steps."""
    return line if flags.report_every == 1 else f"if step % {flags.report_every} == 0:\n" + indented(line)


def beside(flags, create, download, upload, read):
    """(set-up, lines after the update) of a memory that goes to the host and back, and of values that are read: expressions of the framework."""
    setup, after = "", ""
    if flags.drawn("round_trip"):
        setup += f"memory = {filled(create, N=max(1, flags.knobs['round_trip'] // 4))}\n"
        after += f"kept = {download}\nmemory = {upload} * 0.999\n" if flags.has("round_trip") else "memory = memory * 0.999\n"
    if flags.drawn("reads"):
        setup += "history = []\n"
        after += (f"for which in range({flags.knobs['reads']}):\n    history.append({read})\n" if flags.has("reads")
                  else "if step % 64 == 0:\n    history.extend(values.tolist())\n")
    return setup, after


PROGRESS = '''class Progress:
    """Goes on for some seconds, then says how far it got."""

    def __init__(self, seconds):
        self.seconds, self.begin, self.units, self.steps = seconds, None, 0, 0

    def step(self, units):
        now = time.perf_counter()
        self.begin = self.begin or now
        self.units, self.steps = self.units + units, self.steps + 1
        return now - self.begin < self.seconds

    def end(self):
        seconds = time.perf_counter() - self.begin
        print(json.dumps({"units": self.units, "steps": self.steps, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    progress = Progress(float(os.environ.get("SECONDS", "8")))
    main(progress)
    progress.end()
'''


STANDARD = ("contextlib", "json", "logging", "os", "queue", "random", "sys", "threading", "time", "zlib")


def program(doc, imports, parts, progress=PROGRESS):
    """A whole program in Python: the imports that it needs, its parts, and what goes on for some seconds."""
    text = "\n\n".join(part.strip("\n") + "\n" for part in [*parts, progress] if part.strip("\n"))
    needed = "".join(f"import {name}\n" for name in STANDARD if re.search(rf"\b{name}\.", text))
    return f'"""{doc}"""\n{needed}\n{imports}\n\n{text}'
