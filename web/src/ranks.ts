// The ranks of a job: who waits for whom. Of many, those that a short table of the terminal has too.
import type { Report } from "./data";
import { code, h, note, section } from "./dom";
import { count, joules, known, seconds } from "./format";
import { table, type Column } from "./table";
import { state_swatch } from "./words";

type Rank = NonNullable<Report["job"]>["ranks"][number];

/** Seconds, their joules, and how they stand to the most of all ranks. */
function waiting(value: number | null, energy: number | null, most: number, state: string): HTMLElement | string {
    if (!known(value)) return "—";
    return h("span", { class: "meter" },
        h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--from": 0, "--part": most > 0 ? value / most : 0, "--swatch": state_swatch(state) })),
        h("span", { class: "amount" }, seconds(value), known(energy) ? h("small", {}, ` ${joules(energy)}`) : null));
}

const gpus = (rank: Rank): string => (rank.devices.length ? rank.devices.join(", ") : "—");

export function ranks(report: Report): HTMLElement | null {
    const { job } = report;
    if (!job) return null;
    const most = Math.max(0, ...job.ranks.map((r) => r.waited_seconds ?? 0)), held = Math.max(0, ...job.ranks.map((r) => r.held_seconds ?? 0));
    const hosts = new Set(job.ranks.map((r) => r.host)), shown = job.ranks.filter((r) => r.in_short_table);
    const rest = job.ranks.filter((r) => !r.in_short_table), unusual = rest.filter((r) => r.unusual).length;
    const columns: Column<Rank>[] = [
        { title: "Rank", cell: (r) => (known(r.rank) ? r.rank : "?"), by: (r) => r.rank, numeric: true },
        { title: "Waits", cell: (r) => waiting(r.waited_seconds, r.waited_joules, most, "waiting"), by: (r) => r.waited_seconds, numeric: true },
        { title: "Awaited", cell: (r) => waiting(r.held_seconds, r.held_joules, held, "host"), by: (r) => r.held_seconds, numeric: true },
        ...(job.ranks.some((r) => known(r.joules)) ? [{ title: "Energy", cell: (r: Rank) => joules(r.joules), by: (r: Rank) => r.joules, numeric: true }] : []),
        { title: "A step", cell: (r) => seconds(r.step_seconds), by: (r) => r.step_seconds, numeric: true },
        { title: "Steps", cell: (r) => (r.steps ? count(r.steps) : "—"), by: (r) => r.steps, numeric: true },
        { title: "GPU", cell: gpus, by: (r) => r.devices[0], numeric: true },
        { title: "Came last", cell: (r) => (r.collectives ? `${count(r.came_last)} of ${count(r.collectives)}` : "—"), by: (r) => r.came_last, numeric: true },
        ...(hosts.size > 1 ? [{ title: "Host", cell: (r: Rank) => code(r.host), by: (r: Rank) => r.host }] : []),
        ...(job.ranks.some((r) => r.line) ? [{ title: "Line that held its GPU up", cell: (r: Rank) => (r.line ? code(r.line) : "—"), by: (r: Rank) => r.line }] : []),
    ];
    return section("ranks", "Ranks", table<Rank>({
        caption: `Job of ${job.words}`, rows: [...shown, ...rest], shown: rest.length ? shown.length : undefined,
        className: "ranks", text: (r) => `rank ${r.rank ?? "?"} ${r.host ?? ""} GPU ${gpus(r)} ${r.line ?? ""}`, columns,
    }), rest.length && known(job.usual) ? note(`${rest.length} more${unusual ? `, ${rest.length - unusual} of them` : ""} like rank ${job.usual}.`) : null);
}
