// The page: what it is of decides what is made of it.
import { page_data, type Page } from "./data";
import { compare_page } from "./compare";
import { h, keep_folds, replace, type Child } from "./dom";
import { live_page } from "./live";
import { receipt_page } from "./receipt";
import { report_page } from "./report";
import { sweep_page } from "./sweep";
import { theme_button } from "./theme";

const KINDS: Readonly<Record<Page["kind"], { title: string; make: (page: Page) => Child }>> = {
    report: { title: "report", make: report_page },
    compare: { title: "comparison", make: compare_page },
    receipt: { title: "receipt", make: receipt_page },
    sweep: { title: "sweep", make: sweep_page },
    live: { title: "agent", make: live_page },
};

function start(root: Element): void {
    let page: Page;
    try {
        page = page_data();
    } catch (error) {
        replace(root, h("main", {}, h("h1", {}, "This page cannot be read"), h("p", {}, String(error))));
        return;
    }
    const kind = KINDS[page.kind];
    replace(root,
        h("a", { class: "skip", href: "#main" }, "Skip to the answer"),
        h("header", { class: "bar-top" }, h("div", {}, h("strong", {}, "HEC"), " ", h("span", {}, kind.title)), theme_button()),
        h("main", { id: "main", tabindex: -1 }, kind.make(page)),
        h("footer", {}, `${page.hec_version ? `hec ${page.hec_version}: joules` : "Joules"}, and where they went. "—": not measured.`));
}

const root = document.getElementById("hec-root");
if (root) {
    start(root);
    keep_folds();
}
