// See run. The largest page is made of a real one by filling its views up.
import { statSync } from "node:fs";
import { launch, open } from "../../web/test/browser.mjs";
import * as pages from "../../web/test/pages.mjs";

const CELLS = 40000, STATES = 16384, STEPS = 4000, SPANS = 5000, KERNELS = 2000;
const runs = Number(process.argv[2]);

function largest(path) {
    const page = pages.data_of(path), [report] = page.reports, [view] = page.views, duration = view.duration_s;
    const each = Math.floor(CELLS / view.series.length), noise = (i) => Math.abs(Math.sin(i * 12.9898) * 43758.5453) % 1;
    const values = (count, most) => Array.from({ length: count }, (_, i) => Number((most * noise(i)).toPrecision(4)));
    for (const series of view.series) {
        const mean = values(each, series.unit === "1" ? 1 : 700);
        series.levels = [{ from_s: 0, step_s: duration / each, mean, min: mean.map((v) => v / 2), max: mean.map((v) => Math.min(v * 1.2, 1000)) }];
    }
    for (const states of view.states) {
        const count = Math.floor(STATES / view.states.length);
        const one = (i) => states.names.map((_, n) => (n === i % states.names.length ? 1 : 0));
        states.levels = [4, 1].map((by) => ({ from_s: 0, step_s: (duration / count) * by, shares: Array.from({ length: Math.floor(count / by) }, (_, i) => one(i)) }));
    }
    view.steps = { start_s: values(STEPS, duration).sort((a, b) => a - b), ms: values(STEPS, 200), total: 10_000_000 };
    const names = report.kernels.map((k) => k.name), span = 1e6 / SPANS;
    view.detail = { from_s: duration / 2, to_s: duration / 2 + 1, names, lanes: ["GPU 0 stream 7"].map((name) => ({ name, kind: "stream", start_us: Array.from({ length: SPANS }, (_, i) => i * span),
        us: Array.from({ length: SPANS }, () => span * 0.8), name_index: Array.from({ length: SPANS }, (_, i) => i % names.length) })) };
    report.kernels = Array.from({ length: KERNELS }, (_, i) => ({ ...report.kernels[i % report.kernels.length], name: `${names[i % names.length]}<${i}>` }));
    return pages.with_data(path, page);
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const browser = await launch();
for (const [what, path] of [["a recorded run", pages.report()], ["the largest page", largest(pages.report())]]) {
    const opened = [], zoomed = [];
    for (let i = 0; i < runs; i++) {
        const { page, context } = await open(browser, path);
        // from the start of the navigation to the second frame after all was loaded and made
        opened.push(await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))));
        zoomed.push(await page.evaluate(async () => {
            const frame = document.querySelector(".charts"), begin = performance.now();
            frame.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            return performance.now() - begin;
        }));
        await context.close();
    }
    console.log(`${what}: ${(statSync(path).size / 1e6).toFixed(2)} MB, drawn after ${median(opened).toFixed(0)} ms (longest ${Math.max(...opened).toFixed(0)}), `
        + `drawn again after a zoom in ${median(zoomed).toFixed(0)} ms; ${runs} times each`);
}
await browser.close();
