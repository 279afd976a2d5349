// Names come from programs that nobody vouches for: as every string of every kind of page they run nothing, ask for nothing,
// make no element and do not turn the text around.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, launch, open, settled } from "./browser.mjs";
import * as pages from "./pages.mjs";

const HOSTILE = [
    "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "<!--<script>", "\"><svg onload=alert(3)>", "javascript:alert(4)",
    "https://example.invalid/x.png", "{{7*7}}${7*7}", "\u202egnp.exe\u2066\u200f", "\u0000\u001b[31m\u0007\u2028", "__proto__", "constructor",
].join(" ");

let browser, kinds;
before(async () => {
    const report = pages.report();
    kinds = { report, compare: pages.compare(), receipt: pages.receipt(), sweep: pages.sweep(report), live: pages.live(report) };
    browser = await launch();
});
after(() => browser?.close());

/** Every string, but those of a few words that the page goes by (its schema, its kind). */
function poisoned(value, key = "", changed = { count: 0 }) {
    if (typeof value === "string") {
        if (["schema", "kind", "metric", "unit"].includes(key)) return value;
        changed.count++;
        return HOSTILE;
    }
    if (Array.isArray(value)) return value.map((v) => poisoned(v, key, changed));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, poisoned(v, k, changed)]));
    return value;
}

for (const kind of ["report", "compare", "receipt", "sweep", "live"]) {
    test(`${kind}: hostile strings are text`, async () => {
        const changed = { count: 0 }, tab = await open(browser, pages.with_data(kinds[kind], poisoned(pages.data_of(kinds[kind]), "", changed))), { page } = tab;
        await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
        await settled(page);
        assert.ok(changed.count > 10);
        assert.equal(await page.locator("img, iframe, object, embed, form, link:not([rel=icon]), base").count(), 0);
        assert.equal(await page.locator("script").count(), 2, "the data and the page's own");
        assert.equal(await page.locator("a").evaluateAll((links) => links.filter((a) => !/^(#|metrics$)/.test(a.getAttribute("href"))).length), 0);
        assert.equal(await page.evaluate(() => [...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).length), 0);
        const text = await page.locator("main").evaluate((main) => main.textContent);
        assert.ok(text.includes("<img src=x onerror=alert(1)>"), "shown as it is");
        // eslint-disable-next-line no-control-regex
        assert.doesNotMatch(text + await page.title(), /[\u0000\u0007\u001b\u200f\u2028\u202a-\u202e\u2066-\u2069]/);
        assert.ok(text.includes("\\u202e"), "and what would not be seen by its number");
        await page.evaluate(() => { window.shifts.length = 0; });
        await close(tab);
    });
}

test("a page whose data is damaged says so", async () => {
    const tab = await open(browser, pages.with_data(kinds.report, { schema: "hec.page/9", kind: "report" }));
    assert.match(await tab.page.locator("body").innerText(), /cannot be/);
    await close(tab);
});
