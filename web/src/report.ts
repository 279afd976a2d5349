// The page of one run, or of several of which one is shown.
import { view_of, type Page, type Report, type View } from "./data";
import { code, folded, h, one_of, pick, replace, section, type Child } from "./dom";
import { findings } from "./findings";
import { seconds } from "./format";
import { classes, kernels, modules, source } from "./kernels";
import { ledger } from "./ledger";
import { over_time } from "./over_time";
import { lanes } from "./ribbon";
import { ranks } from "./ranks";
import { replayed } from "./replay";
import { roofline } from "./roofline";
import { steps } from "./steps";
import { devices_table, energy, headline_of, provenance, summary, used } from "./summary";
import { facts, table } from "./table";

type Device = Report["devices"][number];

function of_device(report: Report, view: View | null, device: Device): Child[] {
    const detail = view?.detail?.lanes.length ? view.detail : null;
    return [
        ledger(device), findings(report), folded([view?.replay ? replayed(view.replay, report.steps.count > 0) : null, view ? over_time(view, device) : null,
        detail ? section("detail", "A few steps in detail", lanes(detail)) : null,
        steps(report, view, device), source(device), classes(device), roofline(device, report.run.imported !== null), kernels(report, device), modules(device), energy(device)]),
    ];
}

function extras(report: Report): Child[] {
    const l = report.latency;
    return [
        l ? section("latency", "A request", facts([
            ["in all", seconds(l.total_seconds)], ["limited by arithmetic or latency", seconds(l.compute_seconds)], ["limited by memory", seconds(l.memory_seconds)],
            ["underfilled, and launching", seconds(l.batching_seconds)], ["copies and communication", seconds(l.transport_seconds)], ["host", seconds(l.host_seconds)],
        ], "Where the time of a request goes")) : null,
        report.phases.length ? section("phases", "Phases", table<Report["phases"][number]>({
            caption: "Phases that the program marked", rows: report.phases, columns: [
                { title: "Name", cell: (p) => code(p.name), by: (p) => p.name, wide: true },
                { title: "Time", cell: (p) => seconds(p.seconds), by: (p) => p.seconds, numeric: true },
                { title: "Count", cell: (p) => p.count, by: (p) => p.count, numeric: true },
                { title: "Energy", cell: (p) => (p.joules === null ? p.why ?? "—" : `${p.joules.toPrecision(4)} J`), by: (p) => p.joules, numeric: true },
            ],
        })) : null,
        report.levers.length ? section("levers", "Levers", table<Report["levers"][number]>({
            caption: "What the command ran under", rows: report.levers, columns: [
                { title: "Lever", cell: (l2) => code(l2.name) }, { title: "Value", cell: (l2) => l2.value ?? "—" },
                { title: "Took effect", cell: (l2) => l2.attest }, { title: "Saw", cell: (l2) => l2.text ?? "—", wide: true },
            ],
        })) : null,
    ];
}

function navigation(sections: readonly Element[]): Child {
    const links = sections.filter((s) => s.id).map((s) => h("a", { href: `#${s.id}` }, s.querySelector("h2")?.textContent ?? s.id));
    return links.length > 3 ? h("nav", { class: "contents", "aria-label": "Sections" }, links) : null;
}

export function one_report(report: Report, view: View | null): HTMLElement {
    const devices = used(report).length ? used(report) : report.devices, first = devices[0];
    const body = h("div"), contents = h("div");
    const draw = (device: Device | undefined): void => {
        body.replaceChildren(); // its ids are free again
        replace(body, device ? of_device(report, view, device) : findings(report),
            folded([extras(report), used(report).length > 1 ? null : devices_table(report, view), provenance(report)]));
        replace(contents, navigation([...body.children]));
    };
    draw(first);
    return h("div", {}, summary(report), contents, ranks(report), used(report).length > 1 ? devices_table(report, view) : null,
        devices.length > 1 && first ? h("div", { class: "tools pick" }, one_of("Show", devices.map((d) => ({ value: String(d.index), text: `GPU ${d.index}` })), String(first.index),
            (index) => draw(devices.find((d) => String(d.index) === index)))) : null,
        body);
}

export function report_page(page: Page): Child {
    const reports = page.reports ?? [];
    const first = reports[0];
    if (!first) return h("p", {}, "This page has no run.");
    if (reports.length === 1) return one_report(first, view_of(page, 0));
    const names = reports.map((r, i) => `${i + 1}: ${r.run.file ?? r.run.command}`);
    return [pick(`Run, of ${reports.length}`, names, (i) => one_report(reports[i] ?? first, view_of(page, i))),
        section("runs", "All runs", table<Report>({
            caption: "The runs of this page", hide_caption: true, rows: reports, columns: [
                { title: "Run", cell: (r) => code(r.run.file ?? r.run.command), by: (r) => r.run.file },
                { title: "Energy", cell: (r) => (r.totals.joules === null ? "—" : `${r.totals.joules.toPrecision(4)} J`), by: (r) => r.totals.joules, numeric: true },
                { title: "Time", cell: (r) => seconds(r.run.seconds), by: (r) => r.run.seconds, numeric: true },
                { title: "Answer", cell: headline_of, wide: true },
            ],
        }))];
}
