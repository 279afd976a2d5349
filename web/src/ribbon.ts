// What a device was doing, as a ribbon under the plots, and a short stretch of it span by span.
import type { Detail, Lane, States } from "./data";
import { time_canvas, type Pen } from "./canvas";
import { code, h, note, plain } from "./dom";
import { seconds, share } from "./format";
import { cells_in, level_for } from "./levels";
import { GUTTER } from "./plot";
import { Range, time_frame } from "./range";
import { table } from "./table";
import { colour } from "./theme";
import { STATES, state_swatch, state_title, state_variable } from "./words";

export function state_colour(name: string): string {
    return colour(state_variable(name));
}

function draw_cells(pen: Pen, states: States): void {
    const level = level_for(states.levels, (l) => l.shares.length, pen.from, pen.to, pen.width / 3);
    if (!level) return;
    const colours = states.names.map(state_colour), [first, end] = cells_in(level, level.shares.length, pen.from, pen.to);
    pen.ctx.beginPath();
    pen.ctx.rect(GUTTER, 0, pen.width, pen.height);
    pen.ctx.clip();
    for (let i = first; i < end; i++) {
        const shares = level.shares[i];
        if (!shares) continue;
        // on whole pixels: cells neither overlap nor leave a seam
        const left = Math.round(pen.x(level.from_s + i * level.step_s)), right = Math.round(pen.x(level.from_s + (i + 1) * level.step_s));
        let bottom = pen.height;
        shares.forEach((part, n) => {
            const tall = part * pen.height;
            if (tall <= 0) return;
            pen.ctx.fillStyle = colours[n] ?? "gray";
            pen.ctx.fillRect(left, bottom - tall, right - left, tall);
            bottom -= tall;
        });
    }
}

/** "compute 93 %, launch 5 %" at an instant; "" where nothing is known. */
export function states_at(states: States, time: number, step: number): string {
    const level = level_for(states.levels, (l) => l.shares.length, time - step * 100, time + step * 100, 100);
    const shares = level?.shares[Math.floor((time - level.from_s) / level.step_s)];
    if (!shares) return "";
    return shares.map((part, i) => ({ part, name: states.names[i] ?? "" })).filter(({ part }) => part >= 0.005)
        .sort((a, b) => b.part - a.part).slice(0, 3).map(({ part, name }) => `${state_title(name)} ${share(part)}`).join(", ");
}

export function ribbon(states: States, range: Range, at: (time: number | null) => void): HTMLElement {
    return time_canvas("Ribbon of states over time; the ledger has their sums", 40, range, (pen) => draw_cells(pen, states), (time) => at(time));
}

export function legend(names: readonly string[]): HTMLElement {
    return h("ul", { class: "legend", "aria-label": "States" }, names.map((name) =>
        h("li", { title: STATES[name]?.meaning }, h("span", { class: "swatch", "--swatch": state_swatch(name) }), state_title(name))));
}

const LANE = 26, LABEL = 13;

function colour_of(lane: Lane, name: string, index: number): string {
    return lane.kind === "state" ? state_colour(name) : colour(`span-${index % 6}`);
}

function draw_lanes(pen: Pen, detail: Detail): void {
    const { ctx } = pen;
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    detail.lanes.forEach((lane, row) => {
        const top = row * (LANE + LABEL), text = plain(lane.name);
        ctx.fillStyle = colour("muted");
        ctx.fillText(text.length > 60 ? `${text.slice(0, 59)}…` : text, GUTTER, top + LABEL / 2);
        ctx.save();
        ctx.beginPath();
        ctx.rect(GUTTER, top, pen.width, LANE + LABEL);
        ctx.clip();
        lane.start_us.forEach((start, i) => {
            const from = detail.from_s + start / 1e6, to = from + (lane.us[i] ?? 0) / 1e6;
            if (to < pen.from || from > pen.to) return;
            const index = lane.name_index[i] ?? 0, name = detail.names[index] ?? "", left = pen.x(from), wide = Math.max(0.7, pen.x(to) - left);
            ctx.fillStyle = colour_of(lane, name, index);
            ctx.fillRect(left, top + LABEL, wide, LANE - 6);
            if (wide > 44) {
                ctx.fillStyle = colour(lane.kind === "state" ? "on-state" : "on-span");
                const room = Math.floor((wide - 8) / 6.2), shown = plain(name);
                ctx.fillText(shown.length > room ? `${shown.slice(0, room - 1)}…` : shown, Math.max(left, GUTTER) + 4, top + LABEL + (LANE - 6) / 2);
            }
        });
        ctx.restore();
    });
}

function span_at(detail: Detail, time: number, y: number, slack: number): string {
    const lane = detail.lanes[Math.floor(y / (LANE + LABEL))];
    if (!lane) return "";
    const us = (time - detail.from_s) * 1e6;
    const i = lane.start_us.findIndex((start, n) => us >= start - slack && us <= start + (lane.us[n] ?? 0) + slack);
    return i < 0 ? "" : `${plain(detail.names[lane.name_index[i] ?? -1] ?? "")}: ${seconds((lane.us[i] ?? 0) / 1e6)}`;
}

interface Sum { lane: string; name: string; count: number; us: number }

function sums(detail: Detail): Sum[] {
    const by = new Map<string, Sum>();
    for (const lane of detail.lanes) {
        lane.name_index.forEach((index, i) => {
            const name = detail.names[index] ?? "", key = `${lane.name}\n${name}`;
            const sum = by.get(key) ?? { lane: lane.name, name, count: 0, us: 0 };
            sum.count++;
            sum.us += lane.us[i] ?? 0;
            by.set(key, sum);
        });
    }
    return [...by.values()].sort((a, b) => b.us - a.us);
}

export function lanes(detail: Detail): HTMLElement {
    const length = detail.to_s - detail.from_s, range = new Range(detail.from_s, detail.to_s, length / 5000);
    const readout = h("p", { class: "readout", "aria-hidden": "true" }, "Point at a span to read it.");
    const canvas = time_canvas(`${detail.lanes.length} lanes of spans; the table below has their sums`, detail.lanes.length * (LANE + LABEL), range,
        (pen) => draw_lanes(pen, detail), (time, y) => {
            readout.textContent = (time !== null && span_at(detail, time, y, ((range.to - range.from) / 800) * 1e6)) || "Point at a span to read it.";
        });
    return h("div", {}, note(`${seconds(length)} from ${seconds(detail.from_s)} on, span by span.`),
        time_frame(range, "Spans", [], canvas), readout,
        table<Sum>({
            caption: "Spans of this stretch, summed by name", rows: sums(detail), shown: 8, text: (r) => `${r.lane} ${r.name}`, columns: [
                { title: "Time", cell: (r) => seconds(r.us / 1e6), by: (r) => r.us, numeric: true },
                { title: "Count", cell: (r) => r.count, by: (r) => r.count, numeric: true },
                { title: "Lane", cell: (r) => code(r.lane), by: (r) => r.lane },
                { title: "Name", cell: (r) => code(r.name), by: (r) => r.name, wide: true },
            ],
        }));
}
