/* hec export --csv: one row an activity or a reading. RFC 4180: CRLF, fields with commas, quotes or line ends in quotes. */
#include "report/export/export.h"

#include "base/buf.h"
#include "report/export/names.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES 65536

/* Missing is an empty field. `amount` is bytes (copy, memset, api calls for them and for memory), nodes (graph), launches
 * (burst), units (step), a number (value), records (window) or what was read (reading). `device` of a call is the one that
 * was current. */
static const char header[] =
    "kind,start_ns,duration_ns,device,stream,pid,rank,tid,name,launch_start_ns,launch_end_ns,amount,unit,from,to,detail,"
    "grid_x,grid_y,grid_z,block_x,block_y,block_z,registers_per_thread,static_shared_bytes,dynamic_shared_bytes\r\n";

struct csv {
    struct hec_export_tables tables;
    struct hec_device devices[HEC_DEVICE_MAX];
    int device_count;
    struct hec_buf out;
    hec_export_write write;
    void *context;
};

static int flush(struct csv *csv, size_t above) {
    int err = hec_buf_error(&csv->out);
    if (!err && csv->out.length > above) {
        err = csv->write(csv->context, csv->out.data, csv->out.length);
        hec_buf_clear(&csv->out);
    }
    return err;
}

/* Bytes of a blank or a quotation mark. */
static size_t blank_at(const char *text) {
    static const char *const blanks[] = {" ",      "\"",     "'",      "\n",     "\u00a0", "\u1680", "\u2000",
                                         "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
                                         "\u2008", "\u2009", "\u200a", "\u202f", "\u205f", "\u3000"};
    for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++)
        if (strncmp(text, blanks[i], strlen(blanks[i])) == 0)
            return strlen(blanks[i]);
    return 0;
}

/* Spreadsheets take what begins so, after what they leave out, for a formula; some the wide forms as well. */
static bool is_formula(const char *text) {
    static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20", "\u2212"};
    const char *begin = text;
    for (size_t blank = 1; blank > 0; begin += blank)
        blank = blank_at(begin);
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (strncmp(begin, wide[i], strlen(wide[i])) == 0)
            return true;
    return *begin && strchr("=+-@\t\r", *begin);
}

/* Names come from programs and traces of others. What begins like a formula gets an apostrophe, so that no spreadsheet computes it. */
static void put_text(struct hec_buf *out, const char *text) {
    bool formula = is_formula(text);
    if (!formula && !strpbrk(text, ",\"\r\n")) {
        hec_buf_puts(out, text);
        return;
    }
    hec_buf_puts(out, formula ? "\"'" : "\"");
    for (const char *c = text; *c; c++)
        hec_buf_add(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    hec_buf_puts(out, "\"");
}

static void put_known(struct hec_buf *out, int64_t value, bool known) {
    if (known)
        hec_buf_printf(out, "%" PRId64 ",", value);
    else
        hec_buf_puts(out, ",");
}

/* Bytes of a call are 0 where they are not known (imports). */
static bool has_bytes(const struct hec_activity *a) {
    return a->kind == HEC_ACTIVITY_COPY || a->kind == HEC_ACTIVITY_MEMSET ||
           (a->kind == HEC_ACTIVITY_API && a->amount > 0 &&
            (a->detail == HEC_API_COPY || a->detail == HEC_API_MEMSET || a->detail == HEC_API_ALLOC));
}

static const char *unit_of(const struct csv *csv, const struct hec_activity *a) {
    if (has_bytes(a))
        return "bytes";
    switch (a->kind) {
    case HEC_ACTIVITY_GRAPH:
        return "nodes";
    case HEC_ACTIVITY_BURST:
        return "launch";
    case HEC_ACTIVITY_WINDOW:
        return "records";
    case HEC_ACTIVITY_STEP:
        return hec_timeline_name(&csv->tables.timeline, a->name);
    case HEC_ACTIVITY_VALUE:
        return "1";
    default:
        return NULL;
    }
}

static const char *detail_of(const struct csv *csv, const struct hec_activity *a) {
    switch (a->kind) {
    case HEC_ACTIVITY_SYNC:
        return hec_sync_type_name((enum hec_sync_type)a->detail);
    case HEC_ACTIVITY_API:
        return hec_api_class_name((enum hec_api_class)a->detail);
    case HEC_ACTIVITY_STEP:
        return hec_step_source_name((enum hec_step_source)a->detail);
    case HEC_ACTIVITY_BURST:
        return a->name ? hec_timeline_name(&csv->tables.timeline, a->name) : "";
    default:
        return "";
    }
}

static void put_amount(struct csv *csv, const struct hec_activity *a) {
    const char *unit = unit_of(csv, a);
    bool call = a->kind == HEC_ACTIVITY_API && a->detail == HEC_API_COPY && (a->from || a->to);
    bool copy = a->kind == HEC_ACTIVITY_COPY || call;
    if (unit && isfinite(a->amount))
        hec_buf_printf(&csv->out, "%.17g,", a->amount);
    else
        hec_buf_puts(&csv->out, ",");
    put_text(&csv->out, unit ? unit : "");
    hec_buf_printf(&csv->out, ",%s,%s,", copy ? hec_memory_kind_name((enum hec_memory_kind)a->from) : "",
                   copy || a->kind == HEC_ACTIVITY_MEMSET ? hec_memory_kind_name((enum hec_memory_kind)a->to) : "");
    put_text(&csv->out, detail_of(csv, a));
    hec_buf_puts(&csv->out, ",");
}

static void put_configuration(struct csv *csv, const struct hec_activity *a) {
    const struct hec_timeline_tables *t = &csv->tables.timeline;
    const struct hec_kernel *k =
        a->kind == HEC_ACTIVITY_KERNEL && a->name && a->name < t->kernel_count ? &t->kernels[a->name] : NULL;
    if (!k || !k->id) {
        hec_buf_puts(&csv->out, ",,,,,,,,\r\n");
        return;
    }
    for (int i = 0; i < 3; i++)
        put_known(&csv->out, k->grid[i], k->grid[i] >= 0);
    for (int i = 0; i < 3; i++)
        put_known(&csv->out, k->block[i], k->block[i] >= 0);
    put_known(&csv->out, k->registers, k->registers >= 0);
    put_known(&csv->out, k->static_shared_bytes, k->static_shared_bytes >= 0);
    if (k->dynamic_shared_bytes >= 0)
        hec_buf_printf(&csv->out, "%" PRId64, k->dynamic_shared_bytes);
    hec_buf_puts(&csv->out, "\r\n");
}

static void put_row(struct csv *csv, const struct hec_activity *a) {
    const struct hec_track *track = hec_timeline_track(&csv->tables.timeline, a->track);
    struct hec_buf *out = &csv->out;
    char name[2048];
    bool stream = track && track->kind == HEC_TRACK_STREAM, thread = track && track->kind == HEC_TRACK_THREAD;
    hec_buf_printf(out, "%s,%" PRId64 ",%" PRId64 ",", hec_activity_kind_name((enum hec_activity_kind)a->kind),
                   a->start_ns, a->end_ns - a->start_ns);
    int device = stream ? track->device : a->device - 1;
    put_known(out, device, device >= 0);
    put_known(out, stream ? track->stream : 0, stream);
    put_known(out, track ? track->pid : 0, track != NULL);
    put_known(out, track ? track->rank : 0, track && track->rank >= 0);
    put_known(out, thread ? track->stream : 0, thread);
    put_text(out, hec_export_name(&csv->tables, a, name, sizeof name));
    hec_buf_puts(out, ",");
    bool launched = (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) != 0;
    put_known(out, a->launch_ns, launched && a->launch_ns != HEC_TIME_UNKNOWN);
    put_known(out, a->launch_end_ns, launched && a->launch_end_ns != HEC_TIME_UNKNOWN);
    put_amount(csv, a);
    put_configuration(csv, a);
}

static int take_activities(void *to, const struct hec_activity *a, size_t count) {
    struct csv *csv = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        if (a[i].kind >= HEC_ACTIVITY_KIND_COUNT || !hec_timeline_plausible(&a[i]))
            continue;
        put_row(csv, &a[i]);
        err = flush(csv, FLUSH_BYTES);
    }
    return err;
}

static int take_device(void *to, const struct hec_device *device) {
    struct csv *csv = to;
    if (csv->device_count < HEC_DEVICE_MAX)
        csv->devices[csv->device_count++] = *device;
    return 0;
}

/* A reading that is missing has a row without an amount. */
static int take_reading(void *to, const struct hec_export_reading *r) {
    struct csv *csv = to;
    struct hec_buf *out = &csv->out;
    hec_buf_printf(out, "reading,%" PRId64 ",", r->start_ns);
    put_known(out, r->end_ns - r->start_ns, r->end_ns > r->start_ns);
    put_known(out, r->device, r->device >= 0);
    hec_buf_printf(out, ",,,,%s,,,", r->counter->name);
    if (isfinite(r->value))
        hec_buf_printf(out, "%.10g", r->value);
    hec_buf_printf(out, ",%s,,,,,,,,,,,,\r\n", r->counter->unit);
    return flush(csv, FLUSH_BYTES);
}

int hec_export_csv(const struct hec_summary_input *input, hec_export_write write, void *context, struct hec_why *why) {
    const struct hec_timeline_input *timeline = &input->timeline;
    struct csv *csv = calloc(1, sizeof *csv);
    if (!csv)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    csv->write = write;
    csv->context = context;
    int err = hec_export_tables_load(timeline, &csv->tables, why);
    hec_buf_init(&csv->out, 16 * FLUSH_BYTES);
    hec_buf_puts(&csv->out, header);
    if (!err && timeline->activities)
        err = timeline->activities(timeline->context, HEC_ACTIVITY_ALL, take_activities, csv, why);
    if ((!err || err == HEC_ERR_NOTFOUND) && input->devices)
        err = input->devices(input->context, take_device, csv, why);
    if (!err || err == HEC_ERR_NOTFOUND)
        err = hec_export_counters(input, csv->devices, csv->device_count, take_reading, csv, why);
    if (!err)
        err = flush(csv, 0);
    hec_buf_free(&csv->out);
    hec_export_tables_free(&csv->tables);
    free(csv);
    return err;
}
