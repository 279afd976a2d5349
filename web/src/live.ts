// The agent's page: the devices of a node now, who wastes most and why, and what the last minutes went into. Fetched again every interval.
import type { Live, LiveCauses, LiveDevice, LiveJob, LiveTeam, LiveTenant, LiveUse, Page } from "./data";
import { code, details, h, plain, replace, section, wide, type Child } from "./dom";
import { bytes, joules, known, seconds, share, si, watts } from "./format";
import { figures } from "./summary";
import { live_table } from "./table";
import { legend } from "./ribbon";
import { spark, stack } from "./stack";
import { state_title } from "./words";

const sum = (values: readonly (number | null | undefined)[]): number | null =>
    values.some(known) ? values.reduce<number>((all, v) => all + (known(v) ? v : 0), 0) : null;

function meter(part: number | null, text: string): Child {
    return part === null ? text : h("span", { class: "meter" }, h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--from": 0, "--part": Math.min(1, part), "--swatch": "var(--line-0)" })), text);
}

/** What counters alone tell is likely; a job that was analysed shows it. */
const said = (says: string | null | undefined, by: string | null | undefined, sure: number | null | undefined): string =>
    !says ? "—" : by === "telemetry" ? `likely ${says}${known(sure) ? ` (${share(sure)})` : ""}` : says;

/** A part of the page, made once: what is sorted, filtered or has the focus stays so when its figures change. */
interface Part {
    element: Child;
    update: (live: Live) => void;
}

function devices(): Part {
    let most = 1;
    const of_limit = (d: LiveDevice): number | null => (known(d.power_w) && known(d.limit_w) && d.limit_w > 0 ? d.power_w / d.limit_w : null);
    const rows = live_table<LiveDevice>({
        caption: "GPUs of this node now, power against its limit", rows: [], empty: "No GPU answers.", columns: [
            { title: "GPU", cell: (d) => d.index, by: (d) => d.index, numeric: true },
            { title: "Name", cell: (d) => [d.name ?? "—", d.up ? null : h("span", { class: "gone" }, " not answering")], by: (d) => d.name },
            { title: "Power", cell: (d) => meter(of_limit(d), `${watts(d.power_w)} of ${watts(d.limit_w)}`), by: (d) => d.power_w },
            { title: "Lately", cell: (d) => spark(d.power_history_w ?? [], most) },
            { title: "Verdict", cell: (d) => said(d.verdict?.replaceAll("_", " "), "telemetry", d.confidence), by: (d) => d.verdict },
            { title: "Busy", cell: (d) => share(d.gpu), by: (d) => d.gpu, numeric: true },
            { title: "SM", cell: (d) => share(d.sm), by: (d) => d.sm, numeric: true },
            { title: "Tensor", cell: (d) => share(d.tensor), by: (d) => d.tensor, numeric: true },
            { title: "DRAM", cell: (d) => share(d.dram), by: (d) => d.dram, numeric: true },
            { title: "PCIe in, out", cell: (d) => `${si(d.pcie_rx_bytes_per_s, "B/s")}, ${si(d.pcie_tx_bytes_per_s, "B/s")}`, by: (d) => d.pcie_rx_bytes_per_s, numeric: true },
            { title: "Memory", cell: (d) => `${bytes(d.memory_used_bytes)} of ${bytes(d.memory_total_bytes)}`, by: (d) => d.memory_used_bytes, numeric: true },
            { title: "°C", cell: (d) => (known(d.temperature_c) ? d.temperature_c.toFixed(0) : "—"), by: (d) => d.temperature_c, numeric: true },
        ],
    }), trouble = h("p", { class: "note", hidden: true });
    return { element: section("devices", "Devices", rows.element, trouble), update: (live) => {
        most = Math.max(1, ...live.devices.flatMap((d) => [d.limit_w ?? 0, ...(d.power_history_w ?? []).filter(known)]));
        rows.update(live.devices);
        trouble.hidden = !live.trouble;
        trouble.textContent = plain(live.trouble ?? "");
    } };
}

const by_waste = <Row extends { wasted_joules?: number | null | undefined }>(rows: readonly Row[]): Row[] =>
    [...rows].sort((a, b) => (b.wasted_joules ?? -1) - (a.wasted_joules ?? -1));

function jobs(): Part {
    const rows = live_table<LiveJob>({
        caption: "Jobs that report to the agent", rows: [], shown: 20, empty: "No job reports to this agent: start one with hec run --agent -- COMMAND.", text: (j) => `${j.name} ${j.command ?? ""} ${j.cause ?? ""}`, columns: [
            { title: "Wasted", cell: (j) => joules(j.wasted_joules), by: (j) => j.wasted_joules, numeric: true },
            { title: "Of its own", cell: (j) => share(j.wasted_share), by: (j) => j.wasted_share, numeric: true },
            { title: "Cause", cell: (j) => (j.cause ? state_title(j.cause) : "—"), by: (j) => j.cause },
            { title: "Job", cell: (j) => [code(j.name), j.command && !j.name.includes(j.command) ? [" ", code(j.command)] : null, j.runs === false ? h("span", { class: "note" }, " ended") : null], by: (j) => j.name, wide: true },
            { title: "GPUs", cell: (j) => j.devices.join(", ") || "—" },
            { title: "Energy", cell: (j) => joules(j.joules), by: (j) => j.joules, numeric: true },
            { title: "Time", cell: (j) => seconds(j.seconds), by: (j) => j.seconds, numeric: true },
        ],
    });
    return { element: section("jobs", "Jobs, by what they waste", rows.element), update: (live) => rows.update(by_waste(live.jobs)) };
}

const causes_of = (use: LiveUse): string =>
    Object.entries(use.wasted_by_cause ?? {}).sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name, amount]) => `${state_title(name)} ${joules(amount)}`).join(", ") || "—";

function tenants(): Part {
    const rows = live_table<LiveTenant>({
        caption: "Pods, Slurm jobs and programs, by what they draw while they hold a GPU and nothing runs for them", rows: [], shown: 20, empty: "Nobody uses a device.",
        text: (t) => `${t.name} ${t.kind ?? ""} ${t.says ?? ""}`, columns: [
            { title: "Wasted", cell: (t) => joules(t.wasted_joules), by: (t) => t.wasted_joules, numeric: true },
            { title: "Who", cell: (t) => code(t.name), by: (t) => t.name, wide: true },
            { title: "Now", cell: (t) => said(t.says, t.by, t.confidence), by: (t) => t.says },
            { title: "Worked", cell: (t) => share(t.worked_share), by: (t) => t.worked_share, numeric: true },
            { title: "Energy", cell: (t) => joules(t.joules), by: (t) => t.joules, numeric: true },
            { title: "Power", cell: (t) => watts(t.watts), by: (t) => t.watts, numeric: true },
            { title: "Wasted by cause", cell: causes_of },
            { title: "More GPUs?", cell: (t) => t.advice ?? "—", by: (t) => t.advice },
            { title: "GPUs", cell: (t) => t.devices.join(", ") || "—" },
            { title: "Kind", cell: (t) => t.kind ?? "—", by: (t) => t.kind },
        ],
    });
    return { element: section("tenants", "Who wastes most", rows.element), update: (live) => rows.update(by_waste(live.tenants)) };
}

function teams(): Part {
    const rows = live_table<LiveTeam>({
        caption: "Namespaces of pods, and users. More GPUs are honest from 70 % of sustained use on; below, what is there is to be used first", rows: [], shown: 20, empty: "Nobody uses a device.",
        text: (t) => t.team, columns: [
            { title: "Wasted", cell: (t) => joules(t.wasted_joules), by: (t) => t.wasted_joules, numeric: true },
            { title: "Team", cell: (t) => code(t.team), by: (t) => t.team, wide: true },
            { title: "Worked", cell: (t) => share(t.worked_share), by: (t) => t.worked_share, numeric: true },
            { title: "Energy", cell: (t) => joules(t.joules), by: (t) => t.joules, numeric: true },
            { title: "Wasted by cause", cell: causes_of },
            { title: "More GPUs?", cell: (t) => t.advice ?? "—", by: (t) => t.advice },
            { title: "GPUs", cell: (t) => t.devices.join(", ") || "—" },
        ],
    });
    return { element: section("teams", "Teams", rows.element), update: (live) => rows.update(by_waste(live.teams ?? [])) };
}

interface Mean { name: string; watts: number }

/** Of the cells that are known. */
function means(c: LiveCauses): Mean[] {
    const cells = c.watts.filter((cell) => cell.some(known));
    return c.names.map((name, n) => ({ name, watts: (sum(cells.map((cell) => cell[n])) ?? 0) / Math.max(1, cells.length) }))
        .filter((mean) => mean.watts > 0).sort((a, b) => b.watts - a.watts);
}

function causes(): Part {
    const chart = h("div", { class: "stack-place" });
    const rows = live_table<Mean>({ caption: "Mean power by cause over these minutes", rows: [], empty: "Not known yet.", columns: [
        { title: "Cause", cell: (r) => state_title(r.name) }, { title: "Power", cell: (r) => watts(r.watts), numeric: true }] });
    return { element: section("causes", "Causes over time", chart, details("Values as a table", () => rows.element)), update: (live) => {
        const c = live.causes, known_means = c ? means(c) : [];
        // who reads it keeps its place: the scroller stays, what is in it changes
        const place = chart.querySelector(".scroll");
        if (c && place) place.replaceChildren(stack(c));
        else if (c) replace(chart, wide("Causes over time", stack(c)), h("div"));
        chart.lastElementChild?.replaceChildren(legend(known_means.map((r) => r.name)));
        rows.update(known_means);
    } };
}

function figures_of(live: Live): HTMLElement {
    const power = sum(live.devices.map((d) => d.power_w)), limit = sum(live.devices.map((d) => d.limit_w)), up = live.devices.filter((d) => d.up).length;
    return figures([
        ["Power", watts(power), known(power) && known(limit) && limit > 0 ? `${share(power / limit)} of ${watts(limit)}` : null],
        ["Devices", `${up} of ${live.devices.length}`, "answer"],
        ["Jobs", String(live.jobs.length)],
        ["Agent", live.self?.cpu_seconds === undefined ? "—" : `${seconds(live.self.cpu_seconds)} of CPU`, live.self ? bytes(live.self.resident_bytes) : null],
    ]);
}

export function live_page(page: Page): Child {
    const status = h("p", { class: "status", role: "status" }, "Asking the agent…"), title = h("h1", { id: "answer" }, "This node"), top = h("div", { class: "top-figures" });
    const parts = [devices(), tenants(), teams(), jobs(), causes()];
    let interval_ms = 2000, gone = 0, as_of = "";
    const draw = (live: Live): void => {
        title.textContent = live.hostname ? `GPUs of ${plain(live.hostname)}` : "GPUs of this node";
        top.replaceChildren(figures_of(live));
        for (const part of parts) part.update(live);
        as_of = plain(live.time);
        interval_ms = Math.max(250, (live.interval_s || 2) * 1000);
        status.className = "status";
        status.textContent = `As of ${as_of}.`;
    };
    const again = async (): Promise<void> => {
        try {
            const answer = await fetch("live.json", { cache: "no-store", signal: AbortSignal.timeout(10000) });
            if (!answer.ok) throw new Error(String(answer.status));
            const got = await answer.json() as Live | Page, live = "kind" in got ? got.live : got;
            if (!live) throw new Error("nothing in it");
            gone = 0;
            draw(live);
        } catch {
            gone++;
            status.className = "status gone";
            status.textContent = as_of ? `The agent does not answer. This is as of ${as_of}.` : "The agent does not answer.";
        }
        setTimeout(() => void again(), Math.min(60000, interval_ms * Math.max(1, gone)));
    };
    if (page.live) draw(page.live);
    // a page that was saved has nobody to ask
    if (location.protocol.startsWith("http")) void again();
    else if (!page.live) status.textContent = "This page asks the agent that served it; a file has none.";
    return [h("section", { class: "top", "aria-labelledby": "answer" }, title, status, top), parts.map((part) => part.element)];
}
