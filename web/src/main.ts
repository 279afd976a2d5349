// One page for everything that HEC shows: what it is stands in its data.
import { compare_page } from "./compare";
import { page_data, type Page } from "./data";
import { h, plain, replace, type Child } from "./dom";
import { live_page } from "./live";
import { receipt_page } from "./receipt";
import { report_page } from "./report";
import { sweep_page } from "./sweep";
import { theme_button } from "./theme";

const KINDS: Readonly<Record<Page["kind"], { title: string; make: (page: Page) => Child }>> = {
    report: { title: "Report", make: report_page },
    compare: { title: "Comparison", make: compare_page },
    receipt: { title: "Receipt", make: receipt_page },
    sweep: { title: "Sweep", make: sweep_page },
    live: { title: "Agent", make: live_page },
};

function subject(page: Page): string {
    return page.reports?.[0]?.run.command ?? page.live?.hostname ?? page.sweep?.command.join(" ") ?? page.receipt?.commands.a.join(" ") ?? page.compare?.a[0]?.command ?? "";
}

function start(): void {
    const main = h("main", { id: "main", tabindex: -1 }), kind = h("span", { class: "kind" });
    const header = h("header", {}, h("a", { class: "skip", href: "#main" }, "Skip to content"), h("span", { class: "mark" }, "HEC"), kind, theme_button());
    try {
        const page = page_data(), { title, make } = KINDS[page.kind] ?? { title: "", make: () => h("p", {}, "This page is of a kind that it does not know.") };
        kind.textContent = title;
        document.title = plain(`${subject(page).slice(0, 80)} · HEC ${title.toLowerCase()}`);
        replace(main, make(page));
    } catch (error) {
        replace(main, h("p", { class: "caveat", role: "alert" }, `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`));
    }
    document.body.append(header, main);
}

start();
