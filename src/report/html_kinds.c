/* Pages of results. Apart from html.c, so that the agent's library need not hold reports. */
#include "report/html.h"
#include "report/json_roots.h"

#include <stdio.h>

static const struct hec_report_style plain = {.utf8 = true, .columns = 100, .brief = true};

static struct hec_buf empty(void) {
    struct hec_buf text;
    hec_buf_init(&text, 16u << 20);
    return text;
}

/* In the order of the runs; a run without a view has an empty one. */
static void add_runs(json_t *page, const struct hec_summary *runs, size_t count) {
    json_t *reports = json_object_get(page, "reports"), *views = json_object_get(page, "views");
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(reports, hec_report_root(&runs[i]));
        json_array_append_new(views, runs[i].view ? hec_view_root(runs[i].view) : json_object());
    }
}

static json_t *page_of_runs(const char *kind) {
    json_t *page = hec_html_data(kind);
    json_object_set_new(page, "reports", json_array());
    json_object_set_new(page, "views", json_array());
    return page;
}

/* With the text that is there, unless making it failed. Takes page and text away from the caller. */
static int print(json_t *page, const char *title, int err, struct hec_buf *text, struct hec_buf *out) {
    if (err)
        json_decref(page);
    else
        err = hec_html_page(page, title, hec_buf_text(text), false, out);
    hec_buf_free(text);
    return err;
}

int hec_html_report(const struct hec_summary *summaries, size_t count, struct hec_buf *out) {
    char title[512] = "hec report";
    struct hec_buf text = empty();
    json_t *page = page_of_runs("report");
    int err = HEC_OK;
    if (count == 1)
        snprintf(title, sizeof title, "%.400s - hec report", summaries[0].command);
    for (size_t i = 0; i < count && !err; i++)
        err = hec_report_terminal(&summaries[i], &plain, &text);
    add_runs(page, summaries, count);
    return print(page, title, err, &text, out);
}

int hec_html_compare(const struct hec_versus *versus, struct hec_buf *out) {
    struct hec_buf text = empty();
    json_t *page = page_of_runs("compare");
    for (int i = 0; i < 2; i++)
        add_runs(page, versus->side[i].runs, (size_t)versus->side[i].count);
    json_object_set_new(page, "compare", hec_versus_root(versus));
    return print(page, "hec compare", hec_versus_terminal(versus, &plain, &text), &text, out);
}

int hec_html_receipt(const struct hec_receipt *receipt, struct hec_buf *out) {
    struct hec_buf text = empty();
    json_t *page = hec_html_data("receipt");
    json_object_set_new(page, "receipt", hec_receipt_root(receipt));
    return print(page, "hec receipt", hec_receipt_terminal(receipt, &plain, &text), &text, out);
}

int hec_html_sweep(const struct hec_sweep_report *report, struct hec_buf *out) {
    struct hec_buf text = empty();
    json_t *page = hec_html_data("sweep");
    json_object_set_new(page, "sweep", hec_sweep_root(report));
    return print(page, "hec sweep", hec_sweep_terminal(report, &plain, &text), &text, out);
}
