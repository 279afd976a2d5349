// The stretch of time that all charts of a device show, and the buttons and keys that change it.
import { h } from "./dom";
import { instant } from "./format";

type Listener = (from: number, to: number) => void;

export class Range {
    from: number;
    to: number;
    private readonly listeners = new Set<Listener>();

    constructor(readonly first: number, readonly last: number, readonly finest: number) {
        this.from = first;
        this.to = last;
    }

    listen(listener: Listener): void {
        this.listeners.add(listener);
    }

    set(from: number, to: number): void {
        const length = Math.min(this.last - this.first, Math.max(this.finest, to - from));
        const start = Math.min(this.last - length, Math.max(this.first, from));
        if (!(length > 0) || (start === this.from && start + length === this.to)) return;
        this.from = start;
        this.to = start + length;
        for (const listener of this.listeners) listener(this.from, this.to);
    }

    reset(): void {
        this.set(this.first, this.last);
    }

    zoom(factor: number): void {
        const middle = (this.from + this.to) / 2, half = ((this.to - this.from) * factor) / 2;
        this.set(middle - half, middle + half);
    }

    pan(share: number): void {
        const by = (this.to - this.from) * share;
        this.set(this.from + by, this.to + by);
    }
}

const ACTIONS: readonly { title: string; sign: string; keys: readonly string[]; act: (range: Range) => void }[] = [
    { title: "Earlier", sign: "←", keys: ["ArrowLeft"], act: (r) => r.pan(-0.25) },
    { title: "Later", sign: "→", keys: ["ArrowRight"], act: (r) => r.pan(0.25) },
    { title: "Zoom in", sign: "+", keys: ["+", "=", "ArrowUp"], act: (r) => r.zoom(0.5) },
    { title: "Zoom out", sign: "−", keys: ["-", "ArrowDown"], act: (r) => r.zoom(2) },
    { title: "Whole run", sign: "Reset", keys: ["0", "Escape", "Home"], act: (r) => r.reset() },
];

/** Charts in a frame that takes the keys, with the same as buttons. */
export function time_frame(range: Range, label: string, tools: readonly Node[], ...charts: Node[]): HTMLElement {
    const status = h("span", { class: "status", role: "status" });
    const say = (): void => {
        status.textContent = `${instant(range.from, (range.to - range.from) / 100)} to ${instant(range.to, (range.to - range.from) / 100)}`;
    };
    say();
    range.listen(say);
    return h("div", { class: "time-frame" },
        h("div", { class: "tools" }, tools, h("div", { class: "zoom", role: "group", "aria-label": "Stretch of time" },
            ACTIONS.map(({ title, sign, act }) =>
                h("button", { type: "button", "aria-label": title, title, click: () => act(range) }, sign)), status)),
        h("div", { class: "charts", tabindex: 0, role: "group",
            "aria-label": `${label}. Arrow keys move, plus and minus zoom, 0 shows the whole run.`, keydown: (event) => {
                const { key, ctrlKey, metaKey, altKey, target, currentTarget } = event as KeyboardEvent;
                const action = ACTIONS.find(({ keys }) => keys.includes(key));
                if (!action || ctrlKey || metaKey || altKey || target !== currentTarget) return;
                event.preventDefault();
                action.act(range);
            } }, charts));
}
