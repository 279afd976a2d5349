"""Part `ends`: does a program end under HEC as it does without?"""
import concurrent.futures
import threading
import time

import catalogue
import figures
import playing

SLACK_S = 60  # a run that takes so much longer than without HEC hangs
FIRST_LIMIT_S = 240
CONTEXT_GB = 0.8  # of device memory, libraries' kernels included
GRACE_S = 25  # after the part's time; then a run is cut and not counted


class Ends:
    def __init__(self, player, options, result, cards):
        self.player, self.options, self.result, self.cards = player, options, result, cards
        self.free_gb = {card: gb for card, gb in enumerate(cards)}
        self.condition, self.references, self.deadline = threading.Condition(), {}, time.monotonic() + options.seconds_limit
        self.running, self.end = {}, self.deadline + GRACE_S
        self.gb = {p.name: p.gb for p in catalogue.PROGRAMS.values()}  # until the run without HEC has told
        self.names = [p.name for p in catalogue.PROGRAMS.values() if p.gpus <= len(cards) and p.name in options.only]
        self.wanted = {(mode, name): round(options.scale * getattr(catalogue.PROGRAMS[name], "auto" if mode == "auto" else "full"))
                       for mode in options.modes for name in self.names}

    def done(self):
        counts = {(mode, name): total.get("runs", 0) for mode, programs in self.result["modes"].items()
                  for name, total in programs.items()}
        return {key: counts.get(key, 0) + self.running.get(key, 0) for key in self.wanted}

    def gpus_of(self, program, card):
        return [(card + i) % len(self.cards) for i in range(program.gpus)]

    def room(self, program, card):
        """What takes more than a whole card may have it alone."""
        need = [min(self.gb[program.name], self.cards[gpu] - 0.01) for gpu in self.gpus_of(program, card)]
        return all(self.free_gb[gpu] >= gb for gpu, gb in zip(self.gpus_of(program, card), need))

    def in_time(self, key):
        reference = self.references.get(key[1])
        return bool(reference) and not reference["bad"] and time.monotonic() + 1.2 * reference["usual"] + 3 < self.deadline

    def fits(self, key, card):
        return self.in_time(key) and self.room(catalogue.PROGRAMS[key[1]], card)

    def take(self, card):
        """What this slot does next: (mode, name), "wait", or None when there is nothing left."""
        for name in self.names:  # references first
            program = catalogue.PROGRAMS[name]
            if name not in self.references and self.room(program, card):
                self.references[name] = None
                return "none", name
        key = figures.next_of(self.wanted, self.done(), lambda k: self.fits(k, card))
        if key:
            self.running[key] = self.running.get(key, 0) + 1
            return key
        done = self.done()
        pending = any(self.references.get(name) is None for name in self.names)
        return "wait" if pending or any(done[k] < n and self.in_time(k) for k, n in self.wanted.items()) else None

    def slot(self, card):
        while time.monotonic() < self.deadline:
            with self.condition:
                task = self.take(card)
                if task is None:
                    return
                if task == "wait":
                    self.condition.wait(timeout=1)
                    continue
                program = catalogue.PROGRAMS[task[1]]
                gpus = self.gpus_of(program, card)
                gb = self.gb[program.name]
                for gpu in gpus:
                    self.free_gb[gpu] -= gb
            try:
                self.one(task[0], program, gpus)
            finally:
                with self.condition:
                    for gpu in gpus:
                        self.free_gb[gpu] += gb
                    self.condition.notify_all()

    def one(self, mode, program, gpus):
        command = catalogue.command(program, self.player.built, self.options.seconds or program.seconds, more=self.options.more)
        if mode == "none":
            self.references[program.name] = self.reference(program, command, gpus)
            return
        reference = self.references[program.name]
        limit = reference["seconds"] + SLACK_S
        run = self.player.play(command, min(limit, self.end - time.monotonic()), gpus, [f"--trace={mode}", *self.options.hec_options])
        cut = run["hung"] and run["seconds"] < limit
        memory = figures.ran_out_of_memory(run)
        found = [] if memory or cut else figures.abnormal(run, reference)
        case = None
        if found:
            case = {"found": found, "status": run["status"], "seconds": round(run["seconds"], 1), "stdout": run["stdout"][-500:],
                    "stderr": run["stderr"][-3000:], "backtrace": self.player.backtrace(run, command, self.end - time.monotonic())}
        self.player.forget(run)
        with self.condition:
            reference["usual"] = run["seconds"] if not run["hung"] else reference["usual"]
            self.running[mode, program.name] -= 1
            total = self.result["modes"].setdefault(mode, {}).setdefault(program.name, {})
            if memory:
                total["memory"] = total.get("memory", 0) + 1
            elif not cut:
                figures.add(total, found, case)
            self.options.save()
        if found:
            print(f"ends: {program.name} {mode}: {' '.join(found)}, status {run['status']}", flush=True)

    def reference(self, program, command, gpus):
        """Without HEC. Twice where it prints to stderr: what varies by itself is compared without its numbers."""
        run = self.player.play(command, min(FIRST_LIMIT_S, self.end - time.monotonic()), gpus)
        measured = playing.times(run).get("device_gb")
        self.gb[program.name] = measured + CONTEXT_GB if measured else program.gb
        self.player.forget(run)
        if run["stderr"]:
            again = self.player.play(command, min(FIRST_LIMIT_S, self.end - time.monotonic()), gpus)
            self.player.forget(again)
            run["varies"] = again["stderr"] != run["stderr"]
        run["usual"] = run["seconds"]
        run["bad"] = run["hung"] or run["status"] != program.status
        row = {"seconds": round(run["seconds"], 1), "status": run["status"], "varies": run.get("varies", False),
               "device_gb": round(self.gb[program.name], 1)}
        if run["bad"]:
            row["bad"] = run["stderr"][-1500:] or run["stdout"][-500:] or "hung"
        with self.condition:
            self.result["references"][program.name] = row
        if run["bad"]:
            print(f"ends: {program.name} without HEC: status {run['status']}: {run['stderr'][-300:]}", flush=True)
        return run

    def go(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs * len(self.cards)) as pool:
            slots = [pool.submit(self.slot, i % len(self.cards)) for i in range(self.options.jobs * len(self.cards))]
            for slot in slots:
                slot.result()


def measure(player, options, result, cards):
    result.setdefault("modes", {})
    result.setdefault("references", {})
    Ends(player, options, result, cards).go()
