// Headless Chromium for the tests, and what every page of HEC has to keep: nothing asks for anything outside of the page,
// no dialog, no error, nothing that moves after it was shown.
import { chromium } from "playwright-core";
import { existsSync } from "node:fs";
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

export function chromium_path() {
    const own = process.env.HEC_CHROMIUM;
    return own || ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => existsSync(path)) || "";
}

export async function launch() {
    return chromium.launch({ executablePath: chromium_path(), args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
}

/** A page in a context of its own. `broken`: what must stay empty. */
export async function open(browser, where, { theme = "light", width = 1280, height = 900, init, permissions, folded = false } = {}) {
    const context = await browser.newContext({ colorScheme: theme, viewport: { width, height }, permissions: permissions ?? [] });
    const page = await context.newPage();
    const url = where.startsWith("http") ? where : pathToFileURL(where).href;
    const broken = [];
    page.on("dialog", (dialog) => { broken.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on("pageerror", (error) => broken.push(`error: ${error.message}`));
    page.on("console", (message) => { if (message.type() === "error") broken.push(`console: ${message.text()}`); });
    page.on("request", (request) => {
        const inside = request.url() === url || request.url().startsWith("data:") || (url.startsWith("http") && request.url().startsWith(new URL(url).origin));
        if (!inside) broken.push(`request: ${request.url()}`);
    });
    await page.addInitScript(() => {
        window.shifts = [];
        window.answers = []; // from an input to four frames later: what moves meanwhile is the answer to it, also where frames are late
        // Enter presses a button by what follows its keydown, which is a message of its own; a row under the pointer shows its whole name, also
        // where it was scrolled there
        for (const type of ["pointerdown", "pointerup", "pointerover", "pointermove", "keydown", "keypress", "click", "input"])
            addEventListener(type, () => {
                const answer = { from: performance.now(), to: Infinity };
                window.answers.push(answer);
                let frames = 4; // what is drawn is measured, and what comes of that is drawn
                requestAnimationFrame(function next() {
                    if (--frames) requestAnimationFrame(next);
                    else answer.to = performance.now();
                });
            }, { capture: true });
        new PerformanceObserver((list) => {
            for (const { hadRecentInput, startTime, value } of list.getEntries()) if (!hadRecentInput) window.shifts.push({ startTime, value });
        }).observe({ type: "layout-shift", buffered: true });
    });
    if (init) await page.addInitScript(init);
    await page.goto(url, { waitUntil: "load" });
    if (!folded) { // all of it is looked at; what opening moves is no fault
        await page.evaluate(() => { for (const fold of document.querySelectorAll("details.fold")) fold.open = true; });
        await settled(page);
        await page.evaluate(() => { window.shifts.length = 0; });
    }
    return { page, context, broken };
}

/** Two frames in which nothing has scrolled: all that was asked for is drawn, and lies still under the pointer. */
export async function settled(page) {
    await page.evaluate(() => new Promise((done) => {
        let at = NaN, still = 0;
        requestAnimationFrame(function next() {
            still = scrollY === at ? still + 1 : 0;
            at = scrollY;
            if (still === 2) done();
            else requestAnimationFrame(next);
        });
    }));
}

/** All that the page did since the last input was the answer to it, however long that took: a promise was kept. */
export async function answered(page) {
    await settled(page);
    await page.evaluate(() => { window.answers.at(-1).to = performance.now(); });
}

export async function close({ page, context, broken }) {
    await settled(page);
    const shifts = await page.evaluate(() => window.shifts.filter(
        ({ startTime }) => !window.answers.some(({ from, to }) => from <= startTime && startTime <= to)));
    await context.close();
    assert.deepEqual(broken, []);
    assert.deepEqual(shifts, [], "what was shown has moved");
}

/** A hash of what a canvas shows. */
export async function drawn(page, selector) {
    await settled(page);
    return page.evaluate((s) => [...document.querySelectorAll(s)].map((c) => c.toDataURL()).join(""), selector);
}
