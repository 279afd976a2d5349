// hec.page/1: what a page is made of. What HEC prints as JSON elsewhere is in it unchanged (generated/schema.d.ts).
// Absent or null: not measured.
import type { Compare, Receipt, ReportReport, Sweep } from "../generated/schema";

export type Maybe = number | null | undefined;
/** Low, best, high. */
export type Interval = readonly (number | null)[] | null | undefined;

export interface Level {
    from_s: number;
    step_s: number;
    mean: (number | null)[];
    min?: (number | null)[];
    max?: (number | null)[];
}

export interface Series {
    device?: number | null;
    metric: string;
    name: string;
    unit: string;
    source?: string;
    meaning?: string;
    /** Coarse first; a finer one may cover less of the run. */
    levels: Level[];
}

export interface StateLevel {
    from_s: number;
    step_s: number;
    /** Per cell the share of each of `names`; null: not traced. */
    shares: (number[] | null)[];
}

export interface States {
    device: number;
    names: string[];
    levels: StateLevel[];
}

export interface Steps {
    start_s: number[];
    ms: number[];
    total: number;
}

export interface Lane {
    name: string;
    kind: string;
    start_us: number[];
    us: number[];
    name_index: number[];
}

/** A short stretch in full detail. */
export interface Detail {
    from_s: number;
    to_s: number;
    names: string[];
    lanes: Lane[];
}

/** A cell is an index of the replay's `names`. */
export interface ReplayedStep {
    seconds: number;
    host: number[];
    device: number[];
    /** Of the cell, in which the device does anything. */
    device_percent: number[];
}

/** A step as recorded, and with the answers to so many findings. */
export interface Replay {
    device: number;
    answers: number;
    column_s: number;
    names: string[];
    recorded: ReplayedStep;
    answered: ReplayedStep;
}

export interface View {
    duration_s: number;
    series?: Series[];
    states?: States[];
    steps?: Steps;
    detail?: Detail;
    replay?: Replay;
}

export interface LiveDevice {
    index: number;
    name: string | null;
    up: boolean;
    simulated?: boolean;
    verdict?: string | null;
    /** How sure it is, 0 to 1. */
    confidence?: Maybe;
    power_w?: Maybe;
    limit_w?: Maybe;
    gpu?: Maybe;
    sm?: Maybe;
    tensor?: Maybe;
    dram?: Maybe;
    pcie_rx_bytes_per_s?: Maybe;
    pcie_tx_bytes_per_s?: Maybe;
    memory_used_bytes?: Maybe;
    memory_total_bytes?: Maybe;
    temperature_c?: Maybe;
    joules?: Maybe;
    /** Mean power of the last intervals, oldest first. */
    power_history_w?: (number | null)[];
}

/** What was made of the GPUs that were held. */
export interface LiveUse {
    devices: number[];
    joules?: Maybe;
    /** Drawn while they held a GPU and nothing ran for them. */
    wasted_joules?: Maybe;
    wasted_by_cause?: Record<string, number>;
    /** Of the time held. */
    worked_share?: Maybe;
    advice?: string | null;
}

/** Somebody whose processes use GPUs: a pod, a Slurm job, a program of a user. */
export interface LiveTenant extends LiveUse {
    name: string;
    kind?: string | null;
    watts?: Maybe;
    /** What is said of it now, in words; who says it (a job that was analysed, or telemetry alone), and how sure that is. */
    says?: string | null;
    by?: string | null;
    confidence?: Maybe;
}

export interface LiveTeam extends LiveUse {
    team: string;
}

export interface LiveJob {
    name: string;
    command?: string | null;
    devices: number[];
    runs?: boolean;
    cause?: string | null;
    /** Of its joules, by what is known of its cause. */
    recoverable?: Maybe;
    joules?: Maybe;
    wasted_joules?: Maybe;
    seconds?: Maybe;
    wasted_share?: Maybe;
}

/** Watts by cause over the last minutes. */
export interface LiveCauses {
    from_s: number;
    step_s: number;
    names: string[];
    watts: (number | null)[][];
}

export interface Live {
    hostname: string | null;
    hec_version: string;
    time: string;
    interval_s: number;
    devices: LiveDevice[];
    /** Why there is none. */
    trouble?: string | null;
    tenants: LiveTenant[];
    teams?: LiveTeam[];
    jobs: LiveJob[];
    causes?: LiveCauses | null;
    self?: { cpu_seconds?: Maybe; resident_bytes?: Maybe };
}

/** What the page shows beyond hec.report/2 of today. */
export type Report = ReportReport & { headline?: string | null };

export interface Page {
    schema: "hec.page/1";
    kind: "report" | "compare" | "receipt" | "sweep" | "live";
    hec_version?: string;
    reports?: Report[];
    /** Of each report; {}: there is none. */
    views?: (View | Record<string, never> | null)[];
    compare?: Compare;
    receipt?: Receipt;
    /** Where there are several, the first of which is `receipt`. */
    receipts?: Receipt[];
    sweep?: Sweep;
    live?: Live;
}

export function view_of(page: Page, index: number): View | null {
    const view = page.views?.[index];
    return view && typeof view.duration_s === "number" ? view as View : null;
}

export function page_data(): Page {
    const text = document.getElementById("hec-page")?.textContent ?? "";
    const page = JSON.parse(text) as Page;
    if (page.schema !== "hec.page/1") throw new Error(`this page is of another version: ${String(page.schema)}`);
    return page;
}
