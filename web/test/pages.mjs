// The pages that are tested: written by hec itself of the recorded runs in tests/golden, wherever it can write one in a moment;
// a receipt and a sweep of the simulated GPU are kept in data/.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const HEC = process.env.HEC ?? join(ROOT, "build/bin/hec");
export const golden = (name) => `tests/golden/${name}.hec`;
export const sample = (name) => fileURLToPath(new URL(`data/${name}.json`, import.meta.url));

export const folder = mkdtempSync(join(tmpdir(), "hec-web-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

let count = 0;
export const fresh = (name) => join(folder, `${++count}-${name}.html`);

/** hec VERB --html -o PATH WORDS... */
export function by_hec(verb, ...words) {
    const path = fresh(verb);
    execFileSync(HEC, [verb, "--html", "-o", path, ...words], { cwd: ROOT });
    return path;
}

const DATA = /(<script type="application\/json" id="hec-page">)([^]*?)(<\/script>)/;

export function data_of(path) {
    return JSON.parse(readFileSync(path, "utf8").match(DATA)[2]);
}

/** The same page with other data, escaped as hec escapes it (src/report/html.c). */
export function with_data(path, data) {
    const text = JSON.stringify(data).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const changed = fresh("changed");
    writeFileSync(changed, readFileSync(path, "utf8").replace(DATA, (_, before, __, after) => before + text + after));
    return changed;
}

export const report = () => by_hec("report", golden("none_train"));
/** A run with a finding that is answered by replay. */
export const replayed = () => by_hec("report", golden("copy_roundtrip"));
export const compare = () => by_hec("compare", golden("none_train"), golden("data_decode"));
export const receipt = () => by_hec("verify", sample("receipt"));

/** A sweep is written by `hec sweep` alone, at its end: here its JSON, in a page of another kind. */
export const sweep = (base) => with_data(base, { schema: "hec.page/1", kind: "sweep", sweep: JSON.parse(readFileSync(sample("sweep"), "utf8")) });

export function live_data(more = {}) {
    const device = (index, power) => ({ index, name: "NVIDIA H200", up: index !== 2, verdict: index ? "starved" : "busy", power_w: power, limit_w: 700, gpu: 0.9, sm: 0.8, tensor: 0.4,
        dram: 0.3, pcie_rx_bytes_per_s: 1e9, pcie_tx_bytes_per_s: 2e8, memory_used_bytes: 6e10, memory_total_bytes: 1.4e11, temperature_c: 55, joules: 12345,
        power_history_w: Array.from({ length: 60 }, (_, i) => (i === 20 ? null : power + 30 * Math.sin(i))) });
    return { schema: "hec.page/1", kind: "live", live: {
        hostname: "node-7", hec_version: "0.1.0", time: "2026-01-01T10:00:00Z", interval_s: 0.25, devices: [device(0, 612), device(1, 140), device(2, null)],
        tenants: [{ name: "team-a/train-0", kind: "pod", devices: [0], joules: 9000, watts: 600, wasted_joules: 100, worked_share: 0.9, says: "healthy", by: "telemetry", confidence: 0.61, advice: "scale out", wasted_by_cause: { none: 100 } }, { name: "mia", kind: "user", devices: [1], joules: 3000, watts: 140, wasted_joules: 2800, worked_share: 0.2, says: "starved for data", by: "job", advice: "optimise first", wasted_by_cause: { data: 2500, unknown: 300 } }],
        teams: [{ team: "team-a", devices: [0], joules: 9000, wasted_joules: 100, worked_share: 0.9, advice: "scale out" }, { team: "mia", devices: [1], joules: 3000, wasted_joules: 2800, worked_share: 0.2, advice: "optimise first", wasted_by_cause: { data: 2800 } }],
        jobs: [{ name: "slurm 17", command: "python3 train.py", devices: [0], cause: "data", joules: 5000, wasted_joules: 700, seconds: 60, wasted_share: 0.14 },
            { name: "slurm 18", command: "python3 serve.py", devices: [1], cause: "launch", joules: 2500, wasted_joules: 2100, seconds: 60, wasted_share: 0.84 }],
        causes: { from_s: -60, step_s: 1, names: ["compute", "data", "launch"], watts: Array.from({ length: 60 }, (_, i) => (i === 30 ? [null, null, null] : [400 + i, 100, 50])) }, ...more } };
}
/** From a file there is nobody to ask again. */
export const live = (base) => with_data(base, live_data({ interval_s: 86400 }));
