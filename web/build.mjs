// build.mjs DIR: bundles src/ and css/ into DIR/page.js and DIR/page.css, the same bytes wherever it runs.
import { build } from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2];
if (!out) throw new Error("build.mjs: which folder?");
mkdirSync(out, { recursive: true });

const notice = `/*! uPlot ${JSON.parse(readFileSync(join(here, "package.json"), "utf8")).dependencies.uplot}, https://github.com/leeoniya/uPlot\n`
    + readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim() + "\n*/";
for (const [entry, name] of [["src/main.ts", "page.js"], ["css/page.css", "page.css"]]) {
    const result = await build({
        absWorkingDir: here,
        entryPoints: [entry],
        bundle: true,
        minify: true,
        write: false,
        format: "iife",
        target: ["es2020", "chrome100", "firefox100", "safari15"],
        charset: "ascii",
        legalComments: "none",
        logLevel: "warning",
    });
    const text = `${notice}\n${result.outputFiles[0].text}`;
    // both are written into an HTML page as they are
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} would end the element that it lies in`);
    writeFileSync(join(out, name), text);
}
