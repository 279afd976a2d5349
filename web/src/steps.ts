// Steps: how long each took, and how that is spread.
import uPlot from "uplot";
import type { Report, View } from "./data";
import { choice, h, note, section } from "./dom";
import { count, known, seconds, share, si } from "./format";
import { fit, time_axis, value_axis } from "./plot";
import { facts } from "./table";
import { colour } from "./theme";

/** As the terminal report says it. */
const FOUND: Readonly<Record<string, string>> = {
    marked: "marked by the program", optimizer: "of the optimizer", module: "calls of the outermost module",
    annotated: "annotated in the trace", periodic: "found in the sequence of kernels",
};

const ms = (value: number | null | undefined): string => seconds(known(value) ? value / 1e3 : null);

function plot_of(view: View, log: boolean): HTMLElement {
    const steps = view.steps, box = h("div", { class: "plot", role: "img", "aria-label": "Length of each step over time; the quantiles follow", "--height": "180px" });
    if (!steps) return box;
    const plot = new uPlot({
        width: 640, height: 180, padding: [8, 12, 0, 0], legend: { show: false },
        series: [{}, { stroke: () => colour("line-0"), paths: () => null, points: { show: true, size: 4, width: 0, fill: () => colour("line-0") } }],
        scales: { x: { time: false, range: [0, view.duration_s] }, y: log ? { distr: 3 } : { range: (_, __, high) => [0, (high ?? 1) * 1.06 || 1] } },
        axes: [time_axis(), value_axis("s")], cursor: { show: false },
    }, [steps.start_s, steps.ms.map((v) => v / 1e3)], box);
    fit(plot, box);
    return box;
}

export function steps(report: Report, view: View | null, device: Report["devices"][number]): HTMLElement | null {
    const s = device.steps.count ? device.steps : report.steps;
    if (!s.count) return null;
    const place = h("div"), has = view?.steps && view.steps.ms.length > 1;
    const draw = (log: boolean): void => place.replaceChildren(plot_of(view as View, log));
    if (has) draw(false);
    const shown = view?.steps?.ms.length ?? 0;
    return section("steps", "Steps",
        has ? [h("div", { class: "tools" }, choice("Scale", [{ value: "linear", text: "linear" }, { value: "log", text: "logarithmic" }], "linear", (v) => draw(v === "log"))), place] : null,
        has && view?.steps && shown < view.steps.total ? note(`${count(shown)} of ${count(view.steps.total)} steps are drawn, shortest and longest of each stretch among them.`) : null,
        facts([
            ["steps", `${count(s.count)} ${FOUND[s.source] ?? s.source}${s.samples_per_step ? `, ${si(s.samples_per_step, "", 4)} ${s.unit ?? "unit"}s each` : ""}`],
            ["median", ms(s.median_ms)],
            ["p90, p99", `${ms(s.p90_ms)}, ${ms(s.p99_ms)}`],
            ["shortest, longest", `${ms(s.min_ms)}, ${ms(s.max_ms)}`],
            known(s.data_share) ? ["in the loader", share(s.data_share)] : null,
            known(s.busy_share) ? ["device busy", share(s.busy_share)] : null,
            known(s.loss.first) ? ["loss", `${s.loss.first.toPrecision(4)} to ${s.loss.last?.toPrecision(4) ?? "—"}`] : null,
        ], "Steps"));
}
