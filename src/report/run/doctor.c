#include "report/run/doctor.h"

#include "base/error.h"
#include "report/format.h"
#include "report/json_print.h"
#include "report/page.h"

#include <string.h>

static void count_by_status(const struct hec_check_list *list, int counts[HEC_CHECK_STATUS_COUNT]) {
    memset(counts, 0, HEC_CHECK_STATUS_COUNT * sizeof *counts);
    for (int i = 0; i < list->count; i++)
        counts[list->items[i].status]++;
}

static json_t *clean_string(const char *from) {
    char clean[512];
    return json_string(hec_format_clean(clean, sizeof clean, from, true));
}

static json_t *text_or_null(const char *from) {
    return from[0] ? clean_string(from) : json_null();
}

static int print_json(const struct hec_check_list *list, struct hec_buf *out) {
    int counts[HEC_CHECK_STATUS_COUNT];
    json_t *root = json_object(), *checks = json_array();
    json_object_set_new(root, "schema", json_string(HEC_DOCTOR_SCHEMA));
    for (int i = 0; i < list->count; i++) {
        const struct hec_check *check = &list->items[i];
        json_t *row = json_object();
        json_object_set_new(row, "area", clean_string(check->area));
        json_object_set_new(row, "name", clean_string(check->name));
        json_object_set_new(row, "status", json_string(hec_check_status_name(check->status)));
        json_object_set_new(row, "finding", clean_string(check->finding));
        json_object_set_new(row, "remedy", text_or_null(check->remedy));
        json_object_set_new(row, "cost", text_or_null(check->cost));
        json_array_append_new(checks, row);
    }
    json_object_set_new(root, "checks", checks);
    count_by_status(list, counts);
    for (int s = 0; s < HEC_CHECK_STATUS_COUNT; s++)
        json_object_set_new(root, hec_check_status_name((enum hec_check_status)s), json_integer(counts[s]));
    json_object_set_new(root, "omitted", json_integer(list->omitted));
    return hec_json_print(root, out);
}

static void print_area(struct hec_page *page, const struct hec_check_list *list, const char *area) {
    static const enum hec_tone tones[HEC_CHECK_STATUS_COUNT] = {HEC_TONE_PLAIN, HEC_TONE_WARN, HEC_TONE_BAD};
    hec_page_row(page, 0, area, HEC_TONE_PLAIN, "%s", "");
    for (int i = 0; i < list->count; i++) {
        const struct hec_check *check = &list->items[i];
        if (strcmp(check->area, area) != 0)
            continue;
        hec_page_row(page, 2, hec_check_status_name(check->status), tones[check->status], "%s: %s", check->name,
                     check->finding);
        if (check->remedy[0])
            hec_page_row(page, 2, "", HEC_TONE_PLAIN, "to enable it: %s", check->remedy);
        if (check->cost[0])
            hec_page_row(page, 2, "", HEC_TONE_DIM, "cost: %s", check->cost);
    }
}

int hec_report_doctor(const struct hec_check_list *list, bool json, const struct hec_report_style *style,
                      struct hec_buf *out) {
    if (json)
        return print_json(list, out);
    struct hec_page page;
    int counts[HEC_CHECK_STATUS_COUNT];
    hec_page_init(&page, style, out);
    for (int i = 0; i < list->count; i++) {
        int first = 0;
        while (strcmp(list->items[first].area, list->items[i].area) != 0)
            first++;
        if (first == i) {
            print_area(&page, list, list->items[i].area);
            hec_page_blank(&page);
        }
    }
    count_by_status(list, counts);
    hec_page_row(&page, 0, "in all", HEC_TONE_BOLD, "%d ok, %d limited, %d missing", counts[HEC_CHECK_OK],
                 counts[HEC_CHECK_LIMITED], counts[HEC_CHECK_MISSING]);
    if (list->omitted > 0)
        hec_page_row(&page, 0, "", HEC_TONE_DIM, "%d more rows did not fit", list->omitted);
    return hec_buf_error(out);
}
