// Every kind of page in both themes and on a phone: accessible (axe), nothing wider than the screen, usable by keys alone.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { close, drawn, launch, open, settled } from "./browser.mjs";
import * as pages from "./pages.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser, kinds;
before(async () => {
    const report = pages.report();
    kinds = { report, replayed: pages.replayed(), compare: pages.compare(), receipt: pages.receipt(), sweep: pages.sweep(report), live: pages.live(report) };
    browser = await launch();
});
after(() => browser?.close());

/** All rules, or those that a theme can break. */
async function scan(page, what, rules) {
    // by the debugger, which the page's policy does not concern
    await page.evaluate(AXE);
    const violations = await page.evaluate(async (only) => (await window.axe.run({ resultTypes: ["violations"], ...(only ? { runOnly: only } : {}) })).violations
        .map((v) => `${v.impact} ${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join(" | ")}`), rules);
    assert.deepEqual(violations.filter((v) => /^(serious|critical)/.test(v)), [], what);
}

for (const kind of ["report", "replayed", "compare", "receipt", "sweep", "live"]) {
    test(`${kind}: light and dark, accessible`, async () => {
        const tab = await open(browser, kinds[kind]), { page } = tab;
        // but whole reports within a comparison: those are looked at by themselves
        const toggle = (on) => page.evaluate((open) => document.querySelectorAll("details").forEach((d) => { d.open = open && !/^Report of/.test(d.innerText); }), on);
        for (const theme of ["light", "dark"]) {
            await toggle(theme === "light");
            await page.emulateMedia({ colorScheme: theme });
            await settled(page);
            await scan(page, `${kind}, ${theme}`, theme === "dark" ? ["color-contrast"] : null);
            assert.doesNotMatch(await page.locator("main").innerText(), /NaN|undefined|Infinity|\[object/);
            const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number));
            assert.ok(theme === "dark" ? background[0] < 60 : background[0] > 220, `${theme}: ${background}`);
        }
        // what was opened for the scan has moved the rest
        await page.evaluate(() => { window.shifts.length = 0; });
        await close(tab);
    });

    test(`${kind}: 360 pixels wide, and on paper`, async () => {
        const tab = await open(browser, kinds[kind], { width: 360, height: 740 }), { page } = tab;
        await settled(page);
        const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        assert.ok(inner <= outer, `${inner} in ${outer}`);
        await page.emulateMedia({ media: "print" });
        assert.equal(await page.locator("button:visible").count(), 0, "paper has no buttons");
        assert.ok(await page.locator("h1").isVisible());
        // of paper nobody says that it moves
        await page.evaluate(() => { window.shifts.length = 0; });
        await close(tab);
    });

    test(`${kind}: at 390 pixels every table shows its columns, or leaves out some until asked`, async () => {
        const tab = await open(browser, kinds[kind], { width: 390, height: 844 }), { page } = tab;
        await settled(page);
        const overflow = () => page.locator(".tabular > .scroll").evaluateAll((boxes) => boxes.filter((b) => b.clientWidth && b.scrollWidth > b.clientWidth + 1).map((b) => b.getAttribute("aria-label")));
        assert.deepEqual(await overflow(), [], "nothing has to be scrolled to");
        const hidden = page.locator(".tabular th:is([hidden])"), count = await hidden.count();
        const boxes = await page.locator(".tabular:has(th[hidden])").count();
        assert.equal(await page.locator(".tabular:has(th[hidden]) > .columns-shown:visible").count(), boxes, "a button says that there are more");
        if (count) {
            const first = page.locator(".tabular:has(th[hidden])").first(), all = await first.locator("th").count(), button = first.locator(".columns-shown");
            const handle = await first.elementHandle();
            assert.equal(await button.textContent(), `Show all ${await first.locator("thead th").count()} columns`);
            await button.click();
            assert.equal(await handle.evaluate((box) => box.querySelectorAll("th[hidden], td[hidden]").length), 0);
            assert.ok(all > 1);
        }
        await page.evaluate(() => { window.shifts.length = 0; });
        await close(tab);
    });

    test(`${kind}: every control is reached by Tab, and shows that it is`, async () => {
        const tab = await open(browser, kinds[kind]), { page } = tab;
        const wanted = await page.evaluate(() => {
            const controls = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter((c) => c.checkVisibility());
            // of radio buttons the chosen one: the arrow keys lead to the others
            const stops = controls.filter((c) => c.type !== "radio" || c.checked);
            Object.assign(window, { reached: [], plain: [] });
            document.addEventListener("focusin", ({ target }) => {
                const shown = target.type === "radio" ? target.nextElementSibling : target;
                window.reached.push(stops.indexOf(target));
                if (getComputedStyle(shown).outlineStyle === "none") window.plain.push(target.outerHTML.slice(0, 80));
            });
            return stops.length;
        });
        await Promise.all(Array.from({ length: wanted }, () => page.keyboard.press("Tab")));
        const [reached, plain] = await page.evaluate(() => [window.reached, window.plain]);
        assert.deepEqual(plain, [], "focus that does not show");
        assert.deepEqual(reached, Array.from({ length: wanted }, (_, i) => i), "in the order of the page");
        await close(tab);
    });
}

test("the theme is changed by its button, charts as well", async () => {
    const tab = await open(browser, kinds.report), { page } = tab, lines = "#time .uplot canvas";
    const theme = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await theme(), plotted = await drawn(page, lines);
    await page.getByRole("button", { name: "Dark theme" }).click();
    assert.notEqual(await theme(), light);
    assert.notEqual(await drawn(page, lines), plotted);
    await page.getByRole("button", { name: "Light theme" }).click();
    assert.equal(await theme(), light);
    assert.equal(await drawn(page, lines), plotted);
    await close(tab);
});

test("compare: verdict and intervals", async () => {
    const tab = await open(browser, kinds.compare), { page } = tab, { compare } = pages.data_of(kinds.compare);
    assert.equal((await page.locator("h1").textContent()).toLowerCase(), compare.sentence.toLowerCase());
    assert.equal(await page.locator("#quantities tbody tr").count(), compare.quantities.length);
    const known = compare.quantities.filter((q) => q.ratio && q.ratio[1] !== null).length;
    assert.equal(await page.locator("#quantities svg.whisker circle").count(), known);
    await close(tab);
});

test("receipt: verdict, pairs and digest", async () => {
    const tab = await open(browser, kinds.receipt), { page } = tab, { receipt } = pages.data_of(kinds.receipt);
    assert.match(await page.locator("main").innerText(), /Saved/i);
    assert.equal(await page.locator("#trials tbody tr").count(), receipt.trials.length);
    assert.match(await page.locator("#digest").textContent(), new RegExp(receipt.digest));
    await close(tab);
});

test("sweep: the front, the plateau, the cliff and what is recommended", async () => {
    const tab = await open(browser, kinds.sweep), { page } = tab, { sweep } = pages.data_of(kinds.sweep);
    assert.equal((await page.locator("h1").textContent()).toLowerCase(), sweep.result.sentence.toLowerCase());
    assert.equal(await page.locator("svg.front circle.point").count(), 4, "512 did not run");
    assert.equal(await page.locator("svg.front circle.point:not(.open)").count(), sweep.settings.filter((s) => s.front).length);
    assert.equal(await page.locator("svg.front .chosen").count(), 1);
    assert.equal(await page.locator("svg.plateau .plateau-area").count(), 1);
    assert.equal(await page.locator("svg.plateau .cliff").count(), 1);
    assert.equal(await page.locator("#settings tbody tr").count(), sweep.settings.length);
    await close(tab);
});

test("live: the page of a real agent, of simulated devices", async () => {
    const state = join(pages.folder, "agent");
    const agent = spawn(pages.HEC, ["agent", "--sim", "h200x2", "--listen", "127.0.0.1:0", "--interval", "0.2", "--state-dir", state], { stdio: ["ignore", "ignore", "pipe"] });
    try {
        const url = await new Promise((found, lost) => {
            let said = "";
            agent.stderr.on("data", (text) => {
                said += text;
                const at = said.match(/(http:\/\/[\d.:]+\/)metrics/);
                if (at) found(at[1]);
            });
            agent.on("exit", () => lost(new Error(said)));
        });
        const tab = await open(browser, url), { page } = tab;
        await page.locator("#devices tbody tr").nth(1).waitFor();
        assert.equal(await page.locator("#devices tbody tr").count(), 2);
        assert.match(await page.locator("#devices").textContent(), /H200.* W of 700 W/);
        const time = await page.locator("[role=status]").first().textContent();
        await page.waitForFunction((before) => document.querySelector("[role=status]").textContent !== before, time);
        await scan(page, "the agent's");
        // what a first answer fills was empty
        await page.evaluate(() => { window.shifts.length = 0; });
        await close(tab);
    } finally {
        agent.kill();
    }
});

test("live: asks again without a reload, keeps its place, and says when the agent is gone", async () => {
    let served = pages.live_data(), up = true;
    const html = readFileSync(kinds.live, "utf8").replace(/default-src (&#39;|')none(&#39;|')/, "$&; connect-src $1self$2");
    const server = createServer((request, response) => {
        if (request.url === "/") response.setHeader("content-type", "text/html; charset=utf-8").end(html);
        else if (request.url === "/live.json" && up) response.setHeader("content-type", "application/json").end(JSON.stringify(served));
        else response.writeHead(503).end();
    });
    await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
    const tab = await open(browser, `http://127.0.0.1:${server.address().port}/`), { page } = tab;
    try {
        assert.deepEqual(await page.locator("#jobs tbody tr").evaluateAll((rows) => rows.map((r) => r.textContent.match(/slurm \d+/)[0])), ["slurm 18", "slurm 17"], "most waste first");
        const tenants = await page.locator("#tenants tbody tr").allTextContents();
        assert.match(tenants[0], /mia.*starved for data.*20 %.*optimise first/, "what a job said is no guess");
        assert.match(tenants[1], /team-a.*likely healthy \(61 %\).*scale out/);
        assert.match((await page.locator("#teams tbody tr").allTextContents())[0], /mia.*optimise first/);
        assert.match(await page.locator("#devices").textContent(), /612 W.*not answer/);
        await page.locator("#devices").getByRole("button", { name: "Power" }).focus();
        await page.evaluate(() => { window.same = true; });
        served = pages.live_data({ time: "2026-01-01T10:00:01Z" });
        served.live.devices[0].power_w = 333;
        await page.locator("#devices", { hasText: "333 W" }).waitFor();
        assert.ok(await page.evaluate(() => window.same), "no reload");
        assert.equal(await page.evaluate(() => document.activeElement.textContent), "Power", "the focus stays");
        tab.broken.length = 0;
        up = false;
        await page.getByText(/does not answer\./).first().waitFor();
        up = true;
        await page.waitForFunction(() => !/agent does not answer/i.test(document.body.innerText));
        // what the browser itself says of an answer with 503
        tab.broken.splice(0, tab.broken.length, ...tab.broken.filter((b) => !/503/.test(b)));
        await close(tab);
    } finally {
        server.closeAllConnections?.();
        server.close();
    }
});
