// A page of given data, written as hec writes it (src/report/html.c): for what no run of hec makes quickly.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const dist = new URL("../dist/", import.meta.url);
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

export function escape_json(text) {
    return text.replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function assemble(page) {
    const css = readFileSync(new URL("page.css", dist), "utf8"), js = readFileSync(new URL("page.js", dist), "utf8");
    return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${hash(js)}; style-src ${hash(css)}; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>HEC</title>
<style>${css}</style></head><body>
<script type="application/json" id="hec-page">${escape_json(JSON.stringify(page))}</script>
<script>${js}</script></body></html>
`;
}

export function write_page(path, page) {
    writeFileSync(path, assemble(page));
    return path;
}
