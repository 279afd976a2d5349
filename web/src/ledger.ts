// Where the time and the joules of a device went: a waterfall, which is a table with bars.
import type { Report } from "./data";
import { choice, h, note, replace, section } from "./dom";
import { joules, known, seconds, share, watts } from "./format";
import { BASIS, STATES, state_swatch, state_title } from "./words";

type Device = Report["devices"][number];
type Row = Device["ledger"][number];
type By = "joules" | "seconds";

function watts_of(row: Row): string {
    if (!known(row.watts)) return "—";
    const half = known(row.watts_high) && known(row.watts_low) ? Math.max(row.watts_high - row.watts, row.watts - row.watts_low) : null;
    return half === null || half >= row.watts ? `${watts(row.watts)} (rough)` : `${watts(row.watts)} ± ${half.toFixed(half < 0.95 ? 1 : 0)}`;
}

function bar(from: number, part: number, name: string): HTMLElement {
    return h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--from": from, "--part": part, "--swatch": state_swatch(name) }));
}

function draw(body: HTMLElement, rows: readonly Row[], by: By): void {
    const value = (row: Row): number => row[by] ?? 0, total = rows.reduce((sum, row) => sum + value(row), 0) || 1;
    const all = (of: By): number | null => (rows.some((r) => known(r[of])) ? rows.reduce((sum, r) => sum + (r[of] ?? 0), 0) : null);
    const total_j = all("joules"), total_s = all("seconds");
    let before = 0;
    replace(body, rows.map((row) => {
        const from = before / total;
        before += value(row);
        return h("tr", {}, h("th", { scope: "row", title: STATES[row.state]?.meaning }, state_title(row.state)),
            h("td", { class: "bars" }, bar(from, value(row) / total, row.state)),
            h("td", { class: "number" }, joules(row.joules)),
            h("td", { class: "number" }, share(known(row.joules) && total_j ? row.joules / total_j : null)),
            h("td", { class: "number" }, seconds(row.seconds)),
            h("td", { class: "number" }, share(known(row.seconds) && total_s ? row.seconds / total_s : null)),
            h("td", { class: "number" }, watts_of(row)));
    }), h("tr", { class: "total" }, h("th", { scope: "row" }, "all"), h("td", { class: "bars" }),
        h("td", { class: "number" }, joules(total_j)), h("td", {}), h("td", { class: "number" }, seconds(total_s)), h("td", {}),
        h("td", { class: "number" }, watts(known(total_j) && total_s ? total_j / total_s : null))));
}

export function ledger(device: Device): HTMLElement | null {
    const rows = device.ledger;
    if (!rows.length) return device.ledger_why ? section("ledger", "Ledger", note(device.ledger_why)) : null;
    const has_joules = rows.some((row) => known(row.joules));
    let by: By = has_joules ? "joules" : "seconds";
    const body = h("tbody");
    draw(body, rows, by);
    return section("ledger", "Where it went",
        has_joules ? h("div", { class: "tools" }, choice<By>("Bars show", [{ value: "joules", text: "joules" }, { value: "seconds", text: "seconds" }], by, (value) => {
            by = value;
            draw(body, rows, by);
        })) : null,
        h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Ledger" }, h("table", { class: "ledger" },
            h("caption", {}, `Every second and every joule of GPU ${device.index}, by what it was doing`),
            h("thead", {}, h("tr", {}, ["State", "Waterfall", "Energy", "", "Time", "", "Power"].map((title, i) =>
                h("th", { scope: "col", class: i > 1 ? "number" : null }, title || h("span", { class: "hidden" }, "share"))))), body)),
        note([device.ledger_basis ? `Seconds ${BASIS[device.ledger_basis] ?? device.ledger_basis}. ` : "",
            device.ledger_waiting_likely ? "Waiting for ranks: likely, by calls, stacks and telemetry. " : "",
            device.ledger_how ? `Watts ${device.ledger_how}.` : device.ledger_why ?? ""].join("")));
}
