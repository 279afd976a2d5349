// Light and dark: the system's choice, until the reader makes one. Paper is light.
import { h } from "./dom";

const KEY = "hec-theme";
const listeners = new Set<() => void>();
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Called after every change of colours. */
export function on_theme(redraw: () => void): void {
    listeners.add(redraw);
}

/** What stands in a variable of the style sheet now. */
export function colour(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function now(): "light" | "dark" {
    const chosen = document.documentElement.dataset["theme"];
    return chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
}

function choose(theme: string | undefined): void {
    if (theme) document.documentElement.dataset["theme"] = theme;
    else delete document.documentElement.dataset["theme"];
    for (const redraw of listeners) redraw();
}

export function theme_button(): HTMLElement {
    try {
        const kept = localStorage.getItem(KEY);
        if (kept === "light" || kept === "dark") document.documentElement.dataset["theme"] = kept;
    } catch { /* a file may not be allowed to keep anything */ }
    const label = (): string => (now() === "dark" ? "Light theme" : "Dark theme");
    const button = h("button", { type: "button", class: "quiet theme", click: () => {
        const theme = now() === "dark" ? "light" : "dark";
        choose(theme);
        button.textContent = label();
        try { localStorage.setItem(KEY, theme); } catch { /* as above */ }
    } }, label());
    dark.addEventListener("change", () => {
        button.textContent = label();
        choose(document.documentElement.dataset["theme"]);
    });
    let before: string | undefined;
    addEventListener("beforeprint", () => {
        before = document.documentElement.dataset["theme"];
        choose("light");
    });
    addEventListener("afterprint", () => choose(before));
    return button;
}
