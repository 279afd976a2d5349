// Intervals: a dot with whiskers on a scale that its rows share. The figures stand beside it in words.
import type { Interval } from "./data";
import { h, svg } from "./dom";
import { known } from "./format";

export interface Scale {
    low: number;
    high: number;
    /** Where nothing changes. */
    zero?: number;
}

export function scale_of(intervals: readonly Interval[], zero?: number): Scale {
    const values = intervals.flatMap((i) => (i ?? []).filter(known)).concat(zero === undefined ? [] : [zero]);
    if (!values.length) return { low: 0, high: 1 };
    const low = Math.min(...values), high = Math.max(...values), room = (high - low || Math.abs(high) || 1) * 0.06;
    return { low: low - room, high: high + room, ...(zero === undefined ? {} : { zero }) };
}

const WIDE = 200, TALL = 20;

export function whisker(interval: Interval, scale: Scale, kind = "plain"): Element {
    const [low, best, high] = interval ?? [];
    const x = (value: number): number => ((value - scale.low) / (scale.high - scale.low || 1)) * WIDE;
    if (!known(best)) return h("span", {}, "—");
    const middle = TALL / 2;
    return svg("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: `whisker ${kind}`, "aria-hidden": "true" },
        scale.zero === undefined ? null : svg("line", { class: "zero", x1: x(scale.zero), x2: x(scale.zero), y1: 0, y2: TALL }),
        known(low) && known(high) ? [
            svg("line", { class: "range", x1: x(low), x2: x(high), y1: middle, y2: middle }),
            svg("line", { class: "range", x1: x(low), x2: x(low), y1: middle - 4, y2: middle + 4 }),
            svg("line", { class: "range", x1: x(high), x2: x(high), y1: middle - 4, y2: middle + 4 })] : null,
        svg("circle", { class: "best", cx: x(best), cy: middle, r: 4 }));
}
