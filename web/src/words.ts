// Words and colours of states and causes. What the words mean is said by `hec explain` and in docs/ledger.md.

interface Word { title: string; meaning: string }

/** In the ledger's order. What the device does is in cool colours, what it waits for in warm ones (css/page.css). */
export const STATES: Readonly<Record<string, Word>> = {
    compute: { title: "compute", meaning: "a kernel runs" },
    comm: { title: "communication", meaning: "communication kernels, with no compute beside them" },
    waiting: { title: "waiting for ranks", meaning: "a communication kernel spins until another rank begins it" },
    copy: { title: "copies", meaning: "copies, with no kernel beside them" },
    data: { title: "data", meaning: "idle: the program waits for its input" },
    launch: { title: "launch", meaning: "idle: the host is launching work" },
    sync: { title: "sync", meaning: "idle: the host waited for the device, and has not given it new work" },
    host: { title: "host", meaning: "idle: the host does something else" },
    alloc: { title: "alloc", meaning: "idle: device memory is allocated or freed" },
    checkpoint: { title: "checkpoint", meaning: "idle: the program saves its state" },
    startup: { title: "startup", meaning: "before the first work" },
    tail: { title: "tail", meaning: "after the last work" },
    requests: { title: "requests", meaning: "idle: there is no work to do" },
    peers: { title: "waiting in the host", meaning: "idle: the program waits for another rank in a collective of the host" },
    unknown: { title: "unknown", meaning: "not known what the device waited for" },
    busy: { title: "busy", meaning: "a kernel was resident; no job says what it did" },
    idle_allocated: { title: "idle, allocated", meaning: "nothing ran, and somebody held the device" },
    idle_free: { title: "idle, free", meaning: "nothing ran, and nobody held the device" },
    unobserved: { title: "unobserved", meaning: "the agent did not run, or the device did not answer" },
};

export function state_title(name: string): string {
    return STATES[name]?.title ?? name.replaceAll("_", " ");
}

/** The agent's states of a device, in the colours of what they are like. */
const LIKE: Readonly<Record<string, string>> = { busy: "compute", idle_allocated: "data", idle_free: "startup", unobserved: "unknown" };

/** The variable of the style sheet that has its colour. */
export function state_variable(name: string): string {
    const like = Object.hasOwn(LIKE, name) ? LIKE[name] ?? "" : name;
    return `state-${Object.hasOwn(STATES, like) ? like : "unknown"}`;
}

export const state_swatch = (name: string): string => `var(--${state_variable(name)})`;

/** What a series is called on a chart, and its colour; others go by their own name. */
export const METRICS: Readonly<Record<string, { title: string; line?: number }>> = {
    gpu_power: { title: "power", line: 0 }, gpu_power_instant: { title: "power, instant" }, gpu_util: { title: "kernel resident", line: 7 }, gpu_mem_util: { title: "memory in use (driver)" },
    gpu_sm_clock: { title: "SM clock" }, gpu_mem_clock: { title: "memory clock" }, gpu_mem_used: { title: "device memory" }, gpu_temperature: { title: "temperature" },
    gpm_gr_active: { title: "engine" }, gpm_sm_active: { title: "SM", line: 3 }, gpm_sm_occupancy: { title: "occupancy", line: 4 }, gpm_tensor_active: { title: "tensor", line: 5 },
    gpm_dram_active: { title: "DRAM", line: 2 }, gpm_fp32_active: { title: "FP32", line: 6 }, gpm_fp16_active: { title: "FP16" }, gpm_fp64_active: { title: "FP64" }, gpm_integer_active: { title: "integer" },
    gpm_hmma_active: { title: "tensor, half precision" }, gpm_imma_active: { title: "tensor, integer" }, gpm_dmma_active: { title: "tensor, double precision" }, gpm_dfma_active: { title: "tensor, double FMA" },
    gpm_pcie_rx: { title: "PCIe in" }, gpm_pcie_tx: { title: "PCIe out" }, gpm_nvlink_rx: { title: "NVLink in" }, gpm_nvlink_tx: { title: "NVLink out" },
    host_cpu_busy: { title: "CPU of the host", line: 1 },
};

export const BASIS: Readonly<Record<string, string>> = {
    measured: "by CUPTI: every kernel was seen",
    glimpse: "by a glimpse of the device, and calls",
    calls: "by calls and telemetry: busy time is inferred",
    unused: "by telemetry: next to nothing ran",
};

export const SHOWN: Readonly<Record<string, string>> = {
    better: "better", worse: "worse", changed: "changed", not_shown: "no difference shown", unknown: "unknown",
};

export const VERDICTS: Readonly<Record<string, string>> = {
    saved: "Saved", lost: "Lost", faster: "Faster", slower: "Slower", not_shown: "Not shown",
};

export const QUANTITIES: Readonly<Record<string, string>> = {
    seconds: "time", joules: "energy", joules_per_unit: "energy per unit", units_per_second: "units per second",
    seconds_per_step: "time per step", watts: "power", step_p50_seconds: "median step", step_p99_seconds: "p99 of steps", objective: "objective",
};
