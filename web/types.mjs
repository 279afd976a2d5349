// Types of what HEC prints as JSON, from its schemas (docs/*.schema.json): a field that changes there breaks the type check.
// types.mjs DIR: writes DIR/schema.d.ts.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const DOCS = new URL("../docs/", import.meta.url);
const ROOTS = { report: "Report", compare: "Compare", receipt: "Receipt", sweep: "Sweep" };

function camel(name) {
    return name.replace(/(^|_)(\w)/g, (_, __, letter) => letter.toUpperCase());
}

function type_of(schema, space) {
    if (schema.$ref) return space + camel(schema.$ref.split("/").at(-1));
    if (schema.anyOf || schema.oneOf) return (schema.anyOf ?? schema.oneOf).map((s) => type_of(s, space)).join(" | ");
    if ("const" in schema) return JSON.stringify(schema.const);
    if (schema.enum) return schema.enum.map((v) => JSON.stringify(v)).join(" | ");
    if (Array.isArray(schema.type)) return schema.type.map((t) => type_of({ ...schema, type: t }, space)).join(" | ");
    switch (schema.type) {
        case "array": return `(${schema.items ? type_of(schema.items, space) : "unknown"})[]`;
        case "object":
            if (schema.properties) return body_of(schema, space);
            return `Record<string, ${typeof schema.additionalProperties === "object" ? type_of(schema.additionalProperties, space) : "unknown"}>`;
        case "integer": return "number";
        default: return schema.type ?? "unknown";
    }
}

function body_of(schema, space) {
    const required = new Set(schema.required ?? []);
    const fields = Object.entries(schema.properties).map(([key, value]) =>
        `    ${JSON.stringify(key)}${required.has(key) ? "" : "?"}: ${type_of(value, space)};\n`);
    return `{\n${fields.join("")}}`;
}

let text = "";
for (const [file, space] of Object.entries(ROOTS)) {
    const schema = JSON.parse(readFileSync(new URL(`${file}.schema.json`, DOCS), "utf8"));
    for (const [name, definition] of Object.entries(schema.$defs)) {
        const own = space + camel(name);
        text += `export type ${own} = ${type_of(definition, space)};\n`;
    }
    text += `export type ${space} = ${type_of(schema, space)};\n`;
}
const out = process.argv[2];
mkdirSync(out, { recursive: true });
writeFileSync(join(out, "schema.d.ts"), text);
