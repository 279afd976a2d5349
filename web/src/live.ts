// The agent's page: devices, who uses them, and what their joules were lost to; it asks the agent again and again.
import uPlot from "uplot";
import type { Live, LiveCauses, LiveDevice, LiveJob, LiveTenant, Maybe, Page } from "./data";
import { code, h, note, section, svg, type Child } from "./dom";
import { bytes, joules, known, seconds, share, watts } from "./format";
import { fit, time_axis, value_axis } from "./plot";
import { legend, state_colour } from "./ribbon";
import { live_table } from "./table";
import { figures } from "./summary";

const SPARK = { wide: 120, tall: 26 };

/** Power of the last intervals, from 0 to the limit; the figures stand beside it. */
function sparkline(device: LiveDevice): Child {
    const values = device.power_history_w ?? [], known_values = values.filter(known);
    if (known_values.length < 2) return "—";
    const most = Math.max(device.limit_w ?? 0, ...known_values) || 1, step = SPARK.wide / (values.length - 1);
    const lines: string[] = [];
    let line: string[] = [];
    values.forEach((value, i) => {
        if (known(value)) line.push(`${(i * step).toFixed(1)},${(SPARK.tall - (value / most) * (SPARK.tall - 2) - 1).toFixed(1)}`);
        else if (line.length) { lines.push(line.join(" ")); line = []; }
    });
    if (line.length) lines.push(line.join(" "));
    return svg("svg", { viewBox: `0 0 ${SPARK.wide} ${SPARK.tall}`, class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" },
        lines.map((points) => svg("polyline", { points })));
}

function meter(value: Maybe): Child {
    if (!known(value)) return "—";
    return h("span", { class: "meter" }, h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--from": 0, "--part": Math.min(1, Math.max(0, value)), "--swatch": "var(--line-0)" })), share(value));
}

function power(device: LiveDevice): Child {
    return known(device.power_w) && known(device.limit_w) && device.limit_w > 0
        ? [meter(device.power_w / device.limit_w), h("small", {}, `${watts(device.power_w)} of ${watts(device.limit_w)}`)] : watts(device.power_w);
}

const by_waste = <T extends { wasted_joules?: Maybe; joules?: Maybe }>(rows: readonly T[]): T[] =>
    [...rows].sort((a, b) => (b.wasted_joules ?? -1) - (a.wasted_joules ?? -1) || (b.joules ?? -1) - (a.joules ?? -1));

const devices_table = (live: Live): ReturnType<typeof live_table<LiveDevice>> => live_table<LiveDevice>({
    caption: "Devices, their power against its limit", hide_caption: true, rows: live.devices, empty: "No device answers.", columns: [
        { title: "GPU", cell: (d) => d.index, by: (d) => d.index, numeric: true },
        { title: "Name", cell: (d) => d.name ?? "—", by: (d) => d.name },
        { title: "Power of limit", cell: power, by: (d) => d.power_w },
        { title: "Lately", cell: sparkline },
        { title: "SM", cell: (d) => share(d.sm ?? d.gpu), by: (d) => d.sm ?? d.gpu, numeric: true },
        { title: "Tensor", cell: (d) => share(d.tensor), by: (d) => d.tensor, numeric: true },
        { title: "DRAM", cell: (d) => share(d.dram), by: (d) => d.dram, numeric: true },
        { title: "Memory", cell: (d) => (known(d.memory_used_bytes) ? `${bytes(d.memory_used_bytes)} of ${bytes(d.memory_total_bytes)}` : "—"), by: (d) => d.memory_used_bytes, numeric: true },
        { title: "Temperature", cell: (d) => (known(d.temperature_c) ? `${d.temperature_c.toFixed(0)} °C` : "—"), by: (d) => d.temperature_c, numeric: true },
        { title: "Verdict", cell: (d) => (d.up ? d.verdict ?? "—" : h("strong", { class: "gone" }, "does not answer")), by: (d) => d.verdict },
    ],
});

const tenants_table = (live: Live): ReturnType<typeof live_table<LiveTenant>> => live_table<LiveTenant>({
    caption: "Who uses the devices, most waste first", hide_caption: true, rows: by_waste(live.tenants), shown: 20, empty: "Nobody uses a device.", text: (t) => `${t.name} ${t.kind ?? ""}`, columns: [
        { title: "Name", cell: (t) => code(t.name), by: (t) => t.name, wide: true },
        { title: "Kind", cell: (t) => t.kind ?? "—", by: (t) => t.kind },
        { title: "GPUs", cell: (t) => t.devices.join(", ") || "—" },
        { title: "Now", cell: (t) => watts(t.watts), by: (t) => t.watts, numeric: true },
        { title: "Energy", cell: (t) => joules(t.joules), by: (t) => t.joules, numeric: true },
        { title: "Held, unused", cell: (t) => joules(t.wasted_joules), by: (t) => t.wasted_joules, numeric: true },
    ],
});

const jobs_table = (live: Live): ReturnType<typeof live_table<LiveJob>> => live_table<LiveJob>({
    caption: "Jobs that report to the agent, most waste first", hide_caption: true, rows: by_waste(live.jobs), shown: 20, empty: "No job reports (hec run --agent).", text: (j) => `${j.name} ${j.command ?? ""} ${j.cause ?? ""}`, columns: [
        { title: "Job", cell: (j) => [code(j.name), j.command ? h("small", {}, code(j.command)) : null], by: (j) => j.name, wide: true },
        { title: "GPUs", cell: (j) => j.devices.join(", ") || "—" },
        { title: "Cause", cell: (j) => j.cause ?? "—", by: (j) => j.cause },
        { title: "Wasted", cell: (j) => joules(j.wasted_joules), by: (j) => j.wasted_joules, numeric: true },
        { title: "Share", cell: (j) => meter(j.wasted_share), by: (j) => j.wasted_share, numeric: true },
        { title: "Energy", cell: (j) => joules(j.joules), by: (j) => j.joules, numeric: true },
        { title: "Observed", cell: (j) => seconds(j.seconds), by: (j) => j.seconds, numeric: true },
    ],
});

/** Areas, each on those before it. */
function stacked(causes: LiveCauses): uPlot.AlignedData {
    const length = Math.max(0, ...causes.watts.map((row) => row.length));
    const sums = Array.from({ length }, () => 0);
    const rows = causes.watts.map((row) => sums.map((before, i) => {
        const value = row[i];
        sums[i] = before + (known(value) ? value : 0);
        return causes.watts.some((r) => known(r[i])) ? sums[i] ?? null : null;
    }));
    return [sums.map((_, i) => causes.from_s + i * causes.step_s), ...rows] as uPlot.AlignedData;
}

function areas(causes: LiveCauses): { element: HTMLElement; update: (causes: LiveCauses) => void } {
    const box = h("div", { class: "plot", role: "img", "aria-label": "Watts by cause over the last minutes, stacked; the legend follows, the table has the sums", "--height": "200px" });
    const plot = new uPlot({
        width: 640, height: 200, padding: [8, 12, 0, 0], legend: { show: false }, cursor: { show: false },
        series: [{}, ...causes.names.map((name) => ({ stroke: () => state_colour(name), width: 1, points: { show: false },
            ...(name === causes.names[0] ? { fill: () => state_colour(name) } : {}) }))],
        bands: causes.names.slice(1).map((name, i) => ({ series: [i + 2, i + 1] as [number, number], fill: () => state_colour(name) })),
        scales: { x: { time: false }, y: { range: (_, __, high) => [0, (high ?? 1) * 1.06 || 1] } }, axes: [time_axis(), value_axis("W")],
    }, stacked(causes), box);
    fit(plot, box);
    return { element: h("div", {}, box, legend(causes.names)), update: (next) => plot.setData(stacked(next)) };
}

function causes_table(live: Live): ReturnType<typeof live_table<{ name: string; joules: number }>> {
    return live_table({ caption: "Energy by cause in these minutes", rows: cause_sums(live.causes), empty: "Nothing was attributed yet.", columns: [
        { title: "Cause", cell: (c) => c.name, by: (c) => c.name }, { title: "Energy", cell: (c) => joules(c.joules), by: (c) => c.joules, numeric: true }] });
}

function cause_sums(causes: LiveCauses | null | undefined): { name: string; joules: number }[] {
    return (causes?.names ?? []).map((name, i) => ({ name, joules: (causes?.watts[i] ?? []).reduce((sum: number, w) => sum + (w ?? 0), 0) * (causes?.step_s ?? 0) }))
        .filter((c) => c.joules > 0).sort((a, b) => b.joules - a.joules);
}

function top_figures(live: Live): HTMLElement {
    const up = live.devices.filter((d) => d.up), sum = (of: (d: LiveDevice) => Maybe): number | null =>
        (up.length && up.every((d) => known(of(d))) ? up.reduce((s, d) => s + (of(d) ?? 0), 0) : null);
    const now = sum((d) => d.power_w), limit = sum((d) => d.limit_w), wasted = live.jobs.map((j) => j.wasted_joules).filter(known);
    return figures([["Power now", watts(now), known(now) && limit ? `${share(now / limit)} of ${watts(limit)}` : null],
        ["Devices", `${up.length}`, up.length < live.devices.length ? `${live.devices.length - up.length} do not answer` : null],
        ["Jobs that report", `${live.jobs.length}`, wasted.length ? `${joules(wasted.reduce((a, b) => a + b, 0))} wasted` : null],
        ["The agent's CPU time", seconds(live.self?.cpu_seconds), bytes(live.self?.resident_bytes)]]);
}

export function live_page(page: Page): Child {
    let live = page.live;
    if (!live) return h("p", {}, "This page has no data of an agent.");
    const said = h("p", { class: "poll", role: "status" }, `As of ${live.time}`);
    const top = h("div", {}, top_figures(live));
    const devices = devices_table(live), tenants = tenants_table(live), jobs = jobs_table(live), sums = causes_table(live);
    const place = h("div", { class: "causes" });
    let chart: ReturnType<typeof areas> | null = null, names = "";
    const draw_causes = (causes: LiveCauses | null | undefined): void => {
        if (!causes?.names.length) return;
        if (chart && names === causes.names.join()) return chart.update(causes);
        chart = areas(causes);
        names = causes.names.join();
        place.replaceChildren(chart.element);
    };
    draw_causes(live.causes);
    const show = (next: Live): void => {
        live = next;
        top.replaceChildren(top_figures(next));
        devices.update(next.devices);
        tenants.update(by_waste(next.tenants));
        jobs.update(by_waste(next.jobs));
        sums.update(cause_sums(next.causes));
        draw_causes(next.causes);
        said.className = "poll";
        said.textContent = `As of ${next.time}`;
    };
    const poll = async (): Promise<void> => {
        try {
            const answer = await fetch("live.json", { cache: "no-store" });
            const next = answer.ok ? ((await answer.json()) as Page).live : undefined;
            if (!next) throw new Error(String(answer.status));
            show(next);
        } catch {
            said.className = "poll gone";
            said.textContent = `The agent does not answer. This is as of ${live?.time ?? "—"}.`;
        }
        setTimeout(() => void poll(), Math.max(0.25, live?.interval_s ?? 1) * 1000);
    };
    if (location.protocol.startsWith("http")) setTimeout(() => void poll(), Math.max(0.25, live.interval_s) * 1000);
    return [
        h("section", { class: "top", "aria-labelledby": "answer" }, h("h1", { id: "answer" }, live.hostname ?? "This node"), said, top),
        section("devices", "Devices", devices.element), section("jobs", "Jobs by waste", jobs.element), section("tenants", "Who uses the devices", tenants.element),
        section("causes", "Where the power went lately", place, sums.element),
        note(`hec ${live.hec_version}, read every ${seconds(live.interval_s)}. `, h("a", { href: "metrics" }, "metrics")),
    ];
}
