// Light and dark: the system's choice, until the reader makes one. Paper is light.
import { h } from "./dom";

type Theme = "light" | "dark";
const KEY = "hec-theme";
const listeners = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: Theme | null = null;
try {
    const kept = localStorage.getItem(KEY);
    if (kept === "light" || kept === "dark") chosen = kept;
} catch { /* a file may not be allowed to keep anything */ }

function now(): Theme {
    return chosen ?? (system.matches ? "dark" : "light");
}

function show(theme: Theme): void {
    document.documentElement.dataset["theme"] = theme;
    for (const redraw of listeners) redraw();
}
show(now());

/** Called after every change of colours. */
export function on_theme(redraw: () => void): void {
    listeners.add(redraw);
}

/** What stands in a variable of the style sheet now. */
export function colour(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function theme_button(): HTMLElement {
    const button = h("button", { type: "button", class: "quiet theme", click: () => {
        chosen = now() === "dark" ? "light" : "dark";
        try { localStorage.setItem(KEY, chosen); } catch { /* as above */ }
        update();
    } });
    const update = (): void => {
        button.textContent = now() === "dark" ? "Light theme" : "Dark theme";
        show(now());
    };
    update();
    system.addEventListener("change", update);
    addEventListener("beforeprint", () => show("light"));
    addEventListener("afterprint", () => show(now()));
    return button;
}
