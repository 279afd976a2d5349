// A step as it was recorded, and as the replay makes it with the answers to the findings, at one scale.
import type { Replay, ReplayedStep } from "./data";
import { h, note, section, svg, wide } from "./dom";
import { seconds, share } from "./format";
import { state_swatch } from "./words";

/** What a lane shows, in the colours of the states that come of it. */
const PARTS: Readonly<Record<string, { title: string; like: string }>> = {
    code: { title: "the program's own code", like: "host" }, data: { title: "data", like: "data" }, checkpoint: { title: "checkpoint", like: "checkpoint" },
    call: { title: "calls of the driver", like: "launch" }, wait: { title: "waiting for the device", like: "sync" },
    kernel: { title: "kernels", like: "compute" }, copy: { title: "copies", like: "copy" }, comm: { title: "communication", like: "comm" },
};

const WIDE = 860, LEFT = 64, ROW = 22, GAP = 4;

interface Run { part: string; from: number; count: number; full: number }

/** Cells that are alike, as one; those in which nothing is done are left out. A device's cell is as high as it is full, by tenths. */
function runs(cells: readonly number[], names: readonly string[], percent?: readonly number[]): Run[] {
    const found: Run[] = [];
    cells.forEach((cell, i) => {
        const part = names[cell] ?? "nothing", full = Math.ceil((percent?.[i] ?? 100) / 10) / 10, last = found.at(-1);
        if (last?.part === part && last.full === full && last.from + last.count === i) last.count++;
        else found.push({ part, from: i, count: 1, full });
    });
    return found.filter((run) => Object.hasOwn(PARTS, run.part));
}

function lane(title: string, cells: readonly number[], names: readonly string[], row: number, percent?: readonly number[]): Element[] {
    const cell = (WIDE - LEFT) / Math.max(1, cells.length), top = row * (ROW + GAP);
    return [svg("text", { x: LEFT - 8, y: top + ROW / 2 + 4, "text-anchor": "end" }, title),
        svg("rect", { class: "lane", x: LEFT, y: top, width: WIDE - LEFT, height: ROW }),
        ...runs(cells, names, percent).map((run) => svg("rect", { class: "part", "data-part": run.part, x: (LEFT + run.from * cell).toFixed(2), y: (top + ROW * (1 - run.full)).toFixed(1),
            width: (run.count * cell).toFixed(2), height: (ROW * run.full).toFixed(1), "--swatch": state_swatch(PARTS[run.part]?.like ?? "") }))];
}

function drawn(replay: Replay, step: ReplayedStep, title: string): Element {
    const text = `${title}: ${seconds(step.seconds)}`;
    return h("figure", {}, h("figcaption", {}, text), wide(title, svg("svg", { viewBox: `0 0 ${WIDE} ${2 * (ROW + GAP)}`, class: "replay", role: "img", "aria-label": text },
        lane("host", step.host, replay.names, 0), lane(`GPU ${replay.device}`, step.device, replay.names, 1, step.device_percent))));
}

export function replayed(replay: Replay, steps: boolean): HTMLElement | null {
    const { recorded, answered } = replay, many = replay.answers > 1, less = 1 - answered.seconds / recorded.seconds;
    const there = replay.names.filter((name, i) => Object.hasOwn(PARTS, name) && [recorded, answered].some((s) => s.host.includes(i) || s.device.includes(i)));
    return section("replay", steps ? "A step, and its replay" : "The run, and its replay",
        drawn(replay, recorded, "As recorded"),
        drawn(replay, answered, many ? `With the answers to ${replay.answers} findings` : "With the answer to the finding"),
        h("ul", { class: "legend", "aria-label": "What is done" }, there.map((name) =>
            h("li", {}, h("span", { class: "swatch", "--swatch": state_swatch(PARTS[name]?.like ?? "") }), PARTS[name]?.title ?? name))),
        note(less > 0 ? `${share(less)} less time, by replay` : "By replay", " of the recorded schedule: a prediction, nothing that was measured. ",
            "Where the host is ahead of the device, it is at a later step than the device. A cell has the colour of what is done most in it; on the device it is as high as the cell is used."));
}
