// Kernels, kinds of kernels, source lines and what launched them: tables.
import type { Report } from "./data";
import { code, h, note, section } from "./dom";
import { count, joules, known, seconds, share, watts } from "./format";
import { place } from "./findings";
import { table } from "./table";
import { state_swatch, state_title } from "./words";

type Device = Report["devices"][number];
type Kernel = Report["kernels"][number];

const us = (value: number | null): string => seconds(known(value) ? value / 1e6 : null);

function shape(kernel: Kernel): string {
    return `grid ${kernel.grid?.join("×") ?? "—"}, block ${kernel.block?.join("×") ?? "—"}`;
}

function part(value: number | null): HTMLElement {
    return h("span", { class: "meter" }, h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--from": 0, "--part": value ?? 0, "--swatch": state_swatch("compute") })), h("span", { class: "amount" }, share(value)));
}

export function kernels(report: Report, device: Device): HTMLElement | null {
    const rows = report.kernels.filter((k) => (k.device ?? device.index) === device.index);
    if (!rows.length) return null;
    return section("kernels", "Kernels", table<Kernel>({
        caption: `${rows.length} kernels of GPU ${device.index}, as traced`, rows, shown: 15, text: (k) => k.name, className: "kernels", columns: [
            { title: "Time", cell: (k) => us(k.time_us), by: (k) => k.time_us, numeric: true },
            { title: "Share", cell: (k) => part(k.share), by: (k) => k.share, numeric: true },
            { title: "Name", cell: (k) => [code(k.name, { class: "name" }), k.grid && k.block ? h("small", {}, shape(k)) : null], by: (k) => k.name, wide: true },
            { title: "Count", cell: (k) => count(k.count), by: (k) => k.count, numeric: true },
            { title: "Mean", cell: (k) => us(k.mean_us), by: (k) => k.mean_us, numeric: true },
            { title: "Min", cell: (k) => us(k.min_us), by: (k) => k.min_us, numeric: true },
            { title: "Max", cell: (k) => us(k.max_us), by: (k) => k.max_us, numeric: true },
            { title: "Occupancy limit", cell: (k) => h("span", { title: k.occupancy_limiter ?? "" }, share(k.occupancy_limit)), by: (k) => k.occupancy_limit, numeric: true },
        ],
    }));
}

export function classes(device: Device): HTMLElement | null {
    if (!device.kernel_classes.length) return null;
    const middle = (i: (number | null)[] | null | undefined): number | null => i?.[1] ?? null;
    return section("classes", "Kinds of kernels", table<Device["kernel_classes"][number]>({
        caption: "Compute by kind of kernel, with the counters while it ran", rows: device.kernel_classes, columns: [
            { title: "Kind", cell: (c) => c.class, by: (c) => c.class },
            { title: "Share", cell: (c) => part(c.share), by: (c) => c.share, numeric: true },
            { title: "Time", cell: (c) => seconds(c.seconds), by: (c) => c.seconds, numeric: true },
            { title: "Energy", cell: (c) => joules(c.joules), by: (c) => c.joules, numeric: true },
            { title: "Power", cell: (c) => watts(c.watts), by: (c) => c.watts, numeric: true },
            { title: "SM", cell: (c) => share(middle(c.counters?.sm_active)), by: (c) => middle(c.counters?.sm_active), numeric: true },
            { title: "Tensor", cell: (c) => share(middle(c.counters?.tensor)), by: (c) => middle(c.counters?.tensor), numeric: true },
            { title: "DRAM", cell: (c) => share(middle(c.counters?.dram)), by: (c) => middle(c.counters?.dram), numeric: true },
            { title: "Limited by", cell: (c) => (c.roofline && c.roofline.limit !== "unknown" ? `${c.roofline.limit}${c.roofline.certain ? "" : "?"}` : "—") },
        ],
    }), device.kernel_classes.some((c) => c.counters_shared_with) ? note("Where readings do not separate two kinds, both have the same counters.") : null);
}

export function source(device: Device): HTMLElement | null {
    if (!device.source.length) return null;
    const most = Math.max(...device.source.map((l) => l.joules ?? l.seconds ?? 0)) || 1;
    return section("source", "Source lines", table<Device["source"][number]>({
        caption: "Lines of the program at which the device was idle", rows: device.source, shown: 12, text: (l) => `${l.state} ${place(l.file, l.line, l.function)}`, columns: [
            { title: "State", cell: (l) => state_title(l.state), by: (l) => l.state },
            { title: "Energy", cell: (l) => joules(l.joules), by: (l) => l.joules, numeric: true },
            { title: "Time", cell: (l) => seconds(l.seconds), by: (l) => l.seconds, numeric: true },
            { title: "Line", wide: true, by: (l) => place(l.file, l.line, l.function), cell: (l) => [
                code(place(l.file, l.line, l.function)),
                h("span", { class: "bar", "aria-hidden": "true" }, h("span", { "--from": 0, "--part": (l.joules ?? l.seconds ?? 0) / most, "--swatch": state_swatch(l.state) }))] },
        ],
    }));
}

export function modules(device: Device): HTMLElement | null {
    if (!device.modules.length) return null;
    return section("modules", "What launched the kernels", table<Device["modules"][number]>({
        caption: "Ranges and operators around the launching call", rows: device.modules, shown: 10, text: (m) => `${m.name ?? ""} ${m.by}`, columns: [
            { title: "Share", cell: (m) => part(m.share), by: (m) => m.share, numeric: true },
            { title: "Time", cell: (m) => seconds(m.seconds), by: (m) => m.seconds, numeric: true },
            { title: "Launches", cell: (m) => count(m.launches), by: (m) => m.launches, numeric: true },
            { title: "Name", cell: (m) => code(m.name ?? "elsewhere"), by: (m) => m.name, wide: true },
            { title: "By", cell: (m) => m.by, by: (m) => m.by },
        ],
    }));
}
