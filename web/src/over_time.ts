// A device over time: power, counters and what was chosen besides, above the ribbon of states.
import type { Report, Series, View } from "./data";
import { details, h, note, section } from "./dom";
import { instant, known, reading, watts } from "./format";
import { level_for } from "./levels";
import { plot, value_at, type Line } from "./plot";
import { Range, time_frame } from "./range";
import { legend, ribbon, states_at } from "./ribbon";
import { table } from "./table";
import { METRICS, STATES, state_title } from "./words";

type Device = Report["devices"][number];

const POWER = "gpu_power";
/** Counters that are shown at first; the others are one click away. */
const FIRST = ["gpm_sm_active", "gpm_tensor_active", "gpm_dram_active"];
const COLOURS = 8;

function title_of(series: Series): string {
    return METRICS[series.metric]?.title ?? series.name;
}

/** Counters in the order of what tells most; those that were 0 all the time last, and not among those shown at first. */
function counter_lines(all: readonly Series[]): Line[] {
    const order = Object.keys(METRICS), rank = (s: Series): number => (FIRST.includes(s.metric) ? -1 : order.includes(s.metric) ? order.indexOf(s.metric) : order.length);
    const ratios = all.filter((s) => s.unit === "1").sort((a, b) => rank(a) - rank(b));
    const lines = ratios.map((series, i) => ({ series, colour: `line-${METRICS[series.metric]?.line ?? i % COLOURS}`, shown: FIRST.includes(series.metric) }));
    if (!lines.some((line) => line.shown)) lines.slice(0, 2).forEach((line) => { line.shown = true; });
    return lines;
}

/** Lines that can be switched on and off, as check boxes with the colour of the line. */
function switches(lines: readonly Line[], changed: () => void): HTMLElement {
    return h("fieldset", { class: "switches" }, h("legend", { class: "hidden" }, "Counters"), lines.map((line) =>
        h("label", { "--swatch": `var(--${line.colour})` }, h("input", { type: "checkbox", checked: line.shown, change: (event) => {
            line.shown = (event.target as HTMLInputElement).checked;
            changed();
        } }), h("span", { class: "swatch" }), h("span", { title: line.series.meaning }, title_of(line.series)))));
}

interface Sample { time: number; values: (number | null)[]; states: string }

function samples(view: View, range: Range, shown: readonly Series[], device: Device): Sample[] {
    const step = (range.last - range.first) / 40, states = view.states?.find((s) => s.device === device.index);
    return Array.from({ length: 40 }, (_, i) => {
        const time = range.first + (i + 0.5) * step;
        return { time, states: states ? states_at(states, time, step) : "", values: shown.map((series) => {
            const level = level_for(series.levels, (l) => l.mean.length, range.first, range.last, 40);
            if (!level) return null;
            const from = Math.floor((time - step / 2 - level.from_s) / level.step_s), to = Math.max(from + 1, Math.floor((time + step / 2 - level.from_s) / level.step_s));
            const cells = level.mean.slice(Math.max(0, from), Math.max(0, to)).filter(known);
            return cells.length ? cells.reduce((a, b) => a + b, 0) / cells.length : null;
        }) };
    });
}

function values_table(view: View, range: Range, shown: readonly Series[], device: Device): HTMLElement {
    return table<Sample>({
        caption: "The same in forty steps, means", rows: samples(view, range, shown, device), columns: [
            { title: "Time", cell: (r) => instant(r.time, (range.last - range.first) / 100), numeric: true },
            ...shown.map((series, i) => ({ title: title_of(series), cell: (r: Sample) => reading(r.values[i], series.unit), numeric: true })),
            ...(view.states?.length ? [{ title: "States", cell: (r: Sample) => r.states || "—" }] : []),
        ],
    });
}

function other_plot(series: readonly Series[], range: Range, readout: (time: number | null) => void): HTMLElement | null {
    if (!series.length) return null;
    const place = h("div", { class: "other" });
    const select = h("select", { change: () => {
        const chosen = series[Number(select.value)];
        place.replaceChildren();
        if (chosen) place.append(plot({ label: title_of(chosen), lines: [{ series: chosen, colour: "line-5", shown: true }], range, height: 130, unit: chosen.unit, readout }).element);
    } }, h("option", { value: "" }, "nothing more"), series.map((s, i) => h("option", { value: i }, title_of(s))));
    return h("div", {}, h("label", { class: "filter" }, h("span", {}, "Also show"), select), place);
}

export function over_time(view: View, device: Device): HTMLElement | null {
    const all = (view.series ?? []).filter((s) => (s.device ?? device.index) === device.index && s.levels.some((l) => l.mean.some(known)));
    const states = view.states?.find((s) => s.device === device.index);
    if (!all.length && !states) return null;
    const steps = all.flatMap((s) => s.levels.map((l) => l.step_s)).concat(states?.levels.map((l) => l.step_s) ?? []);
    const range = new Range(0, view.duration_s, Math.max(Math.min(...steps) * 5, view.duration_s / 1e5));

    const power = all.find((s) => s.metric === POWER);
    const lines = counter_lines(all), others = all.filter((s) => s.unit !== "1" && s !== power);

    const readout = h("p", { class: "readout", "aria-hidden": "true" });
    const hint = "Drag to zoom, double-click for the whole run.";
    const say = (time: number | null): void => {
        if (time === null || time < range.first || time > range.last) {
            readout.textContent = hint;
            return;
        }
        const parts = [power && `${watts(value_at(power, time))}`,
            ...lines.filter((l) => l.shown).map((l) => `${title_of(l.series)} ${reading(value_at(l.series, time), l.series.unit)}`),
            states && states_at(states, time, (range.to - range.from) / 500)];
        readout.textContent = `${instant(time, (range.to - range.from) / 500)}:  ${parts.filter(Boolean).join("   ")}`;
    };
    say(null);

    const limit = device.power_w.limit;
    const charts: (Node | null)[] = [];
    if (power) {
        charts.push(h("h3", {}, "Power"), plot({
            label: `Power of GPU ${device.index} over time, mean ${watts(device.power_w.mean)}, at most ${watts(device.power_w.max)}; a table with its values follows`,
            lines: [{ series: power, colour: "line-0", shown: true }], range, height: 190, unit: "W",
            limit: known(limit) ? { value: limit, text: `limit ${watts(limit)}` } : null, top: limit, readout: say }).element);
    }
    if (lines.length) {
        const counters = plot({ label: "Counters of the hardware over time; a table with their values follows", lines, range, height: 160, unit: "1", top: 1, readout: say });
        charts.push(h("h3", {}, "Counters"), switches(lines, counters.redraw), counters.element);
    }
    if (states) {
        const names = states.names.filter((_, i) => states.levels.some((l) => l.shares.some((s) => (s?.[i] ?? 0) > 0)));
        charts.push(h("h3", {}, "States"), ribbon(states, range, say), legend(names));
    }
    const shown = [power, ...lines.filter((l) => l.shown).map((l) => l.series)].filter((s): s is Series => s !== undefined);
    return section("time", "Over time", time_frame(range, "Charts over time", [], ...charts.filter((c): c is Node => c !== null)), readout,
        other_plot(others, range, say), details("Values as a table", () => values_table(view, range, shown, device)),
        states ? details("What the states mean", () => h("dl", { class: "words" }, states.names.map((name) =>
            [h("dt", {}, state_title(name)), h("dd", {}, STATES[name]?.meaning ?? "")]))) : null,
        power?.source ? note(`Lines are means, the band from the least to the most of each cell. Power by ${power.source}.`) : null);
}
