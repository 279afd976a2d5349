#include "report/export/exposition.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOTAL "_total"

static const char *const kinds[] = {
    [HEC_FAMILY_COUNTER] = "counter",
    [HEC_FAMILY_GAUGE] = "gauge",
    [HEC_FAMILY_INFO] = "info",
};

const char *hec_family_kind_name(enum hec_family_kind kind) {
    return kinds[kind];
}

void hec_exposition_begin(struct hec_exposition *page, struct hec_buf *out, enum hec_exposition_format format) {
    memset(page, 0, sizeof *page);
    page->out = out;
    page->format = format;
}

static void put_escaped(struct hec_buf *out, const char *text, bool quotes);

static void put_clean(struct hec_buf *out, const char *value) {
    char clean[HEC_EXPOSITION_VALUE_SIZE];
    hec_text_clean(clean, sizeof clean, value, strnlen(value, sizeof clean + 4), true);
    put_escaped(out, clean, true);
}

/* ---- OTLP: https://github.com/open-telemetry/opentelemetry-proto, by protobuf's rules for JSON ---- */

static void put_attributes(struct hec_buf *out, const struct hec_label *labels, size_t count) {
    const char *comma = "";
    hec_buf_puts(out, "\"attributes\":[");
    for (size_t i = 0; i < count; i++) {
        if (!labels[i].value || !*labels[i].value)
            continue;
        hec_buf_printf(out, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":\"", comma, labels[i].name);
        put_clean(out, labels[i].value);
        hec_buf_puts(out, "\"}}");
        comma = ",";
    }
    hec_buf_puts(out, "]");
}

void hec_exposition_begin_otlp(struct hec_exposition *page, struct hec_buf *out, const struct hec_label *resource,
                               size_t count, int64_t time_ns) {
    hec_exposition_begin(page, out, HEC_EXPOSITION_OTLP);
    page->time_ns = time_ns;
    hec_buf_puts(out, "{\"resourceMetrics\":[{\"resource\":{");
    put_attributes(out, resource, count);
    hec_buf_puts(out,
                 "},\"scopeMetrics\":[{\"scope\":{\"name\":\"hec\",\"version\":\"" HEC_VERSION "\"},\"metrics\":[");
}

/* OTLP names units as UCUM does. */
static const char *ucum(const char *unit) {
    static const char *const units[][2] = {
        {"joules", "J"}, {"seconds", "s"}, {"watts", "W"}, {"bytes", "By"}, {"ratio", "1"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i][0]) == 0)
            return units[i][1];
    return "";
}

static void close_otlp(struct hec_exposition *page) {
    if (page->format == HEC_EXPOSITION_OTLP && page->described)
        hec_buf_puts(page->out, "]}}");
    page->any |= page->described;
    page->described = false;
}

static void describe_otlp(struct hec_exposition *page) {
    hec_buf_printf(page->out, "%s{\"name\":\"%s\",\"description\":\"", page->any ? ",\n" : "\n", page->name);
    put_escaped(page->out, page->help, true);
    hec_buf_printf(page->out, "\",\"unit\":\"%s\",%s\"dataPoints\":[", ucum(page->unit),
                   page->kind == HEC_FAMILY_COUNTER ? "\"sum\":{\"aggregationTemporality\":2,\"isMonotonic\":true,"
                                                    : "\"gauge\":{");
}

/* ---- text ---- */

void hec_exposition_family(struct hec_exposition *page, const char *name, enum hec_family_kind kind, const char *unit,
                           const char *help) {
    close_otlp(page);
    page->name = name;
    page->kind = kind;
    page->unit = unit ? unit : "";
    page->help = help;
    page->described = false;
}

/* Length of name without `suffix`; all of it where it does not end so. */
static size_t without(const char *name, size_t length, const char *suffix) {
    size_t end = strlen(suffix);
    return length > end && memcmp(name + length - end, suffix, end) == 0 ? length - end : length;
}

/* Both formats escape the same three characters; the help of the text format keeps its quotes. */
static void put_escaped(struct hec_buf *out, const char *text, bool quotes) {
    const char *special = quotes ? "\\\"\n" : "\\\n";
    for (;;) {
        size_t plain = strcspn(text, special);
        hec_buf_add(out, text, plain);
        text += plain;
        if (!*text)
            return;
        hec_buf_add(out, (char[]){'\\', *text == '\n' ? 'n' : *text}, 2);
        text++;
    }
}

/* The family as its header names it; OpenMetrics leaves out what a kind adds to the samples. */
static void describe_text(struct hec_exposition *page) {
    bool open = page->format == HEC_EXPOSITION_OPENMETRICS;
    size_t all = strlen(page->name), length = all, bare;
    const char *type = page->kind == HEC_FAMILY_INFO ? "gauge" : kinds[page->kind];
    if (open && page->kind == HEC_FAMILY_COUNTER) {
        length = without(page->name, all, TOTAL);
        type = length < all ? "counter" : "unknown";
    } else if (open && page->kind == HEC_FAMILY_INFO) {
        length = without(page->name, all, "_info");
        type = length < all ? "info" : "gauge";
    }
    hec_buf_printf(page->out, "# HELP %.*s ", (int)length, page->name);
    put_escaped(page->out, page->help, open);
    hec_buf_printf(page->out, "\n# TYPE %.*s %s\n", (int)length, page->name, type);
    bare = without(page->name, length, page->unit);
    if (open && bare < length && page->name[bare - 1] == '_')
        hec_buf_printf(page->out, "# UNIT %.*s %s\n", (int)length, page->name, page->unit);
}

static void put_labels(struct hec_buf *out, const struct hec_label *labels, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const char *value = labels[i].value;
        if (!value || !*value)
            continue;
        hec_buf_puts(out, any ? "," : "{");
        hec_buf_puts(out, labels[i].name);
        hec_buf_puts(out, "=\"");
        put_clean(out, value);
        hec_buf_puts(out, "\"");
        any = true;
    }
    if (any)
        hec_buf_puts(out, "}");
}

/* The shortest text that reads back as the value. Most are whole thousandths, for which that is known without trying: the
 * quotient is the value. */
static void put_value(struct hec_buf *out, double value) {
    char text[40];
    double thousandths = round(value * 1000);
    if (fabs(thousandths) < 0x1p53 && thousandths / 1000 == value) {
        long long n = llabs((long long)thousandths);
        int length = snprintf(text, sizeof text, "%s%lld.%03lld", thousandths < 0 ? "-" : "", n / 1000, n % 1000);
        while (text[length - 1] == '0')
            length--;
        hec_buf_add(out, text, (size_t)(text[length - 1] == '.' ? length - 1 : length));
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    hec_buf_puts(out, text);
}

static void sample_otlp(struct hec_exposition *page, const struct hec_label *labels, size_t count, double value) {
    if (!page->described)
        describe_otlp(page);
    hec_buf_puts(page->out, page->described ? ",{" : "{");
    put_attributes(page->out, labels, count);
    hec_buf_printf(page->out, ",\"timeUnixNano\":\"%" PRId64 "\",\"asDouble\":", page->time_ns);
    put_value(page->out, value);
    hec_buf_puts(page->out, "}");
}

static void sample_text(struct hec_exposition *page, const struct hec_label *labels, size_t count, double value) {
    if (!page->described)
        describe_text(page);
    hec_buf_puts(page->out, page->name);
    put_labels(page->out, labels, count);
    hec_buf_puts(page->out, " ");
    put_value(page->out, value);
    hec_buf_puts(page->out, "\n");
}

void hec_exposition_sample(struct hec_exposition *page, const struct hec_label *labels, size_t count, double value) {
    if (!isfinite(value) || (page->kind == HEC_FAMILY_COUNTER && value < 0))
        return;
    if (page->format == HEC_EXPOSITION_OTLP)
        sample_otlp(page, labels, count, value);
    else
        sample_text(page, labels, count, value);
    page->described = true;
}

void hec_exposition_end(struct hec_exposition *page) {
    if (page->format == HEC_EXPOSITION_OPENMETRICS) {
        hec_buf_puts(page->out, "# EOF\n");
    } else if (page->format == HEC_EXPOSITION_OTLP) {
        close_otlp(page);
        hec_buf_puts(page->out, "]}]}]}\n");
    }
}
