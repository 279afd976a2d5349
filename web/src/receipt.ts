// A receipt: what was proven, by which trials, under which conditions.
import type { Page } from "./data";
import type { Receipt } from "../generated/schema";
import { quantities, verdict_head } from "./compare";
import { code, h, note, pick, section, svg, wide, type Child } from "./dom";
import { change, joules, known, seconds, si, ticks } from "./format";
import { facts, table } from "./table";
import { scale_of, whisker } from "./whisker";

type Trial = Receipt["trials"][number];

function per_unit(trial: Trial): number | null {
    const block = known(trial.steady.joules) ? trial.steady : trial.run;
    return known(block.joules) && known(block.units) && block.units > 0 ? block.joules / block.units : block.joules;
}

/** Pairs in turn: A and B of each, joined. */
function pairs(trials: readonly Trial[]): Element | null {
    const rows = new Map<number, { A?: number; B?: number }>();
    for (const trial of trials) {
        const value = per_unit(trial);
        if (trial.pair === null || value === null) continue;
        rows.set(trial.pair, { ...rows.get(trial.pair), [trial.side]: value });
    }
    const all = [...rows.values()].flatMap((r) => [r.A, r.B]).filter(known);
    if (all.length < 2) return null;
    const high = Math.max(...all) * 1.05, width = 640, tall = 180, left = 64;
    const x = (i: number): number => left + ((i + 0.5) / rows.size) * (width - left - 10), y = (v: number): number => tall - 26 - (v / high) * (tall - 40);
    return svg("svg", { viewBox: `0 0 ${width} ${tall}`, class: "pairs", role: "img", "aria-label": "Each pair of trials; the table has their figures" },
        ticks(high).map((v) => [svg("line", { class: "grid", x1: left, x2: width, y1: y(v), y2: y(v) }), svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, si(v, "J"))]),
        [...rows].map(([pair, r], i) => [
            known(r.A) && known(r.B) ? svg("line", { class: "joint", x1: x(i), x2: x(i), y1: y(r.A), y2: y(r.B) }) : null,
            known(r.A) ? svg("circle", { class: "side-a", cx: x(i), cy: y(r.A), r: 5 }) : null,
            known(r.B) ? svg("rect", { class: "side-b", x: x(i) - 5, y: y(r.B) - 5, width: 10, height: 10 }) : null,
            svg("text", { x: x(i), y: tall - 8, "text-anchor": "middle" }, pair + 1)]));
}

function command(words: readonly string[]): HTMLElement {
    return code(words.join(" "));
}

export function receipt_page(page: Page): Child {
    const all = page.receipts ?? [], first = page.receipt ?? all[0];
    if (!first) return h("p", {}, "This page has no receipt.");
    const name = (r: Receipt, i: number): string => `${i + 1}: ${r.verdict?.sentence ?? r.created}`;
    return all.length > 1 ? pick(`Receipt, of ${all.length}`, all.map(name), (i) => one_receipt(all[i] ?? first)) : one_receipt(first);
}

function one_receipt(r: Receipt): Child {
    const v = r.verdict;
    const tried_scale = scale_of(r.tried.map((t) => t.joules), 1);
    const chart = pairs(r.trials);
    return [
        v ? verdict_head(v.verdict, v.sentence, v.notes) : h("section", { class: "top" }, h("h1", {}, "A baseline: it has no verdict")),
        section("what", "What was run", facts([["A", command(r.commands.a)], r.commands.b.length ? ["B", command(r.commands.b)] : null,
            r.commands.levers.length ? ["levers of B", r.commands.levers.join(", ")] : null, ["unit of work", r.unit ?? "—"], ["made", r.created], ["by", `hec ${r.hec_version}`]], "What was run")),
        v ? section("quantities", "A and B", quantities(v.quantities, `${v.pairs} pairs, judged by ${v.judged.replaceAll("_", " ")}; the line is no change`, r.unit)) : null,
        r.tried.length ? section("tried", "Levers tried", table<Receipt["tried"][number]>({
            caption: "What each set of levers did to joules per unit of work; the line is no change", rows: r.tried, columns: [
                { title: "Levers", cell: (t) => code(t.levers), by: (t) => t.levers, wide: true },
                { title: "Outcome", cell: (t) => t.outcome.replaceAll("_", " "), by: (t) => t.outcome },
                { title: "Joules, 95 %", cell: (t) => whisker(t.joules, tried_scale) },
                { title: "Joules", cell: (t) => change(t.joules), by: (t) => t.joules?.[1], numeric: true },
                { title: "Units per second", cell: (t) => change(t.rate), by: (t) => t.rate?.[1], numeric: true },
                { title: "Note", cell: (t) => t.text ?? "" },
            ],
        })) : null,
        v ? section("quality", "Quality and cost", facts([["losses", v.quality.sentence], ["what the proof cost", `${joules(v.cost.joules)}, ${seconds(v.cost.seconds)}`],
            v.cost.joules_paid_after.shown ? ["paid back after", `${si(v.cost.joules_paid_after.units?.[1], "", 3)} ${r.unit ?? "unit"}s`] : null], "Quality and cost")) : null,
        section("trials", "Trials", chart ? [wide("Pairs of trials", chart), note(`Joules${r.unit ? ` per ${r.unit}` : ""} of each pair: A round, B square.`)] : null, table<Trial>({
            caption: "Every trial", hide_caption: true, rows: r.trials, shown: 12, columns: [
                { title: "Pair", cell: (t) => (t.pair === null ? "warm-up" : t.pair + 1), by: (t) => t.pair, numeric: true },
                { title: "Side", cell: (t) => t.side, by: (t) => t.side },
                { title: "Energy", cell: (t) => joules(t.run.joules), by: (t) => t.run.joules, numeric: true },
                { title: "Time", cell: (t) => seconds(t.run.seconds), by: (t) => t.run.seconds, numeric: true },
                { title: `Steady, per ${r.unit ?? "unit"}`, cell: (t) => joules(per_unit(t)), by: per_unit, numeric: true },
            ],
        })),
        section("conditions", "Conditions", facts([...r.facts, ...r.environment].map((f) => [f.name, code(f.value)] as const), "Conditions"), h("ul", { class: "note" }, r.method.map((m) => h("li", {}, m)))),
        section("digest", "Digest", note(code(r.digest), " ", code("hec verify RECEIPT"), " checks that the verdict follows from the trials.")),
    ];
}
