// A sweep: what each setting costs and brings, the front, the plateau, and what is recommended.
import type { Interval, Page } from "./data";
import type { Sweep } from "../generated/schema";
import { code, h, note, section, svg, wide, type Child } from "./dom";
import { bytes, joules, known, seconds, share, si, ticks } from "./format";
import { point_label, type Box } from "./labels";
import { sentence } from "./summary";
import { facts, table } from "./table";
import { scale_of, whisker } from "./whisker";

type Setting = Sweep["settings"][number];

const WIDE = 640, TALL = 320, LEFT = 84, BOTTOM = 44, TOP = 14, RIGHT = 18;

function figure(setting: Setting, name: Setting["figures"][number]["name"]): Interval {
    return setting.figures.find((f) => f.name === name)?.value;
}

interface Axes { x: (v: number) => number; y: (v: number) => number; low_x: number; high_x: number; low_y: number; high_y: number }

function axes_of(xs: readonly number[], ys: readonly number[]): Axes {
    const [low_x, high_x, low_y, high_y] = [0, Math.max(...xs) * 1.08, 0, Math.max(...ys) * 1.08];
    return { low_x, high_x, low_y, high_y,
        x: (v) => LEFT + ((v - low_x) / (high_x - low_x)) * (WIDE - LEFT - RIGHT), y: (v) => TALL - BOTTOM - ((v - low_y) / (high_y - low_y)) * (TALL - BOTTOM - TOP) };
}

function frame(a: Axes, x_title: string, y_title: string, x_unit: string, y_unit: string): Child {
    return [ticks(a.high_y).map((v) => [svg("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: a.y(v), y2: a.y(v) }),
        svg("text", { x: LEFT - 6, y: a.y(v) + 4, "text-anchor": "end" }, si(v, y_unit))]),
    ticks(a.high_x).map((v) => svg("text", { x: a.x(v), y: TALL - BOTTOM + 16, "text-anchor": "middle" }, si(v, x_unit))),
    svg("text", { x: (LEFT + WIDE) / 2, y: TALL - 6, "text-anchor": "middle" }, x_title),
    svg("text", { x: 12, y: (TALL - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TALL - BOTTOM) / 2})` }, y_title)];
}

function cross(a: Axes, x: Interval, y: Interval): Child {
    const [x0, x1, x2] = x ?? [], [y0, y1, y2] = y ?? [];
    return [known(x0) && known(x2) && known(y1) ? svg("line", { class: "range", x1: a.x(x0), x2: a.x(x2), y1: a.y(y1), y2: a.y(y1) }) : null,
        known(y0) && known(y2) && known(x1) ? svg("line", { class: "range", x1: a.x(x1), x2: a.x(x1), y1: a.y(y0), y2: a.y(y2) }) : null];
}

/** Joules of a unit against units a second: to the lower right is better. */
function front(sweep: Sweep): Element | null {
    const points = sweep.settings.map((setting, index) => ({ setting, index, rate: figure(setting, "units_per_second"), energy: figure(setting, "joules_per_unit") }))
        .filter((p) => known(p.rate?.[1]) && known(p.energy?.[1]));
    if (points.length < 2) return null;
    const at = (i: Interval): number => i?.[1] ?? 0;
    const a = axes_of(points.flatMap((p) => [at(p.rate), p.rate?.[2] ?? 0]), points.flatMap((p) => [at(p.energy), p.energy?.[2] ?? 0]));
    const line = points.filter((p) => p.setting.front).sort((p, q) => at(p.rate) - at(q.rate));
    const taken: Box[] = [];
    return svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "front", role: "img", "aria-label": "Joules against speed of each setting; the table has the figures" },
        frame(a, `${sweep.unit}s per second`, `joules per ${sweep.unit}`, "", "J"),
        svg("polyline", { class: "front-line", points: line.map((p) => `${a.x(at(p.rate))},${a.y(at(p.energy))}`).join(" ") }),
        points.map((p) => [cross(a, p.rate, p.energy),
            svg("circle", { class: `point ${p.setting.front ? "" : "open"}`, cx: a.x(at(p.rate)), cy: a.y(at(p.energy)), r: 5 }),
            p.index === sweep.result.recommended ? svg("circle", { class: "chosen", cx: a.x(at(p.rate)), cy: a.y(at(p.energy)), r: 10 }) : null,
            point_label(a.x(at(p.rate)), a.y(at(p.energy)), 13, p.setting.label, { right: WIDE - 6, bottom: TALL - BOTTOM }, taken)]));
}

/** Units a second along one parameter, with the plateau shaded and the cliff marked. */
function line_chart(sweep: Sweep, line: Sweep["lines"][number]): Element | null {
    const rows = line.settings.map((index) => ({ index, setting: sweep.settings[index], rate: sweep.settings[index] && figure(sweep.settings[index], "units_per_second") }));
    const rates = rows.flatMap((r) => (r.rate ?? []).filter(known));
    if (rates.length < 2) return null;
    const parameter = sweep.parameters.findIndex((p) => p.name === line.parameter), slot = (WIDE - LEFT - RIGHT) / rows.length;
    const a = axes_of([rows.length], rates), x = (i: number): number => LEFT + (i + 0.5) * slot;
    const at = (index: number | null): number => rows.findIndex((r) => r.index === index);
    const from = at(line.plateau_from), to = at(line.plateau_to), cliff = at(line.cliff_at);
    return svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "plateau", role: "img", "aria-label": `${line.plateau_words}. ${line.cliff_words}` },
        from >= 0 && to >= 0 ? svg("rect", { class: "plateau-area", x: x(from) - slot / 2, width: (to - from + 1) * slot, y: TOP, height: TALL - BOTTOM - TOP }) : null,
        cliff >= 0 ? [svg("line", { class: "cliff", x1: x(cliff), x2: x(cliff), y1: TOP, y2: TALL - BOTTOM }), svg("text", { x: x(cliff) - 6, y: TOP + 12, "text-anchor": "end" }, line.cliff.replaceAll("_", " "))] : null,
        ticks(a.high_y).map((v) => [svg("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: a.y(v), y2: a.y(v) }), svg("text", { x: LEFT - 6, y: a.y(v) + 4, "text-anchor": "end" }, si(v, ""))]),
        svg("text", { x: (LEFT + WIDE) / 2, y: TALL - 6, "text-anchor": "middle" }, line.parameter),
        svg("text", { x: 12, y: (TALL - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TALL - BOTTOM) / 2})` }, `${sweep.unit}s per second`),
        svg("polyline", { class: "front-line", points: rows.flatMap((r, i) => (known(r.rate?.[1]) ? [`${x(i)},${a.y(r.rate[1])}`] : [])).join(" ") }),
        rows.map((r, i) => [svg("text", { x: x(i), y: TALL - BOTTOM + 16, "text-anchor": "middle" }, r.setting?.values[parameter] ?? ""),
            known(r.rate?.[1]) ? [svg("circle", { class: "point", cx: x(i), cy: a.y(r.rate[1]), r: 5 }),
                known(r.rate[0]) && known(r.rate[2]) ? svg("line", { class: "range", x1: x(i), x2: x(i), y1: a.y(r.rate[0]), y2: a.y(r.rate[2]) }) : null] : null]));
}

function settings_table(sweep: Sweep): HTMLElement {
    const scale = scale_of(sweep.settings.map((s) => figure(s, "joules_per_unit")));
    return table<Setting>({
        caption: "Every setting, with 95 % intervals", hide_caption: true, rows: sweep.settings, text: (s) => `${s.label} ${s.end} ${s.why}`, columns: [
            { title: "Setting", cell: (s) => [code(s.label), sweep.settings.indexOf(s) === sweep.result.recommended ? h("strong", { class: "chip" }, "recommended") : null], by: (s) => sweep.settings.indexOf(s) },
            { title: `Joules per ${sweep.unit}`, cell: (s) => joules(figure(s, "joules_per_unit")?.[1]), by: (s) => figure(s, "joules_per_unit")?.[1], numeric: true },
            { title: "95 %", cell: (s) => whisker(figure(s, "joules_per_unit"), scale) },
            { title: `${sweep.unit}s per second`, cell: (s) => si(figure(s, "units_per_second")?.[1], ""), by: (s) => figure(s, "units_per_second")?.[1], numeric: true },
            { title: "p99 of steps", cell: (s) => seconds(figure(s, "step_p99_seconds")?.[1]), by: (s) => figure(s, "step_p99_seconds")?.[1], numeric: true },
            { title: "Memory", cell: (s) => bytes(s.memory_bytes), by: (s) => s.memory_bytes, numeric: true },
            { title: "Left", cell: (s) => share(s.memory_headroom), by: (s) => s.memory_headroom, numeric: true },
            { title: "On the front", cell: (s) => (s.front ? "yes" : "no"), by: (s) => Number(s.front) },
            { title: "Why", cell: (s) => s.why, wide: true },
        ],
    });
}

export function sweep_page(page: Page): Child {
    const s = page.sweep;
    if (!s) return h("p", {}, "This page has no sweep.");
    const pareto = front(s);
    return [
        h("section", { class: "top", "aria-labelledby": "answer" }, h("p", { class: "command" }, code(s.command.join(" "))), h("h1", { id: "answer" }, sentence(s.result.sentence)),
            s.result.notes.map((text) => h("p", { class: "caveat" }, text)), s.conditions.simulated ? h("p", { class: "caveat" }, "Simulated GPU: ", code(s.conditions.simulated)) : null),
        pareto ? section("front", "Joules against speed", wide("Joules against speed", pareto), note("Filled and joined: the front, where no other setting is shown to be better in one and as good in the rest. The ring is what is recommended.")) : null,
        s.lines.map((line, i) => { const drawn = line_chart(s, line); return drawn && section(`line-${i}`, `Along ${line.parameter}`, wide(`Along ${line.parameter}`, drawn), note([line.plateau_words, line.cliff_words].filter(Boolean).join(". "))); }),
        section("settings", "Settings", settings_table(s)),
        section("conditions", "Conditions", facts([["state", s.state.replaceAll("_", " ")], ["objective", s.result.objective], ["cost of the sweep", `${joules(s.result.cost_joules)}, ${seconds(s.result.cost_seconds)}`],
            ["made", `${s.created} by hec ${s.hec_version}`], ...[...s.facts, ...s.environment].map((f) => [f.name, code(f.value)] as const)], "Conditions")),
    ];
}
