// Tables: sorted by any column, filtered by words, shown in part where they are long.
import { h, replace, type Child } from "./dom";
import { known } from "./format";

export interface Column<Row> {
    title: string;
    cell: (row: Row) => Child;
    /** What it is sorted by; without it the column cannot be sorted. */
    by?: (row: Row) => number | string | null | undefined;
    numeric?: boolean;
    wide?: boolean;
}

export interface Options<Row> {
    caption: string;
    columns: readonly Column<Row>[];
    rows: readonly Row[];
    /** What a filter is matched against; without it there is no filter. */
    text?: (row: Row) => string;
    /** Rows at first. */
    shown?: number;
    className?: string;
    hide_caption?: boolean;
    /** What is said where there is no row. */
    empty?: string;
}

export interface Table<Row> {
    element: HTMLElement;
    /** Other rows; order, filter and focus stay. */
    update: (rows: readonly Row[]) => void;
}

type Sorted = { column: number; descending: boolean } | null;

function compare(a: number | string | null | undefined, b: number | string | null | undefined): number {
    if (typeof a === "string" && typeof b === "string") return a.localeCompare(b);
    // what is missing comes last, whichever way
    const x = typeof a === "number" && known(a) ? a : -Infinity, y = typeof b === "number" && known(b) ? b : -Infinity;
    return x === y ? 0 : x < y ? -1 : 1;
}

function order<Row>(options: Options<Row>, rows: readonly Row[], sorted: Sorted): Row[] {
    const by = sorted ? options.columns[sorted.column]?.by : undefined;
    if (!sorted || !by) return [...rows];
    return [...rows].sort((a, b) => (sorted.descending ? -1 : 1) * compare(by(a), by(b)));
}

export function live_table<Row>(options: Options<Row>): Table<Row> {
    const { columns } = options;
    let rows = options.rows;
    const limit = options.shown ?? Infinity;
    let sorted: Sorted = null, words: string[] = [], all = false;

    const head = columns.map((column, index) => {
        const numeric = column.numeric ? "number" : null;
        if (!column.by) return h("th", { scope: "col", class: numeric }, column.title);
        return h("th", { scope: "col", class: numeric }, h("button", { type: "button", class: "sort", click: () => {
            const first = column.numeric ?? false;
            sorted = { column: index, descending: sorted?.column === index ? !sorted.descending : first };
            draw();
        } }, column.title));
    });
    const body = h("tbody");
    const grid = h("table", { class: options.className }, h("caption", { class: options.hide_caption ? "hidden" : null }, options.caption),
        h("thead", {}, h("tr", {}, head)), body);
    const box = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.caption }, grid);
    // where all do not fit, the last ones but the wide ones are left out, until they are asked for
    const left_out = new Set<number>();
    let whole = false, width = 0;
    const columns_button = h("button", { type: "button", class: "quiet columns-shown", hidden: true, click: () => {
        whole = !whole;
        fit();
    } });
    function leave_out(): void {
        for (const row of grid.rows) if (row.cells.length === columns.length) [...row.cells].forEach((cell, i) => { cell.hidden = left_out.has(i); });
    }
    function fit(): void {
        if (!box.clientWidth) return;
        left_out.clear();
        leave_out();
        const narrow = grid.scrollWidth > box.clientWidth + 1;
        for (let i = columns.length - 1; !whole && i > 0 && grid.scrollWidth > box.clientWidth + 1; i--) {
            if (columns[i]?.wide) continue;
            left_out.add(i);
            leave_out();
        }
        columns_button.hidden = !narrow || (!whole && !left_out.size);
        columns_button.textContent = whole ? "Show the columns that fit" : `Show all ${columns.length} columns`;
    }
    new ResizeObserver(() => {
        if (box.clientWidth === width) return;
        width = box.clientWidth;
        fit();
    }).observe(box);
    const status = h("span", { class: "status", role: "status" });
    const more = h("button", { type: "button", class: "quiet", click: () => {
        all = !all;
        draw();
    } });

    function draw(): void {
        head.forEach((cell, index) => {
            if (sorted?.column === index) cell.setAttribute("aria-sort", sorted.descending ? "descending" : "ascending");
            else cell.removeAttribute("aria-sort");
        });
        const matching = order(options, rows, sorted).filter((row) => {
            const text = words.length ? (options.text?.(row) ?? "").toLowerCase() : "";
            return words.every((word) => text.includes(word));
        });
        const visible = all ? matching : matching.slice(0, limit);
        replace(body, !rows.length && options.empty ? h("tr", {}, h("td", { colspan: columns.length, class: "note" }, options.empty)) : visible.map((row) => h("tr", {}, columns.map((column) =>
            h("td", { class: [column.numeric ? "number" : "", column.wide ? "wide" : ""].join(" ").trim() || null }, column.cell(row))))));
        leave_out();
        status.textContent = words.length ? `${matching.length} of ${rows.length} rows match` : "";
        more.hidden = matching.length <= limit;
        more.textContent = all ? `Show the first ${limit}` : `Show all ${matching.length}`;
    }

    const filter = options.text && (rows.length > 5 || options.empty) && h("label", { class: "filter" }, h("span", {}, "Filter"),
        h("input", { type: "search", autocomplete: "off", spellcheck: "false", input: (event) => {
            words = (event.target as HTMLInputElement).value.toLowerCase().split(/\s+/).filter(Boolean);
            draw();
        } }));
    draw();
    const element = h("div", { class: "tabular" },
        filter ? h("div", { class: "tools" }, filter, status) : null,
        box,
        columns_button,
        limit < Infinity ? more : null);
    return { element, update: (next) => {
        rows = next;
        draw();
    } };
}

export function table<Row>(options: Options<Row>): HTMLElement {
    return live_table(options).element;
}

/** Names and values. */
export function facts(rows: readonly (readonly [string, Child] | null | false | undefined)[], caption: string): HTMLElement {
    return h("table", { class: "facts" }, h("caption", { class: "hidden" }, caption), h("tbody", {},
        rows.map((row) => row && h("tr", {}, h("th", { scope: "row" }, row[0]), h("td", {}, row[1])))));
}
