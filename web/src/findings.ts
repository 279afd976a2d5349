// Findings: what wasted time and joules, why HEC says so, at which lines, and what answers it.
import type { Report } from "./data";
import { code, free_id, h, note, section, type Child } from "./dom";
import { interval_share, joules, known, share } from "./format";
import { whisker } from "./whisker";

type Finding = Report["findings"][number] & { advice?: string | null; code?: string | null };

export function place(file: string | null, line: number | null, name: string | null): string {
    return [file ? `${file}${known(line) ? `:${line}` : ""}` : "", name ?? ""].filter(Boolean).join(" ") || "—";
}

/** A button that copies; where a page may not, the text is selected. */
export function copy_button(text: string, source: HTMLElement): HTMLElement {
    const said = h("span", { class: "status", role: "status" });
    const button = h("button", { type: "button", class: "quiet", click: async () => {
        try {
            await navigator.clipboard.writeText(text);
            said.textContent = "Copied";
        } catch {
            getSelection()?.selectAllChildren(source);
            said.textContent = "Selected: press Ctrl+C";
        }
    } }, "Copy");
    return h("span", { class: "copy" }, button, said);
}

function fix(text: string): HTMLElement {
    const block = h("pre", { tabindex: 0 }, h("code", {}, text));
    return h("div", { class: "fix" }, block, copy_button(text, block));
}

/** What the findings before it leave it to save, where that is less. */
function rest(then: number | null, alone: (number | null)[] | null): string {
    return known(then) && known(alone?.[1]) && then < alone[1] - 0.005 ? `, by replay; ${share(then)} after the findings above` : ", by replay";
}

function saving(finding: Finding): Child {
    const { joules_fraction, seconds_fraction, joules: saved } = finding.predicted;
    const scale = { low: 0, high: 1 };
    const row = (what: string, interval: (number | null)[] | null, more: string): Child => interval && known(interval[1]) && h("tr", {},
        h("th", { scope: "row" }, what), h("td", { class: "bars" }, whisker(interval, scale)), h("td", {}, interval_share(interval), more));
    if (!known(joules_fraction?.[2] ?? seconds_fraction?.[2]) || !(joules_fraction?.[2] || seconds_fraction?.[2])) return null;
    const { step } = finding.predicted;
    const rows = [row("of the joules", joules_fraction, known(saved) ? `, about ${joules(saved)}${finding.estimated ? " (estimated)" : ""}` : ""),
        row("of the time", seconds_fraction, ""),
        step.replayed && row("of a step's joules", step.joules_fraction, ", by replay"),
        step.replayed && row("of a step's time", step.seconds_fraction, rest(step.then_seconds_fraction, step.seconds_fraction))].filter(Boolean);
    return rows.length ? h("table", { class: "saving" }, h("caption", {}, "Fixing it would save"), h("tbody", {}, rows)) : null;
}

function card(finding: Finding, index: number): HTMLElement {
    const code_text = finding.code ?? finding.advice;
    const id = free_id(`finding-${index}`);
    return h("article", { class: `finding ${finding.actionable ? "act" : ""}`, "aria-labelledby": id },
        h("h3", { id }, h("span", { class: "chip" }, finding.cause === "none" ? "healthy" : finding.cause), " ", finding.title),
        h("p", { class: "sure" }, `Confidence ${finding.confidence?.toFixed(2) ?? "—"}${finding.devices.length > 1 ? `, GPUs ${finding.devices.join(", ")}` : ""}`),
        saving(finding),
        finding.evidence.length ? [h("h4", {}, "Because"), h("ul", {}, finding.evidence.map((e) => h("li", {}, e.text)))] : null,
        finding.source.length ? [h("h4", {}, "At"), h("ul", { class: "plain" }, finding.source.map((line) =>
            h("li", {}, code(place(line.file, line.line, line.function)), ` ${share(line.share)}`)))] : null,
        finding.lever_id === "none" && !code_text ? note(finding.lever) : [h("h4", {}, "What answers it"),
            code_text ? [h("p", {}, finding.lever), fix(code_text)] : fix(finding.lever)],
        finding.cause === "none" ? null : note("Its meaning, its signs, its answers: ", code(`hec explain ${finding.cause}`)));
}

export function findings(report: Report): HTMLElement | null {
    const { scale_out, together } = report;
    const next = together.next;
    const replayed = report.findings.filter((f) => known(f.predicted.step.then_seconds_fraction)).length;
    return section("findings", "Findings", report.findings.length ? report.findings.map((f, i) => card(f, i)) : note("None: too little is known of this run."),
        replayed > 1 && known(together.seconds_fraction) ? h("p", { class: "together" }, h("strong", {}, "Together: "),
            `${share(together.seconds_fraction)} of a step's time${known(together.joules_fraction) ? ` and ${share(together.joules_fraction)} of its joules` : ""}, `,
            `by replay with the answers to ${replayed} findings.`) : null,
        next ? h("p", { class: "together" }, h("strong", {}, "Then: "), `${next.cause} would be the limit, by replay: its answer would save another `,
            `${share(next.seconds_fraction)} of a step's time${known(next.joules_fraction) ? ` and ${share(next.joules_fraction)} of its joules` : ""}.`) : null,
        scale_out.verdict === "unknown" ? null : h("p", { class: "scale-out" }, h("strong", {}, "Would more devices be used well? "),
            scale_out.verdict === "scale_out" ? "Yes: " : "Not yet: ", scale_out.why));
}
