// screenshots.mjs FOLDER: see scripts/screenshots.
import { statSync } from "node:fs";
import { join } from "node:path";
import { launch, open, settled } from "./test/browser.mjs";
import * as pages from "./test/pages.mjs";

const LARGEST = 150_000; // bytes of a picture
const [, , out] = process.argv;
const run = (name) => pages.by_hec("report", pages.golden(name));

const PICTURES = [
    { name: "report-light", run: "data_decode", width: 1180, height: 1010 },
    { name: "report-dark", run: "data_decode", theme: "dark", width: 1180, height: 1010 },
    { name: "report-phone", run: "data_decode", width: 390, height: 800 },
    { name: "report-time", run: "none_train", width: 1180, height: 900, of: "#time" },
    { name: "report-time-dark", run: "none_train", theme: "dark", width: 1180, height: 900, of: "#time" },
    { name: "report-findings", run: "data_decode", width: 1180, height: 900, of: "#findings" },
];

const browser = await launch();
for (const { name, run: of_run, theme, width, height, of } of PICTURES) {
    const tab = await open(browser, run(of_run), { theme, width, height }), path = join(out, `${name}.png`);
    await settled(tab.page);
    await (of ? tab.page.locator(of) : tab.page).screenshot({ path, animations: "disabled" });
    await tab.context.close();
    const { size } = statSync(path);
    console.log(`${name}.png ${(size / 1000).toFixed(0)} kB`);
    if (size > LARGEST) throw new Error(`${name}.png is larger than ${LARGEST / 1000} kB`);
}
await browser.close();
