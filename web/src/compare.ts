// What a change saved: quantities with their intervals, what moved in the ledger, which findings went and came.
import { view_of, type Interval, type Page } from "./data";
import type { Compare } from "../generated/schema";
import { code, details, h, note, section, type Child } from "./dom";
import { change, joules, known, reading, seconds, share, si } from "./format";
import { one_report } from "./report";
import { sentence as as_sentence } from "./summary";
import { table } from "./table";
import { scale_of, whisker } from "./whisker";
import { QUANTITIES, SHOWN, state_swatch, state_title, VERDICTS } from "./words";

interface Quantity {
    name: string;
    unit: string;
    a: number | null;
    b: number | null;
    ratio: Interval;
    shown: string;
}

/** "J/unit": the unit is the page's. */
function amount(value: number | null, unit: string, of: string | null): string {
    if (!known(value)) return "—";
    const own = unit.replace(/\bunit(s?)\b/, (_, s: string) => `${of ?? "unit"}${s}`);
    return /^[Js](\/|$)/.test(unit) ? si(value, own, 4) : reading(value, own);
}

/** Ratios of B to A, each on the scale of all. */
export function quantities(rows: readonly Quantity[], caption: string, unit: string | null): HTMLElement {
    const scale = scale_of(rows.map((q) => q.ratio), 1);
    return table<Quantity>({
        caption, rows, columns: [
            { title: "Quantity", cell: (q) => (QUANTITIES[q.name] ?? q.name).replace("unit", unit ?? "unit") },
            { title: "A", cell: (q) => amount(q.a, q.unit, unit), numeric: true },
            { title: "B", cell: (q) => amount(q.b, q.unit, unit), numeric: true },
            { title: "B against A, 95 %", cell: (q) => whisker(q.ratio, scale, q.shown) },
            { title: "Change", cell: (q) => change(q.ratio), numeric: true },
            { title: "Shown", cell: (q) => h("span", { class: `shown ${q.shown}` }, SHOWN[q.shown] ?? q.shown) },
        ],
    });
}

export function verdict_head(verdict: string, sentence: string, notes: readonly string[]): HTMLElement {
    return h("section", { class: "top", "aria-labelledby": "answer" },
        h("p", { class: `verdict ${verdict}` }, VERDICTS[verdict] ?? verdict), h("h1", { id: "answer" }, as_sentence(sentence)),
        notes.map((text) => h("p", { class: "caveat" }, text)));
}

function moved(c: Compare): Child {
    type Row = Compare["ledger"]["states"][number];
    const per = c.ledger.per_unit ? ` per ${c.unit ?? "unit"}` : "", rows = c.ledger.states;
    const most = Math.max(...rows.flatMap((r) => [r.joules_a ?? r.seconds_a ?? 0, r.joules_b ?? r.seconds_b ?? 0])) || 1;
    const bars = (r: Row): Child => [[r.joules_a ?? r.seconds_a, "a"], [r.joules_b ?? r.seconds_b, "b"]].map(([value, side]) =>
        h("span", { class: `bar side-${side}`, "aria-hidden": "true" }, h("span", { "--from": 0, "--part": Number(value ?? 0) / most, "--swatch": state_swatch(r.state) })));
    return rows.length ? section("moved", "What moved in the ledger", table<Row>({
        caption: `Energy and time${per} by state, A above B`, rows, columns: [
            { title: "State", cell: (r) => state_title(r.state) },
            { title: "A above B", cell: bars },
            { title: "Energy A", cell: (r) => joules(r.joules_a), by: (r) => r.joules_a, numeric: true },
            { title: "Energy B", cell: (r) => joules(r.joules_b), by: (r) => r.joules_b, numeric: true },
            { title: "Time A", cell: (r) => seconds(r.seconds_a), by: (r) => r.seconds_a, numeric: true },
            { title: "Time B", cell: (r) => seconds(r.seconds_b), by: (r) => r.seconds_b, numeric: true },
        ],
    })) : null;
}

export function compare_page(page: Page): Child {
    const c = page.compare;
    if (!c) return h("p", {}, "This page has no comparison.");
    const runs = [...c.a.map((run) => ({ side: "A", run })), ...c.b.map((run) => ({ side: "B", run }))];
    return [
        verdict_head(c.verdict, c.sentence, c.notes),
        section("quantities", "A and B", quantities(c.quantities, "Measured, with 95 % intervals; the line is no change", c.unit)),
        moved(c),
        c.findings.length ? section("findings", "Findings", table<Compare["findings"][number]>({
            caption: "In how many runs each cause was found, and what fixing it would save of their joules", rows: c.findings, columns: [
                { title: "Cause", cell: (f) => f.cause },
                { title: "Runs A", cell: (f) => `${f.runs_a} of ${c.a.length}`, numeric: true }, { title: "Runs B", cell: (f) => `${f.runs_b} of ${c.b.length}`, numeric: true },
                { title: "Saving A", cell: (f) => share(f.saving_a), numeric: true }, { title: "Saving B", cell: (f) => share(f.saving_b), numeric: true },
            ],
        })) : null,
        c.differs.length ? section("differs", "What else differs", table<Compare["differs"][number]>({
            caption: "Conditions that were not alike", hide_caption: true, rows: c.differs, columns: [
                { title: "What", cell: (d) => d.what.replaceAll("_", " ") }, { title: "A", cell: (d) => code(d.a), wide: true }, { title: "B", cell: (d) => code(d.b), wide: true },
                { title: "Must be alike", cell: (d) => (d.must_be_alike ? "yes" : "no") },
            ],
        })) : null,
        section("runs", "Runs", table<(typeof runs)[number]>({
            caption: "What was compared", hide_caption: true, rows: runs, columns: [
                { title: "Side", cell: (r) => r.side }, { title: "Run", cell: (r) => code(r.run.file ?? r.run.command), wide: true },
                { title: "Time", cell: (r) => seconds(r.run.seconds), numeric: true }, { title: "Energy", cell: (r) => joules(r.run.joules), numeric: true },
                { title: "Steady part", cell: (r) => `${seconds(r.run.steady.seconds)} in ${r.run.steady.blocks} blocks`, numeric: true },
            ],
        }), (page.reports ?? []).map((report, i) => details(`Report of ${report.run.file ?? report.run.command}`, () => one_report(report, view_of(page, i)))),
        note("Intervals and verdicts: docs/compare.md.")),
    ];
}
