// Kinds of kernels under the roofline of their device: FLOP/s against FLOP a byte, both on logarithmic scales.
import type { Report } from "./data";
import { details, note, section, svg, wide } from "./dom";
import { digits, known, share, si } from "./format";
import { point_label, type Box } from "./labels";
import { table } from "./table";

type Device = Report["devices"][number];
interface Point { name: string; precision: string; intensity: number; flops: number; of: number; ridge: number; limit: string; certain: boolean; share: number }

const WIDE = 640, TALL = 340, LEFT = 76, BOTTOM = 44, TOP = 12, RIGHT = 16;

function points(device: Device): Point[] {
    return device.kernel_classes.flatMap(({ class: name, roofline: r, share: part }) =>
        r && known(r.intensity) && known(r.flops) && known(r.of_attainable) && known(r.ridge) && r.intensity > 0 && r.flops > 0 && r.of_attainable > 0
            ? [{ name, precision: r.precision ?? "", intensity: r.intensity, flops: r.flops, of: r.of_attainable, ridge: r.ridge, limit: r.limit, certain: r.certain, share: part ?? 0 }] : []);
}

/** The roof over a point: its peak, and the bandwidth that leads up to it. */
function roof(p: Point): { peak: number; bandwidth: number } {
    const attainable = p.flops / p.of, bandwidth = attainable / Math.min(p.intensity, p.ridge);
    return { peak: bandwidth * p.ridge, bandwidth };
}

/** Values at which a logarithmic axis is marked. */
function marks(from: number, to: number): number[] {
    const steps = to - from < 2.5 ? [1, 2, 5] : [1];
    return Array.from({ length: Math.ceil(to) - Math.floor(from) + 1 }, (_, i) => 10 ** (Math.floor(from) + i))
        .flatMap((ten) => steps.map((step) => ten * step)).filter((v) => Math.log10(v) >= from - 1e-9 && Math.log10(v) <= to + 1e-9);
}

function chart(all: readonly Point[]): Element {
    const roofs = new Map(all.map((p) => [p.precision, { ...roof(p), ridge: p.ridge }]));
    const peaks = [...roofs.values()];
    const intensities = [...all.map((p) => p.intensity), ...peaks.map((r) => r.ridge)], flops = [...all.map((p) => p.flops), ...peaks.map((r) => r.peak)];
    const x0 = Math.log10(Math.min(...intensities) / 3), x1 = Math.log10(Math.max(...intensities) * 4);
    const y0 = Math.log10(Math.min(...flops) / 3), y1 = Math.log10(Math.max(...flops) * 2), taken: Box[] = [];
    const x = (v: number): number => LEFT + ((Math.log10(v) - x0) / (x1 - x0)) * (WIDE - LEFT - RIGHT);
    const y = (v: number): number => TALL - BOTTOM - ((Math.log10(v) - y0) / (y1 - y0)) * (TALL - BOTTOM - TOP);
    return svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "roofline", role: "img", "aria-label": "Roofline; a table with its points follows" },
        svg("clipPath", { id: "roofline-area" }, svg("rect", { x: LEFT, y: TOP, width: WIDE - LEFT - RIGHT, height: TALL - BOTTOM - TOP })),
        marks(x0, x1).map((v) => [svg("line", { class: "grid", x1: x(v), x2: x(v), y1: TOP, y2: TALL - BOTTOM }),
            svg("text", { x: x(v), y: TALL - BOTTOM + 16, "text-anchor": "middle" }, String(Number(v.toPrecision(1))))]),
        marks(y0, y1).map((v) => [svg("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: y(v), y2: y(v) }),
            svg("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, si(v, "", 1))]),
        svg("text", { x: (LEFT + WIDE) / 2, y: TALL - 6, "text-anchor": "middle" }, "FLOP per byte of device memory"),
        svg("text", { x: 12, y: (TALL - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TALL - BOTTOM) / 2})` }, "FLOP/s"),
        svg("g", { "clip-path": "url(#roofline-area)" }, [...roofs].map(([precision, r]) => {
            const low = 10 ** x0, high = 10 ** x1;
            return [svg("polyline", { class: "roof", points: `${x(low)},${y(low * r.bandwidth)} ${x(r.ridge)},${y(r.peak)} ${x(high)},${y(r.peak)}` }),
                svg("text", { x: WIDE - RIGHT - 4, y: y(r.peak) - 5, "text-anchor": "end" }, precision)];
        })),
        all.map((p) => [svg("circle", { class: `point ${p.certain ? "" : "open"}`, cx: x(p.intensity), cy: y(p.flops), r: 4 + 8 * Math.sqrt(p.share) }),
            point_label(x(p.intensity), y(p.flops), 7 + 8 * Math.sqrt(p.share), p.name, { right: WIDE, bottom: TALL - BOTTOM }, taken)]));
}

export function roofline(device: Device, imported: boolean): HTMLElement | null {
    if (imported) return null; // a trace has no counters, whatever its device has
    const all = points(device), source = device.kernel_classes.find((c) => c.roofline)?.roofline?.source;
    if (!all.length) return device.compute?.why ? section("roofline", "Roofline", note(device.compute.why)) : null;
    return section("roofline", "Roofline", wide("Roofline", chart(all)),
        note(`FLOP/s are an upper bound: an active pipe is taken to work at its peak. A ring: what limits it is not certain. Larger: more of the compute time. Peaks from ${source ?? "—"}.`),
        details("Points as a table", () => table<Point>({
            caption: "Kinds of kernels under the roofline", rows: all, columns: [
                { title: "Kind", cell: (p) => p.name, by: (p) => p.name },
                { title: "FLOP/s", cell: (p) => si(p.flops, "FLOP/s"), by: (p) => p.flops, numeric: true },
                { title: "FLOP per byte", cell: (p) => digits(p.intensity), by: (p) => p.intensity, numeric: true },
                { title: "Of attainable", cell: (p) => share(p.of), by: (p) => p.of, numeric: true },
                { title: "Precision", cell: (p) => p.precision || "—", by: (p) => p.precision },
                { title: "Limited by", cell: (p) => `${p.limit}${p.certain ? "" : "?"}`, by: (p) => p.limit },
            ],
        })));
}
