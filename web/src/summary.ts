// The top of a report: the answer in a sentence, and the figures that it rests on.
import type { Report, View } from "./data";
import { code, h, section, type Child } from "./dom";
import { bounded, with_bound, bytes, count, joules, known, seconds, share, si, watts } from "./format";
import { spark } from "./stack";
import { facts, table } from "./table";

type Device = Report["devices"][number];

export function headline_of(report: Report): string {
    const first = report.findings[0];
    return report.headline ?? first?.title ?? "No finding: what this run recorded does not say what it waited for.";
}

export function sentence(text: string): string {
    // a name at the front stays as it is
    return /^[a-z]+[ :,]/.test(text) ? text.slice(0, 1).toUpperCase() + text.slice(1) : text;
}

/** Figures in boxes: name, figure, what it rests on. */
export function figures(rows: readonly (readonly [string, string, Child?])[]): HTMLElement {
    return h("dl", { class: "figures" }, rows.map(([name, figure, more]) =>
        h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, figure), more ? h("small", {}, more) : null))));
}

export function used(report: Report): Device[] {
    return report.devices.filter((d) => d.used);
}

function provenance_of(report: Report): string {
    const devices = used(report);
    const methods = [...new Set(devices.map((d) => d.energy.method))].join(", ");
    const invalid = devices.find((d) => !d.energy.valid);
    return invalid ? `not valid: ${invalid.energy.why ?? "unknown"}` : methods ? `by ${methods}` : report.totals.unavailable ?? "";
}

export function summary(report: Report): HTMLElement {
    const { run, totals, units } = report, devices = used(report);
    const mean = known(totals.joules) && known(run.seconds) && run.seconds > 0 ? totals.joules / run.seconds : null;
    const limit = devices.every((d) => known(d.power_w.limit)) ? devices.reduce((sum, d) => sum + (d.power_w.limit ?? 0), 0) : null;
    const [all, bound] = with_bound(totals.joules, totals.bound_joules, "J");
    const rows: (readonly [string, string, Child?])[] = [
        ["Energy", all, [bound, bound && " ", provenance_of(report)]],
        ["Time", seconds(run.seconds), known(run.exit_code) ? `exit code ${run.exit_code}` : run.in_progress ? "in progress" : null],
        ["Mean power", watts(mean), known(mean) && limit ? `${share(mean / limit)} of ${watts(limit)}` : null],
    ];
    if (units && !units.is_default) {
        const of = units.loop ?? units, where = units.loop ? ", in the loop" : "";
        const [each, within] = with_bound(of.joules_per_unit, of.joules_per_unit_bound, "J");
        rows.push([`Energy per ${units.name}`, each, [within, where]], [`${units.name}s per second`, si(of.per_second, "", 4), `${count(of.count)} ${units.name}s${where}`]);
    }
    rows.push(["Cost", known(totals.dollars) ? `$${totals.dollars < 0.01 ? totals.dollars.toFixed(5) : totals.dollars.toFixed(2)}` : "—",
        `${si(totals.grams_co2, "g")} CO₂${totals.price.dollars_per_kwh_is_default ? ", default prices" : ""}`]);
    return h("section", { class: "top", "aria-labelledby": "answer" },
        h("p", { class: "command" }, code(run.command)),
        screen(report),
        report.caveats.map((text) => h("p", { class: "caveat" }, text)),
        run.simulated ? h("p", { class: "caveat" }, "Simulated GPU: ", code(run.simulated)) : null,
        figures(rows.filter(([, figure]) => figure !== "—" && figure !== "")));
}

/** The first screen, as the terminal has it: the answer is the page's heading. */
function screen(report: Report): Child {
    const rows = report.screen ?? [], typed = new Set(["prove", "more"]);
    const heading = (text: string): HTMLElement => h("h1", { id: "answer" }, sentence(text));
    return [rows.some((r) => r.row === "found") ? null : heading(headline_of(report)),
        h("dl", { class: "screen" }, rows.map((r) => h("div", {}, h("dt", {}, r.row), h("dd", {},
            r.row === "found" ? heading(r.text) : typed.has(r.row) ? code(r.text) : r.text,
            r.code ? h("pre", { tabindex: 0 }, h("code", {}, r.code)) : null))))];
}

/** Small multiples: the power of each device on the scale of all. */
export function devices_table(report: Report, view: View | null): HTMLElement | null {
    if (report.devices.length < 2) return null;
    const power = new Map((view?.series ?? []).filter((s) => s.metric === "gpu_power").map((s) => [s.device, s.levels[0]?.mean ?? []]));
    const most = Math.max(1, ...[...power.values()].flatMap((mean) => mean.filter(known)));
    return section("devices", "Devices", table<Device>({
        caption: "The machine's GPUs", hide_caption: true, rows: report.devices, shown: report.devices.length > 16 ? 8 : undefined, columns: [
            { title: "GPU", cell: (d) => d.index, by: (d) => d.index, numeric: true },
            { title: "Name", cell: (d) => d.name ?? "—", by: (d) => d.name },
            { title: "Used", cell: (d) => h("span", { title: d.used_why }, d.used ? "yes" : "no"), by: (d) => Number(d.used) },
            { title: "Energy", cell: (d) => bounded(d.energy.joules, d.energy.bound_joules, "J"), by: (d) => d.energy.joules, numeric: true },
            { title: "Mean power", cell: (d) => watts(d.power_w.mean), by: (d) => d.power_w.mean, numeric: true },
            ...(power.size ? [{ title: "Over time", cell: (d: Device) => spark(power.get(d.index) ?? [], most) }] : []),
            { title: "Limit", cell: (d) => watts(d.power_w.limit), by: (d) => d.power_w.limit, numeric: true },
            { title: "Peak memory", cell: (d) => bytes(d.memory_peak_bytes), by: (d) => d.memory_peak_bytes, numeric: true },
            { title: "SM", cell: (d) => share(d.utilisation.sm), by: (d) => d.utilisation.sm, numeric: true },
            { title: "Tensor", cell: (d) => share(d.utilisation.tensor), by: (d) => d.utilisation.tensor, numeric: true },
            { title: "DRAM", cell: (d) => share(d.utilisation.dram), by: (d) => d.utilisation.dram, numeric: true },
        ],
    }));
}

/** How an energy was measured, and what could be wrong with it. */
export function energy(device: Device): HTMLElement | null {
    const e = device.energy;
    return section("energy", "How the energy was measured", facts([
        ["energy", e.valid ? bounded(e.joules, e.bound_joules, "J") : `not valid: ${e.why ?? "unknown"}`],
        ["method", e.method],
        ["coverage", `${share(e.coverage)} of ${seconds(e.window_seconds)}`],
        ["readings", `${count(e.counter_readings)} of the counter, ${count(e.power_samples)} of the power`],
        ["counter and integral of power", known(e.disagreement) ? `differ by ${share(e.disagreement)}` : "not compared"],
        ["counter's step", seconds(e.quantum_seconds)],
        ["outside the counter's readings", joules(e.outside_joules)],
        ["gaps", e.gaps ? `${e.gaps}, ${seconds(e.gap_seconds)}` : "none"],
        ["counter resets", e.resets ? String(e.resets) : "none"],
        ["for work", `${joules(e.split.work_joules)} in ${seconds(e.split.work_seconds)}`],
        ["idle with a context", `${joules(e.split.idle_context_joules)} in ${seconds(e.split.idle_context_seconds)}`],
        ["idle without", `${joules(e.split.idle_joules)} in ${seconds(e.split.idle_seconds)}`],
        e.split.source ? ["idle level", e.split.source] : null,
        ["others on the device", device.others === "busy" ? "busy: the figures are of all of them together" : device.others === "maybe" ? "nothing shows them" : "idle"],
    ], `Energy of GPU ${device.index}`));
}

export function provenance(report: Report): HTMLElement | null {
    const { run, trace, self, host } = report;
    const device = used(report)[0] ?? report.devices[0];
    return section("provenance", "Where this comes from", h("div", { class: "columns" },
        h("div", {}, h("h3", {}, "The run"), facts([
            ["command", code(run.command)],
            ["file", code(run.file)],
            ["started", run.started ?? "—"],
            ["host", code(run.hostname)],
            run.imported ? ["imported from", run.imported] : null,
            device ? ["driver", `${device.driver ?? "—"} (${device.name ?? "—"})`] : null,
            ["recorded by", `hec ${run.hec_version ?? "—"}`],
            run.complete ? null : ["complete", "no: up to the last second may be missing"],
        ], "The run")),
        h("div", {}, h("h3", {}, "The trace"), facts([
            ["mode", trace.mode],
            trace.why ? ["why no more", trace.why] : null,
            ["of the time", share(trace.coverage)],
            ["records", `${count(trace.records)}, ${count(trace.dropped + trace.lost)} lost`],
            ["slowdown", known(trace.overhead) ? `${share(trace.overhead)}${trace.overhead_measured ? "" : ", bounded"}` : "unknown"],
            trace.holder ? ["CUPTI was held by", code(trace.holder)] : null,
        ], "The trace")),
        h("div", {}, h("h3", {}, "What HEC cost"), facts([
            ["CPU time", `${seconds(self.cpu_seconds)} (${share(self.cpu_share)} of a core)`],
            ["memory", bytes(self.rss_max_bytes)],
            ["before the command", seconds(self.start_seconds)],
            ["energy (estimate)", joules(self.joules)],
            ["run file", bytes(self.file_bytes)],
        ], "What HEC cost")),
        h("div", {}, h("h3", {}, "The host"), facts([
            ["cores", known(host.cores) ? `${host.cores}, ${share(host.cpu_busy)} busy` : "—"],
            ["command", `${seconds(host.tree_cpu_seconds)} of CPU (${known(host.tree_cores) ? host.tree_cores.toFixed(2) : "—"} cores)`],
            ["memory", bytes(host.tree_rss_max_bytes)],
            ["read, written", `${bytes(host.tree_read_bytes)}, ${bytes(host.tree_written_bytes)}`],
            ["CPU packages", known(host.package_joules) ? joules(host.package_joules) : host.package_why ?? "—"],
            ["memory energy", known(host.dram_joules) ? joules(host.dram_joules) : host.dram_why ?? "—"],
        ], "The host"))),
        report.events.length ? table<Report["events"][number]>({
            caption: report.events_omitted ? `Events, ${report.events_omitted} more left out` : "Events", rows: report.events, shown: 10, columns: [
                { title: "Time", cell: (e) => seconds(e.seconds), by: (e) => e.seconds, numeric: true },
                { title: "GPU", cell: (e) => e.device ?? "—", numeric: true },
                { title: "Event", cell: (e) => `${e.kind.replaceAll("_", " ")}: ${e.text}`, wide: true },
            ],
        }) : null);
}
