// Elements. Strings become text nodes and nothing else: names of kernels, files and commands come from programs that HEC
// does not trust. Characters that would not show, or would turn the text around, are shown by their number.

export type Child = Node | string | number | null | undefined | false | readonly Child[];
type Handler = (event: Event) => void;
export type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

// controls, line and paragraph separators, zero width, bidirectional, fillers, selectors of variants (as src/base/text.c)
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb]|[\udb40-\udb43][\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function plain(text: string): string {
    return text.replace(HIDDEN, (c) => `\\u${c.codePointAt(0)!.toString(16).padStart(4, "0")}`);
}

function add(parent: Element, children: readonly Child[]): void {
    for (const child of children) {
        if (child === null || child === undefined || child === false) continue;
        if (child instanceof Node) parent.append(child);
        else if (typeof child === "object") add(parent, child);
        else parent.append(plain(String(child)));
    }
}

function set(element: Element, attributes: Attributes): void {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) continue;
        if (typeof value === "function") element.addEventListener(name, value);
        // a page's policy forbids style attributes, not properties
        else if (name.startsWith("--")) (element as HTMLElement).style.setProperty(name, String(value));
        else element.setAttribute(name, value === true ? "" : plain(String(value)));
    }
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    set(element, attributes);
    add(element, children);
    return element;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    set(element, attributes);
    add(element, children);
    return element;
}

export function replace(parent: Element, ...children: Child[]): void {
    parent.replaceChildren();
    add(parent, children);
}

let ids = 0;
/** The id, or one like it where the page has it: several reports may be in one page. */
export function free_id(id: string): string {
    return document.getElementById(id) ? `${id}-${++ids}` : id;
}

/** A section with a heading; null where there is nothing in it. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement | null {
    const inside = children.flat(3).filter((c) => c !== null && c !== undefined && c !== false);
    if (!inside.length) return null;
    const own = free_id(id);
    return h("section", { id: own, "aria-labelledby": `${own}-title` }, h("h2", { id: `${own}-title` }, title), ...inside);
}

/** The same, open only when it is asked for: by its heading, by a link to it, and on paper. */
export function folded(part: Child): Child {
    if (!(part instanceof HTMLElement) || part.tagName !== "SECTION") return Array.isArray(part) ? part.map(folded) : part;
    const [heading, ...rest] = part.childNodes;
    if (heading) part.replaceChildren(h("details", { class: "fold" }, h("summary", {}, heading), ...rest));
    return part;
}

function unfold(hash: string): void {
    const fold = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1)))?.closest("section")?.querySelector<HTMLDetailsElement>("details.fold") : null;
    if (!fold) return;
    fold.open = true;
    fold.scrollIntoView({ block: "nearest" });
}

/** Links to folded sections open them, and paper has all of them. */
export function keep_folds(): void {
    let opened: HTMLDetailsElement[] = [];
    document.addEventListener("click", (event) => {
        const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#"]') : null;
        if (link) unfold(link.hash);
    });
    addEventListener("hashchange", () => unfold(location.hash));
    addEventListener("beforeprint", () => {
        opened = [...document.querySelectorAll<HTMLDetailsElement>("details.fold:not([open])")];
        for (const fold of opened) fold.open = true;
    });
    addEventListener("afterprint", () => {
        for (const fold of opened) fold.open = false;
    });
    unfold(location.hash);
}

/** A chart that a narrow screen scrolls. */
export function wide(label: string, chart: Node): HTMLElement {
    return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, chart);
}

export function note(...children: Child[]): HTMLElement {
    return h("p", { class: "note" }, ...children);
}

/** A name of something else: a kernel, a file, a command. Its direction does not leak. */
export function code(text: string | null | undefined, attributes: Attributes = {}): HTMLElement {
    return h("code", { dir: "auto", ...attributes }, text ?? "—");
}

let groups = 0;
/** One of a few: radio buttons, so that the arrow keys work. */
export function choice<T extends string>(label: string, options: readonly { value: T; text: string }[], chosen: T, change: (value: T) => void): HTMLElement {
    const name = `choice-${++groups}`;
    return h("fieldset", { class: "choice" }, h("legend", {}, label),
        options.map(({ value, text }) => h("label", {},
            h("input", { type: "radio", name, value, checked: value === chosen, change: () => change(value) }), h("span", {}, text))));
}

/** One of a few as radio buttons, one of many from a list. */
export function one_of(label: string, options: readonly { value: string; text: string }[], chosen: string, change: (value: string) => void): HTMLElement {
    if (options.length <= 8) return choice(label, options, chosen, change);
    const select = h("select", { change: () => change(select.value) }, options.map(({ value, text }) => h("option", { value, selected: value === chosen }, text)));
    return h("label", { class: "filter" }, h("span", {}, label), select);
}

/** One of many, which is shown below. */
export function pick(label: string, names: readonly string[], make: (index: number) => Child): Child {
    const place = h("div");
    const select = h("select", { change: () => {
        place.replaceChildren(); // its ids are free again
        replace(place, make(Number(select.value)));
    } }, names.map((name, i) => h("option", { value: i }, name)));
    replace(place, make(0));
    return [h("div", { class: "tools pick" }, h("label", { class: "filter" }, h("span", {}, label), select)), place];
}

export function details(summary: string, make: () => Child): HTMLElement {
    let made = false;
    const box = h("details", { class: "more", toggle: () => {
        if (made || !box.open) return;
        made = true;
        add(box, [make()]);
    } }, h("summary", {}, summary));
    return box;
}
