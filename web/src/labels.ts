// Names of points of a chart.
import { svg } from "./dom";

export interface Box { left: number; right: number; y: number }

const LETTER = 7.5, LINE = 14;

/** The name of a point beside it, `away` from its middle, where no other name is. */
export function point_label(x: number, y: number, away: number, text: string, area: { right: number; bottom: number }, taken: Box[]): Element {
    const wide = LETTER * text.length, end = x + wide + away > area.right, left = end ? x - away - wide : x + away;
    const at = [-9, 18, 4, -28, 36].map((by) => y + by).find((place) => place < area.bottom + 2 &&
        !taken.some((box) => Math.abs(box.y - place) < LINE && box.left < left + wide && left < box.right)) ?? y + 4;
    taken.push({ left, right: left + wide, y: at });
    return svg("text", { class: "name", x: end ? x - away : x + away, y: at, "text-anchor": end ? "end" : "start" }, text);
}
