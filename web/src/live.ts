// The agent's page: the devices of a node now, who wastes most, and what the last minutes went into. Fetched again every interval.
import type { Live, LiveDevice, LiveJob, LiveTenant, Page } from "./data";
import { code, details, h, note, replace, section, wide, type Child } from "./dom";
import { bytes, instant, joules, known, seconds, share, si, watts } from "./format";
import { figures } from "./summary";
import { table } from "./table";
import { legend } from "./ribbon";
import { spark, stack } from "./stack";
import { state_title } from "./words";

const sum = (values: readonly (number | null | undefined)[]): number | null =>
    values.some(known) ? values.reduce<number>((all, v) => all + (known(v) ? v : 0), 0) : null;

function meter(part: number | null, text: string): HTMLElement {
    return h("span", { class: "meter" }, h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--from": 0, "--part": Math.min(1, part ?? 0), "--swatch": "var(--line-0)" })), text);
}

function devices(live: Live): Child {
    const most = Math.max(1, ...live.devices.flatMap((d) => [d.limit_w ?? 0, ...(d.power_history_w ?? []).filter(known)]));
    const of_limit = (d: LiveDevice): number | null => (known(d.power_w) && known(d.limit_w) && d.limit_w > 0 ? d.power_w / d.limit_w : null);
    return section("devices", "Devices", live.devices.length ? table<LiveDevice>({
        caption: "GPUs of this node now, power against its limit", rows: live.devices, columns: [
            { title: "GPU", cell: (d) => d.index, by: (d) => d.index, numeric: true },
            { title: "Name", cell: (d) => [d.name ?? "—", d.up ? null : h("span", { class: "gone" }, " not answering")], by: (d) => d.name },
            { title: "Power", cell: (d) => meter(of_limit(d), `${watts(d.power_w)} of ${watts(d.limit_w)}`), by: (d) => d.power_w },
            { title: "Lately", cell: (d) => spark(d.power_history_w ?? [], most) },
            { title: "Verdict", cell: (d) => d.verdict?.replaceAll("_", " ") ?? "—", by: (d) => d.verdict },
            { title: "Busy", cell: (d) => share(d.gpu), by: (d) => d.gpu, numeric: true },
            { title: "SM", cell: (d) => share(d.sm), by: (d) => d.sm, numeric: true },
            { title: "Tensor", cell: (d) => share(d.tensor), by: (d) => d.tensor, numeric: true },
            { title: "DRAM", cell: (d) => share(d.dram), by: (d) => d.dram, numeric: true },
            { title: "PCIe in, out", cell: (d) => `${si(d.pcie_rx_bytes_per_s, "B/s")}, ${si(d.pcie_tx_bytes_per_s, "B/s")}`, by: (d) => d.pcie_rx_bytes_per_s, numeric: true },
            { title: "Memory", cell: (d) => `${bytes(d.memory_used_bytes)} of ${bytes(d.memory_total_bytes)}`, by: (d) => d.memory_used_bytes, numeric: true },
            { title: "°C", cell: (d) => (known(d.temperature_c) ? d.temperature_c.toFixed(0) : "—"), by: (d) => d.temperature_c, numeric: true },
        ],
    }) : note(live.trouble ?? "No GPU answers."));
}

const by_waste = <Row extends { wasted_joules?: number | null | undefined }>(rows: readonly Row[]): Row[] =>
    [...rows].sort((a, b) => (b.wasted_joules ?? -1) - (a.wasted_joules ?? -1));

function jobs(live: Live): Child {
    return section("jobs", "Jobs, by what they waste", live.jobs.length ? table<LiveJob>({
        caption: "Jobs that report to the agent", rows: by_waste(live.jobs), shown: 20, text: (j) => `${j.name} ${j.command ?? ""} ${j.cause ?? ""}`, columns: [
            { title: "Wasted", cell: (j) => joules(j.wasted_joules), by: (j) => j.wasted_joules, numeric: true },
            { title: "Of its own", cell: (j) => share(j.wasted_share), by: (j) => j.wasted_share, numeric: true },
            { title: "Cause", cell: (j) => (j.cause ? state_title(j.cause) : "—"), by: (j) => j.cause },
            { title: "Job", cell: (j) => [code(j.name), j.runs === false ? h("span", { class: "note" }, " ended") : null], by: (j) => j.name, wide: true },
            { title: "GPUs", cell: (j) => j.devices.join(", ") || "—" },
            { title: "Energy", cell: (j) => joules(j.joules), by: (j) => j.joules, numeric: true },
            { title: "Time", cell: (j) => seconds(j.seconds), by: (j) => j.seconds, numeric: true },
        ],
    }) : note("No job reports to this agent: start one with ", code("hec run --agent -- COMMAND"), "."));
}

function tenants(live: Live): Child {
    return live.tenants.length ? section("tenants", "Who uses the devices", table<LiveTenant>({
        caption: "Pods, Slurm jobs and users, by what their processes draw while they hold a GPU and do not use it", rows: by_waste(live.tenants), shown: 20,
        text: (t) => `${t.name} ${t.kind ?? ""}`, columns: [
            { title: "Unused", cell: (t) => joules(t.wasted_joules), by: (t) => t.wasted_joules, numeric: true },
            { title: "Who", cell: (t) => code(t.name), by: (t) => t.name, wide: true },
            { title: "Kind", cell: (t) => t.kind ?? "—", by: (t) => t.kind },
            { title: "GPUs", cell: (t) => t.devices.join(", ") || "—" },
            { title: "Power", cell: (t) => watts(t.watts), by: (t) => t.watts, numeric: true },
            { title: "Energy", cell: (t) => joules(t.joules), by: (t) => t.joules, numeric: true },
        ],
    })) : null;
}

function causes(live: Live): Child {
    const c = live.causes;
    if (!c || !c.watts.length) return null;
    const shown = c.names.filter((_, n) => c.watts.some((cell) => (cell[n] ?? 0) > 0));
    const total = c.names.map((name, n) => ({ name, watts: (sum(c.watts.map((cell) => cell[n])) ?? 0) / c.watts.length })).filter((r) => shown.includes(r.name));
    return section("causes", "Causes over time",
        wide("Causes over time", stack(c)), legend(shown),
        details("Values as a table", () => table<{ name: string; watts: number }>({
            caption: `Mean power by cause over the last ${instant(c.watts.length * c.step_s, 1)}`, rows: total.sort((a, b) => b.watts - a.watts), columns: [
                { title: "Cause", cell: (r) => state_title(r.name) }, { title: "Power", cell: (r) => watts(r.watts), numeric: true }],
        })));
}

function head(live: Live): Child {
    const power = sum(live.devices.map((d) => d.power_w)), limit = sum(live.devices.map((d) => d.limit_w)), up = live.devices.filter((d) => d.up).length;
    return figures([
        ["Power", watts(power), known(power) && known(limit) && limit > 0 ? `${share(power / limit)} of ${watts(limit)}` : null],
        ["Devices", `${up} of ${live.devices.length}`, "answer"],
        ["Jobs", String(live.jobs.length)],
        ["Agent", live.self?.cpu_seconds === undefined ? "—" : `${seconds(live.self.cpu_seconds)} of CPU`, live.self ? bytes(live.self.resident_bytes) : null],
    ]);
}

export function live_page(page: Page): Child {
    const status = h("p", { class: "status", role: "status" }, "Asking the agent…"), title = h("h1", { id: "answer" }, "This node");
    // a part is made again only while nobody is at it: what has the focus, or was opened, stays
    const parts = [head, devices, jobs, tenants, causes].map((make) => ({ make, place: h("div") }));
    const draw = (live: Live): void => {
        title.textContent = live.hostname ? `GPUs of ${live.hostname}` : "GPUs of this node";
        for (const { make, place } of parts) {
            const busy = place.contains(document.activeElement) && document.activeElement !== document.body;
            if (!busy && !place.querySelector("details[open]")) replace(place, make(live));
        }
    };
    let interval = 2000, gone = 0;
    const again = async (): Promise<void> => {
        try {
            const answer = await fetch("live.json", { cache: "no-store", signal: AbortSignal.timeout(10000) });
            if (!answer.ok) throw new Error(`it answered ${answer.status}`);
            const got = await answer.json() as Live | Page, live = "kind" in got ? got.live : got;
            if (!live) throw new Error("its answer holds nothing");
            gone = 0;
            interval = Math.max(500, (live.interval_s || 2) * 1000);
            draw(live);
            status.className = "status";
            status.textContent = `As of ${live.time}, every ${seconds(live.interval_s)}.`;
        } catch (error) {
            gone++;
            status.className = "status gone";
            status.textContent = `The agent does not answer (${error instanceof Error ? error.message : "unknown"}). What stands here is as of its last answer.`;
        }
        setTimeout(() => void again(), Math.min(60000, interval * Math.max(1, gone)));
    };
    if (page.live) draw(page.live);
    // a page that was saved has nobody to ask
    if (location.protocol.startsWith("http")) void again();
    else status.textContent = page.live ? `As of ${page.live.time}, from a file.` : "This page asks the agent that served it; a file has none.";
    return [h("section", { class: "top", "aria-labelledby": "answer" }, title, status), parts.map((p) => p.place)];
}
