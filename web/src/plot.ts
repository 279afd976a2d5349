// Lines over time: uPlot, with a band from least to most, and the level of detail of the stretch that is shown.
import uPlot from "uplot";
import type { Series } from "./data";
import { h } from "./dom";
import { instant, known, reading } from "./format";
import { cells_in, level_for } from "./levels";
import type { Range } from "./range";
import { colour, on_theme } from "./theme";

/** Left of every chart of a device, so that their times are above each other. */
export const GUTTER = 64;
export const RIGHT = 12;
const FONT = "12px system-ui, sans-serif";

export interface Line {
    series: Series;
    colour: string;
    shown: boolean;
}

export interface PlotOptions {
    label: string;
    lines: Line[];
    range: Range;
    height: number;
    unit: string;
    /** A level that is not crossed: the power limit. */
    limit?: { value: number; text: string } | null;
    /** The top of the axis at least. */
    top?: number | null;
    readout: (time: number | null) => void;
}

function axis(size: number, format: (value: number, step: number) => string, side: number): uPlot.Axis {
    return {
        side, size, font: FONT, labelFont: FONT,
        stroke: () => colour("muted"),
        grid: { stroke: () => colour("grid"), width: 1 },
        ticks: { stroke: () => colour("grid"), width: 1, size: 4 },
        values: (_, splits) => splits.map((value) => format(value, Math.abs((splits[1] ?? 1) - (splits[0] ?? 0)))),
    };
}

export function time_axis(): uPlot.Axis {
    return axis(28, instant, 2);
}

export function value_axis(unit: string): uPlot.Axis {
    return { ...axis(GUTTER, (value) => (value === 0 ? "0" : reading(value, unit)), 3), space: 30 };
}

/** Fits a plot to the width of its box. */
export function fit(plot: uPlot, box: HTMLElement): void {
    new ResizeObserver(() => {
        const width = box.clientWidth;
        if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
    }).observe(box);
    on_theme(() => plot.redraw(false));
}

type Row = (number | null | undefined)[];

function columns(line: Line, range: Range, cells: number): [number[], Row, Row, Row] {
    const level = level_for(line.series.levels, (l) => l.mean.length, range.from, range.to, cells);
    if (!level || !line.shown) return [[], [], [], []];
    const [first, end] = cells_in(level, level.mean.length, range.from, range.to);
    const times = Array.from({ length: end - first }, (_, i) => level.from_s + (first + i + 0.5) * level.step_s);
    const mean = level.mean.slice(first, end);
    return [times, level.min?.slice(first, end) ?? mean, level.max?.slice(first, end) ?? mean, mean];
}

function data_of(options: PlotOptions, width: number): uPlot.AlignedData {
    const tables = options.lines.map((line) => columns(line, options.range, Math.max(50, width / 2)) as unknown as uPlot.AlignedData);
    return uPlot.join(tables);
}

function draw_limit(plot: uPlot, limit: { value: number; text: string }): void {
    const { ctx, bbox } = plot, y = Math.round(plot.valToPos(limit.value, "y", true)) + 0.5;
    if (y < bbox.top || y > bbox.top + bbox.height) return;
    ctx.save();
    ctx.strokeStyle = colour("limit");
    ctx.fillStyle = colour("limit");
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    ctx.fillText(limit.text, bbox.left + 6 * devicePixelRatio, y + 4 * devicePixelRatio);
    ctx.restore();
}

/** The reading of a series at an instant, by the finest level that has it. */
export function value_at(series: Series, time: number): number | null {
    for (const level of series.levels.slice().sort((a, b) => a.step_s - b.step_s)) {
        const value = level.mean[Math.floor((time - level.from_s) / level.step_s)];
        if (known(value)) return value;
    }
    return null;
}

export function plot(options: PlotOptions): { element: HTMLElement; redraw: () => void } {
    const box = h("div", { class: "plot", role: "img", "aria-label": options.label, "--height": `${options.height}px` });
    const range = options.range;
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const line of options.lines) {
        const at = series.length, fill = (): string => `${colour(line.colour)}38`;
        series.push({ points: { show: false }, width: 0, stroke: "transparent" }, { points: { show: false }, width: 0, stroke: "transparent" },
            { stroke: () => colour(line.colour), width: 1.5, points: { show: false } });
        bands.push({ series: [at + 1, at], fill });
    }
    const limit = options.limit;
    const made = new uPlot({
        width: 640, height: options.height, padding: [8, RIGHT, 0, 0], legend: { show: false }, series, bands,
        scales: {
            x: { time: false, range: () => [range.from, range.to] },
            y: { range: (_, low, high) => {
                const most = Math.max(high ?? 0, options.top ?? 0);
                return [Math.min(0, low ?? 0), most > 0 ? most * 1.06 : 1];
            } },
        },
        axes: [time_axis(), value_axis(options.unit)],
        cursor: {
            sync: { key: "time", setSeries: false }, y: false, points: { show: false },
            drag: { x: true, y: false, setScale: false },
            bind: { dblclick: () => () => { range.reset(); return null; } },
        },
        hooks: {
            setSelect: [(u) => {
                if (u.select.width < 4) return;
                const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
                u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
                range.set(from, to);
            }],
            setCursor: [(u) => options.readout(u.cursor.left !== undefined && u.cursor.left !== null && u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null)],
            draw: [(u) => { if (limit) draw_limit(u, limit); }],
        },
    }, data_of(options, 640), box);
    const redraw = (): void => made.setData(data_of(options, made.width), true);
    range.listen(redraw);
    fit(made, box);
    return { element: box, redraw };
}
