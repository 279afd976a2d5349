// Canvases that share the x axis of the plots: the ribbon of states and the lanes of a stretch.
import { h } from "./dom";
import { GUTTER, RIGHT } from "./plot";
import type { Range } from "./range";
import { on_theme } from "./theme";

export interface Pen {
    ctx: CanvasRenderingContext2D;
    width: number;
    height: number;
    from: number;
    to: number;
    x: (time: number) => number;
}

/** A canvas as wide as its box, drawn again when its size, the stretch or the theme changes; `at` is called with the time under the pointer. */
export function time_canvas(label: string, height: number, range: Range, draw: (pen: Pen) => void, at: (time: number | null, y: number) => void): HTMLElement {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const box = h("div", { class: "time-canvas", role: "img", "aria-label": label, "--height": `${height}px` }, canvas);
    const inner = (): number => Math.max(1, box.clientWidth - GUTTER - RIGHT);
    const again = (): void => {
        const width = box.clientWidth, ratio = devicePixelRatio || 1;
        if (!width) return;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        const ctx = canvas.getContext("2d");
        if (!ctx) return;
        ctx.scale(ratio, ratio);
        const scale = inner() / (range.to - range.from);
        draw({ ctx, width: inner(), height, from: range.from, to: range.to, x: (time) => GUTTER + (time - range.from) * scale });
    };
    const time_of = (event: PointerEvent): number =>
        range.from + ((event.clientX - box.getBoundingClientRect().left - GUTTER) / inner()) * (range.to - range.from);
    let began: number | null = null;
    canvas.addEventListener("pointermove", (event) => at(time_of(event), event.offsetY));
    canvas.addEventListener("pointerleave", () => at(null, 0));
    canvas.addEventListener("pointerdown", (event) => { began = time_of(event); });
    canvas.addEventListener("pointerup", (event) => {
        const end = time_of(event);
        if (began !== null && Math.abs(end - began) > (4 / inner()) * (range.to - range.from)) range.set(Math.min(began, end), Math.max(began, end));
        began = null;
    });
    canvas.addEventListener("dblclick", () => range.reset());
    new ResizeObserver(again).observe(box);
    range.listen(again);
    on_theme(again);
    return box;
}
