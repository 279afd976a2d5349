// The page of a run: everything that can be used, by pointer and by keys.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answered, close, drawn, launch, open, settled } from "./browser.mjs";
import * as pages from "./pages.mjs";

let browser, path, ddp;
before(async () => {
    path = pages.report();
    ddp = pages.by_hec("report", pages.golden("ddp"));
    browser = await launch();
});
after(() => browser?.close());

const LINES = "#time .uplot canvas";
const status = (page) => page.locator("#time .zoom .status").textContent();

test("the answer, the figures and every section of the run are there", async () => {
    const tab = await open(browser, path), { page } = tab, [report] = pages.data_of(path).reports;
    assert.equal((await page.locator("h1").textContent()).toLowerCase(), report.screen.find((r) => r.row === "found").text.toLowerCase());
    assert.ok(report.headline.startsWith(report.screen.find((r) => r.row === "found").text));
    assert.deepEqual(await page.locator(".screen dt").allTextContents(), report.screen.map((r) => r.row), "the terminal's rows, in its order");
    assert.ok(1 + report.screen.length + await page.locator(".screen pre").evaluateAll((all) => all.reduce((n, pre) => n + pre.textContent.trimEnd().split("\n").length, 0)) <= 15);
    assert.match(await page.locator(".figures").textContent(), /5\.274 kJ.*± 0\.004 kJ.*21\.8 s.*242 W/);
    for (const id of ["ledger", "findings", "time", "detail", "steps", "source", "classes", "kernels", "energy", "provenance"])
        assert.equal(await page.locator(`#${id} h2`).count(), 1, id);
    assert.match(await page.locator("#provenance").textContent(), /What HEC cost.*CPU time/);
    assert.equal(await page.locator("h1").count(), 1);
    await close(tab);
});

test("the ledger's rows are the report's, and its bars change from joules to seconds", async () => {
    const tab = await open(browser, path), { page } = tab, device = pages.data_of(path).reports[0].devices.find((d) => d.used);
    const rows = page.locator("#ledger tbody tr");
    assert.equal(await rows.count(), device.ledger.length + 1);
    const widths = () => page.locator("#ledger .bar > span").evaluateAll((bars) => bars.map((b) => Number(b.style.getPropertyValue("--part"))));
    const by_joules = await widths();
    await page.locator("#ledger").getByLabel("seconds").check();
    const by_seconds = await widths(), sum = (values) => values.reduce((a, b) => a + b, 0);
    assert.notDeepEqual(by_joules, by_seconds);
    assert.ok(Math.abs(sum(by_joules) - 1) < 1e-6 && Math.abs(sum(by_seconds) - 1) < 1e-6, "a waterfall of everything");
    await close(tab);
});

test("time: zoom by drag, double-click, buttons and keys; counters on and off; another series", async () => {
    const tab = await open(browser, path), { page } = tab;
    await page.locator("#time").scrollIntoViewIfNeeded();
    await settled(page);
    const whole = await status(page), first = await drawn(page, LINES), ribbon = await drawn(page, "#time .time-canvas canvas");
    const box = await page.locator("#time .u-over").first().boundingBox();
    await page.mouse.move(box.x + box.width * 0.7, box.y + 40);
    await settled(page);
    assert.match(await page.locator("#time .readout").textContent(), /\d s:.* W/, "the readings under the pointer");
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 4 });
    await page.mouse.up();
    assert.notEqual(await status(page), whole);
    assert.notEqual(await drawn(page, LINES), first);
    assert.notEqual(await drawn(page, "#time .time-canvas canvas"), ribbon, "states have the same stretch");
    await page.mouse.dblclick(box.x + 100, box.y + 40);
    assert.equal(await status(page), whole);

    const frame = page.locator("#time .charts");
    await frame.focus();
    await page.keyboard.press("+");
    const zoomed = await status(page);
    assert.notEqual(zoomed, whole);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await status(page), zoomed);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await status(page), zoomed);
    await page.keyboard.press("0");
    assert.equal(await status(page), whole);
    for (const [button, back] of [["Zoom in", "Zoom out"], ["Zoom in", "Whole run"]]) {
        await page.locator("#time").getByRole("button", { name: button }).click();
        assert.notEqual(await status(page), whole);
        await page.locator("#time").getByRole("button", { name: back }).click();
        assert.equal(await status(page), whole);
    }

    const counters = page.locator("#time .plot").nth(1), before_switch = await counters.evaluate((c) => c.querySelector("canvas").toDataURL());
    await page.locator("#time .switches input:checked").first().uncheck();
    await settled(page);
    assert.notEqual(await counters.evaluate((c) => c.querySelector("canvas").toDataURL()), before_switch);
    const plots = await page.locator("#time .plot").count();
    await page.locator("#time select").selectOption({ index: 1 });
    assert.equal(await page.locator("#time .plot").count(), plots + 1);
    await page.locator("#time summary", { hasText: "table" }).click();
    await page.locator("#time details table tbody tr").nth(20).waitFor();
    await close(tab);
});

test("a finer level of detail is drawn when zoomed in", async () => {
    const page_data = pages.data_of(path), view = page_data.views[0], cells = 4000;
    // a coarse level that says 100 W, and a fine one with a needle
    const fine = Array.from({ length: cells }, (_, i) => (i === 2000 ? 600 : 100)), step = view.duration_s / cells;
    const level = (mean, step_s) => ({ from_s: 0, step_s, mean, min: mean, max: mean });
    const device = page_data.reports[0].devices.find((d) => d.used).index;
    const used = view.series.find((s) => s.metric === "gpu_power" && s.device === device);
    used.levels = [level(Array(400).fill(100), step * 10), level(fine, step)];
    const tab = await open(browser, pages.with_data(path, page_data)), { page } = tab;
    const high = () => page.locator("#time .plot").first().evaluate((plot) => {
        const canvas = plot.querySelector("canvas"), ctx = canvas.getContext("2d");
        const { data, width, height } = ctx.getImageData(0, 0, canvas.width, canvas.height);
        // the line's blue in the upper half, between the axis and the limit
        let found = 0;
        for (let y = Math.round(height * 0.2); y < height / 2; y++) for (let x = 80; x < width; x++) {
            const at = (y * width + x) * 4;
            if (data[at + 3] > 100 && data[at + 2] > data[at] + 60) found++;
        }
        return found;
    });
    await settled(page);
    assert.equal(await high(), 0);
    await page.locator("#time .charts").focus();
    for (let i = 0; i < 6; i++) await page.keyboard.press("+");
    await settled(page);
    assert.ok(await high() > 0, "the needle is seen");
    await close(tab);
});

test("kernels: sorted by any column, filtered by words, all shown", async () => {
    const tab = await open(browser, path), { page } = tab, all = pages.data_of(path).reports[0].kernels;
    const rows = page.locator("#kernels tbody tr"), shown = await rows.count();
    assert.ok(shown < all.length);
    await page.locator("#kernels").getByRole("button", { name: `Show all ${all.length}` }).click();
    assert.equal(await rows.count(), all.length);
    const header = page.locator("#kernels th", { hasText: "Count" });
    await header.getByRole("button").focus();
    await page.keyboard.press("Enter");
    assert.equal(await header.getAttribute("aria-sort"), "descending");
    const column = await header.evaluate((th) => th.cellIndex);
    const counts = async () => (await rows.evaluateAll((trs, c) => trs.map((tr) => Number(tr.cells[c].textContent.replace(/\D/g, ""))), column));
    assert.deepEqual(await counts(), all.map((k) => k.count).sort((a, b) => b - a));
    await page.keyboard.press("Enter");
    assert.equal(await header.getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await counts(), all.map((k) => k.count).sort((a, b) => a - b));
    await page.locator("#kernels input[type=search]").fill("ELEMENTWISE vector");
    const matching = all.filter((k) => /elementwise/i.test(k.name) && /vector/i.test(k.name)).length;
    assert.ok(matching > 0 && matching < all.length);
    assert.equal(await rows.count(), matching);
    assert.equal(await page.locator("#kernels .tools .status").textContent(), `${matching} of ${all.length} rows match`);
    await close(tab);
});

test("a step is drawn as recorded and as replayed, at one scale", async () => {
    const path = pages.replayed(), tab = await open(browser, path), { page } = tab, [{ replay }] = pages.data_of(path).views;
    assert.ok(replay.answered.seconds < replay.recorded.seconds);
    const ends = await page.locator("#replay svg").evaluateAll((charts) => charts.map((chart) =>
        Math.max(...[...chart.querySelectorAll(".part")].map((part) => part.x.baseVal.value + part.width.baseVal.value))));
    assert.equal(ends.length, 2);
    const ratio = (ends[1] - 64) / (ends[0] - 64);
    assert.ok(Math.abs(ratio - replay.answered.seconds / replay.recorded.seconds) < 0.03, `${ratio}`);
    assert.match(await page.locator("#replay").innerText(), /As recorded: .*With the answers? to .*a prediction/s);
    const heights = await page.locator("#replay .part").evaluateAll((parts) => parts.map((part) => part.height.baseVal.value));
    assert.ok(Math.min(...heights) > 0 && Math.max(...heights) <= 22);
    await close(tab);
});

test("a fix is copied", async () => {
    const tab = await open(browser, pages.by_hec("report", pages.golden("data_decode")), { permissions: ["clipboard-read", "clipboard-write"] }), { page } = tab;
    const fix = page.locator("#findings .fix").first();
    await fix.getByRole("button", { name: "Copy" }).click();
    await fix.locator("[role=status]", { hasText: "Copied" }).waitFor();
    await answered(page);
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /DataLoader\(/);
    assert.equal(copied.trim(), (await fix.locator("pre").textContent()).trim());
    await close(tab);
});

test("several devices and several runs in one page", async () => {
    const several = await open(browser, ddp), caption = several.page.locator("#ledger caption");
    assert.match(await caption.textContent(), /GPU 0/);
    await several.page.getByLabel("GPU 1", { exact: true }).check();
    assert.match(await caption.textContent(), /GPU 1/);
    assert.ok(await several.page.locator("#devices tbody tr").count() >= 2);
    await close(several);
    const runs = await open(browser, pages.by_hec("report", pages.golden("none_train"), pages.golden("data_decode"))), { page } = runs;
    const first = await page.locator("h1").textContent();
    await page.locator(".pick select").selectOption({ index: 1 });
    assert.notEqual(await page.locator("h1").textContent(), first);
    assert.equal(await page.locator("#runs tbody tr").count(), 2);
    await close(runs);
});

/** A page of a job of so many ranks: the last but one is late, the first two differ from the others. */
function job_of(count) {
    const data = pages.data_of(ddp), [report] = data.reports, [like] = report.job.ranks, late = count - 2;
    report.job = { ...report.job, size: count, usual: 4, words: `${count} ranks`, ranks: Array.from({ length: count }, (_, rank) => ({
        ...like, rank, host: `node-${rank >> 3}`, devices: [rank % 8], waited_seconds: rank === late ? 0.01 : 12.5, waited_joules: rank === late ? 2 : 3100,
        held_seconds: rank === late ? 12.5 * (count - 1) : 0, held_joules: rank === late ? 190000 : 0, unusual: rank < 2 || rank === late, in_short_table: rank < 2 || rank === 4 || rank === late,
        line: rank === late ? "train.py:17 log" : null })) };
    return pages.with_data(ddp, data);
}

test("ranks: those that matter first, all when asked for; who waits and who is waited for also on a narrow screen", async () => {
    const path = job_of(64), tab = await open(browser, path), { page } = tab, rows = page.locator("#ranks tbody tr");
    const first = () => rows.evaluateAll((all) => all.map((row) => Number(row.cells[0].textContent)));
    assert.deepEqual(await first(), [0, 1, 4, 62]);
    assert.match(await page.locator("#ranks").innerText(), /Job of 64 ranks[^]*60 more like rank 4/);
    assert.match(await rows.nth(3).innerText(), /13 min 8 s\s+190 kJ[^]*node-7[^]*train\.py:17 log/);
    await page.locator("#ranks").getByRole("button", { name: "Show all 64" }).click();
    assert.equal(await rows.count(), 64);
    await page.locator("#ranks th", { hasText: "Awaited" }).getByRole("button").click();
    assert.equal((await first())[0], 62);
    await close(tab);
    const narrow = await open(browser, path, { width: 390 }), cells = narrow.page.locator("#ranks tbody tr").nth(3).locator("td:visible");
    assert.equal(await narrow.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    assert.deepEqual((await cells.allInnerTexts()).map((text) => text.trim().replace(/\s+/g, " ")), ["62", "10.0 ms 2.00 J", "13 min 8 s 190 kJ"]);
    await narrow.page.locator("#ranks").getByRole("button", { name: /Show all \d+ columns/ }).click();
    assert.match(await narrow.page.locator("#ranks tbody tr").nth(3).innerText(), /train\.py:17 log/);
    await close(narrow);
});

test("waiting for ranks is a row of the ledger", async () => {
    const tab = await open(browser, ddp);
    assert.match(await tab.page.locator("#ledger").innerText(), /waiting for ranks/);
    await close(tab);
    const data = pages.data_of(ddp);
    for (const device of data.reports[0].devices) device.ledger_waiting_likely = true;
    const likely = await open(browser, pages.with_data(ddp, data));
    assert.match(await likely.page.locator("#ledger").innerText(), /Waiting for ranks: likely/);
    await close(likely);
});

test("a run without a trace and without views", async () => {
    const data = pages.data_of(path);
    const tab = await open(browser, pages.with_data(path, { ...data, views: [{}] }));
    assert.equal(await tab.page.locator("#time").count(), 0);
    assert.equal(await tab.page.locator("#ledger").count(), 1);
    await close(tab);
    const untraced = await open(browser, pages.by_hec("report", pages.golden("copies")));
    assert.equal(await untraced.page.locator("h1").count(), 1);
    assert.doesNotMatch(await untraced.page.locator("main").innerText(), /NaN|undefined|Infinity|\[object/);
    await close(untraced);
});

test("what is below the findings is folded: opened by its heading, by a link to it, and on paper", async () => {
    const tab = await open(browser, path, { folded: true }), { page } = tab;
    const opened = () => page.locator("details.fold[open]").evaluateAll((all) => all.map((fold) => fold.closest("section").id));
    assert.deepEqual(await opened(), []);
    assert.ok(await page.locator("#findings article").first().isVisible() && await page.locator("#ledger table").isVisible());
    for (const id of ["time", "detail", "steps", "source", "classes", "kernels", "energy", "provenance"]) {
        assert.equal(await page.locator(`#${id} > details.fold > summary h2`).isVisible(), true, id);
        assert.equal(await page.locator(`#${id} table`).first().isVisible(), false, id);
    }
    await page.locator("nav.contents a[href='#kernels']").click();
    await settled(page); // a click goes to what lies there when the button comes up, which a scroll moves away
    assert.deepEqual(await opened(), ["kernels"]);
    assert.ok(await page.locator("#kernels table").isVisible());
    await page.locator("#steps summary h2").first().click();
    await settled(page);
    assert.deepEqual((await opened()).sort(), ["kernels", "steps"]);
    await page.locator("#time > details > summary").click();
    await settled(page);
    assert.deepEqual((await opened()).sort(), ["kernels", "steps", "time"]);
    assert.ok(await page.locator("#time .uplot canvas").first().evaluate((c) => c.getBoundingClientRect().width > 600), "a chart is as wide as its box, once it is open");
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.locator("details.fold:not([open])").count(), 0);
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    assert.deepEqual((await opened()).sort(), ["kernels", "steps", "time"]);
    await page.evaluate(() => { window.shifts.length = 0; });
    await close(tab);
    const linked = await open(browser, path, { folded: true, init: () => { if (!location.hash) history.replaceState(null, "", "#energy"); } });
    assert.ok(await linked.page.locator("#energy table").first().isVisible(), "an address with a section opens it");
    await linked.page.evaluate(() => { window.shifts.length = 0; });
    await close(linked);
});
