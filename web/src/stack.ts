// Power over the last minutes: as a line in a table's cell, and by cause as areas on top of each other.
import type { LiveCauses } from "./data";
import { svg } from "./dom";
import { known, watts } from "./format";
import { state_swatch } from "./words";

export function spark(values: readonly (number | null)[], most: number): Element {
    const lines: string[][] = [[]];
    values.forEach((value, i) => {
        // a gap in the readings is a gap in the line
        if (!known(value)) lines.push([]);
        else lines.at(-1)?.push(`${((i / Math.max(1, values.length - 1)) * 120).toFixed(1)},${(23 - (value / most) * 22).toFixed(1)}`);
    });
    return svg("svg", { viewBox: "0 0 120 24", class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" },
        lines.filter((l) => l.length > 1).map((l) => svg("polyline", { points: l.join(" ") })));
}

const WIDE = 860, TALL = 220, LEFT = 64, BOTTOM = 28, TOP = 10;

export function stack(causes: LiveCauses): Element {
    const cells = causes.watts.length, most = Math.max(1, ...causes.watts.map((cell) => cell.reduce<number>((all, v) => all + (v ?? 0), 0))) * 1.05;
    const x = (i: number): number => LEFT + (i / Math.max(1, cells - 1)) * (WIDE - LEFT - 8), y = (w: number): number => TALL - BOTTOM - (w / most) * (TALL - BOTTOM - TOP);
    // cells of which nothing is known are gaps, and no zeros
    const stretches: number[][] = [[]];
    causes.watts.forEach((cell, i) => {
        if (!cell.some(known)) stretches.push([]);
        else stretches.at(-1)?.push(i);
    });
    const sums = causes.watts.map(() => 0), point = (i: number): string => `${x(i).toFixed(1)},${y(sums[i] ?? 0).toFixed(1)}`;
    const areas = causes.names.flatMap((name, n) => stretches.filter((s) => s.length > 1).map((stretch) => {
        const below = stretch.map(point).reverse();
        for (const i of stretch) sums[i] = (sums[i] ?? 0) + (causes.watts[i]?.[n] ?? 0);
        return svg("polygon", { points: [...stretch.map(point), ...below].join(" "), "--swatch": state_swatch(name) });
    }));
    const minutes = Math.max(cells * causes.step_s, -causes.from_s) / 60;
    return svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "stack", role: "img", "aria-label": "Power by cause over the last minutes; a table with the means follows" },
        [0, 0.5, 1].map((p) => [svg("line", { class: "grid", x1: LEFT, x2: WIDE - 8, y1: y((p * most) / 1.05), y2: y((p * most) / 1.05) }),
            svg("text", { x: LEFT - 6, y: y((p * most) / 1.05) + 4, "text-anchor": "end" }, watts((p * most) / 1.05))]),
        areas, svg("text", { x: LEFT, y: TALL - 8 }, `${minutes.toFixed(minutes < 10 ? 1 : 0)} min ago`), svg("text", { x: WIDE - 8, y: TALL - 8, "text-anchor": "end" }, "now"));
}
