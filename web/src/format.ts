// Numbers with their units, as hec's terminal report writes them: three digits, SI prefixes. Missing is a dash.
import type { Interval, Maybe } from "./data";

export const NONE = "—";
const PREFIXES: readonly [number, string][] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

export function known(value: Maybe): value is number {
    return typeof value === "number" && Number.isFinite(value);
}

export function digits(value: number, count = 3): string {
    if (value === 0) return "0";
    const places = Math.max(0, Math.min(9, count - 1 - Math.floor(Math.log10(Math.abs(Number(value.toPrecision(count)))))));
    return value.toFixed(places);
}

function prefix_of(value: number): readonly [number, string] {
    const size = Math.abs(value) * 1.0005; // 999.6 becomes 1.00 k
    return PREFIXES.find(([scale]) => size >= scale) ?? [1e-9, "n"];
}

export function si(value: Maybe, unit: string, count = 3): string {
    if (!known(value)) return NONE;
    if (value === 0) return `0 ${unit}`.trim();
    const [scale, prefix] = prefix_of(value);
    return `${digits(value / scale, count)} ${prefix}${unit}`.trim();
}

export const joules = (value: Maybe): string => si(value, "J");
export const bytes = (value: Maybe): string => si(value, "B");

export function watts(value: Maybe): string {
    return known(value) ? `${Math.abs(value) >= 100 ? value.toFixed(0) : digits(value)} W` : NONE;
}

export function seconds(value: Maybe): string {
    if (!known(value)) return NONE;
    if (value < 120) return si(value, "s");
    const whole = Math.round(value);
    const h = Math.floor(whole / 3600), m = Math.floor((whole % 3600) / 60), s = whole % 60;
    return h ? `${h} h ${m} min` : `${m} min ${s} s`;
}

export function share(value: Maybe): string {
    if (!known(value)) return NONE;
    const percent = value * 100;
    return `${percent !== 0 && Math.abs(percent) < 10 ? digits(percent, 2) : percent.toFixed(0)} %`;
}

export function count(value: Maybe): string {
    return known(value) ? value.toLocaleString("en-GB", { maximumFractionDigits: 0 }).replaceAll(",", "\u202f") : NONE;
}

/** "2.7922 kJ" and "± 0.0019 kJ": the bound has one digit, two where it begins with 1, and is rounded up. */
export function with_bound(value: Maybe, bound: Maybe, unit: string): [string, string] {
    if (!known(value)) return [NONE, ""];
    if (!known(bound) || bound <= 0) return [si(value, unit, 4), ""];
    const [scale, prefix] = prefix_of(value), scaled = bound / scale, size = Math.floor(Math.log10(scaled));
    const places = Math.max(0, Math.min(6, (scaled / 10 ** size < 2 ? 1 : 0) - size)), up = Math.ceil(scaled * 10 ** places - 1e-9) / 10 ** places;
    return [`${(value / scale).toFixed(places)} ${prefix}${unit}`, `± ${up.toFixed(places)} ${prefix}${unit}`];
}

export function bounded(value: Maybe, bound: Maybe, unit: string): string {
    return with_bound(value, bound, unit).join(" ").trim();
}

/** "−12 % (−15 to −9)" of a ratio to 1. */
export function change(ratio: Interval): string {
    const [low, best, high] = ratio ?? [];
    if (!known(best)) return NONE;
    const of = (r: number): string => `${r < 1 ? "−" : "+"}${digits(Math.abs(r - 1) * 100, Math.abs(r - 1) < 0.1 ? 2 : 3)}`;
    return `${of(best)} %${known(low) && known(high) ? ` (${of(low)} to ${of(high)})` : ""}`;
}

/** Round values from 0 up to `most`, about four. */
export function ticks(most: number): number[] {
    const rough = most / 4, ten = 10 ** Math.floor(Math.log10(rough)), step = ([1, 2, 5].find((s) => s * ten >= rough) ?? 10) * ten;
    return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}

/** "38 % (23 to 45)" */
export function interval_share(interval: Interval): string {
    const [low, best, high] = interval ?? [];
    if (!known(best)) return NONE;
    const of = (v: number): string => share(v).replace(" %", "");
    return `${share(best)}${known(low) && known(high) ? ` (${of(low)} to ${of(high)})` : ""}`;
}

/** A reading in the unit of its series. */
export function reading(value: Maybe, unit: string): string {
    if (!known(value)) return NONE;
    switch (unit) {
        case "W": return watts(value);
        case "s": return seconds(value);
        case "1": return share(value);
        case "count": case "": return digits(value);
        case "bytes": return si(value, "B");
        case "bytes/s": return si(value, "B/s");
        case "MHz": return `${value.toFixed(0)} MHz`;
        case "C": return `${value.toFixed(0)} °C`;
        case "J": return si(value, "J");
        default: return `${digits(value)} ${unit}`;
    }
}

/** A time on an axis or of a cursor, with as many places as `step` needs. */
export function instant(value: number, step: number): string {
    const places = Math.max(0, Math.min(6, Math.ceil(-Math.log10(Math.max(step, 1e-6)))));
    return `${value.toFixed(places)} s`;
}
