/* hec import: traces of other tools become a run file. */
#include "base/clock.h"
#include "base/log.h"
#include "base/scratch.h"
#include "cli/load.h"
#include "cli/output.h"
#include "launch/paths.h"
#include "store/create.h"
#include "store/import/import.h"
#include "store/writer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The writer keeps about two million activities in memory; importing brings some millions a second. */
#define FLUSH_NS (100 * HEC_NS_PER_MS)
#define NAMES_MAX 1000

struct session {
    struct hec_args args;
    struct hec_report_style style;
    char path[PATH_MAX], temporary[PATH_MAX];
    struct hec_scratch folder; /* of temporary */
    struct hec_writer *writer;
    struct hec_import *import;
    struct hec_progress progress;
    int64_t flushed_ns;
    int done; /* files, over both passes */
};

static int parse(struct session *s) {
    if (s->args.rest_count == 0)
        return hec_args_wrong(&s->args, "no file");
    int err = hec_load_style(&s->args, STDOUT_FILENO, &s->style);
    if (err < 0)
        return err;
    struct hec_why why;
    err = hec_output_path(&s->args, false, s->path, &why);
    if (err < 0)
        hec_error("%s", why.text);
    else if (!s->path[0])
        hec_path_import_file(s->args.rest[0], s->path);
    return err;
}

static int progress(void *context, const char *path, double share) {
    struct session *s = context;
    hec_progress_show(&s->progress, path, (s->done + share) / (2.0 * s->args.rest_count));
    int64_t now_ns = hec_clock_mono_ns();
    if (now_ns - s->flushed_ns < FLUSH_NS)
        return HEC_OK;
    s->flushed_ns = now_ns;
    hec_writer_flush(s->writer, NULL); /* what cannot be written is kept and tried again; closing says so */
    return HEC_OK;
}

static int read_files(struct session *s, struct hec_why *why) {
    int err = hec_import_new(hec_writer_sink(s->writer), progress, s, &s->import, why);
    for (int i = 0; i < s->args.rest_count && err >= 0; i++, s->done++)
        err = hec_import_scan(s->import, s->args.rest[i], why);
    for (int i = 0; i < s->args.rest_count && err >= 0; i++, s->done++)
        err = hec_import_read(s->import, hec_import_path(s->import, i), why);
    if (err < 0)
        return err;
    const struct hec_import_stats *stats = hec_import_stats(s->import);
    if (stats->kept == 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s holds no events of a timeline: there is nothing to import",
                        s->args.rest[0]);
    hec_info("%lld events read, %lld kept, %lld of kinds that are not used, %lld without time or place",
             (long long)stats->events, (long long)stats->kept, (long long)stats->skipped, (long long)stats->bad);
    return HEC_OK;
}

static int write_file(struct session *s, struct hec_why *why) {
    int64_t lost = 0;
    int err = hec_writer_create(s->temporary, false, 0, &s->writer, why);
    if (err < 0)
        return err;
    hec_progress_begin(&s->progress);
    err = read_files(s, why);
    hec_progress_end(&s->progress);
    hec_import_free(s->import);
    int closed = hec_writer_close(s->writer, &lost, err < 0 ? NULL : why);
    if (err < 0)
        return err;
    if (closed >= 0 && lost > 0)
        return hec_fail(why, HEC_ERR_LIMIT, "%lld values did not fit the run file", (long long)lost);
    return closed;
}

/* A name that was chosen here may be taken meanwhile, by another import of the same trace: then the next one. */
static int put_in_place(struct session *s, bool overwrite, struct hec_why *why) {
    int err = hec_create_place(s->temporary, s->path, overwrite, why);
    for (int i = 0; i < NAMES_MAX && err == HEC_ERR_EXISTS && !hec_args_has(&s->args, HEC_OPT_OUTPUT); i++) {
        hec_path_import_file(s->args.rest[0], s->path);
        err = hec_create_place(s->temporary, s->path, overwrite, why);
    }
    return err;
}

/* An earlier file at the path is replaced by a whole one, or not at all. */
static int import_all(struct session *s, struct hec_why *why) {
    bool overwrite = hec_args_has(&s->args, HEC_OPT_FORCE);
    int err = hec_create_check(s->path, overwrite, why);
    if (err == HEC_OK)
        err = hec_scratch_make_beside(&s->folder, s->path, why);
    if (err < 0)
        return err;
    if (snprintf(s->temporary, sizeof s->temporary, "%s/run", s->folder.path) >= (int)sizeof s->temporary)
        err = hec_fail(why, HEC_ERR_USAGE, "%s: the path is too long", s->path);
    if (err >= 0)
        err = write_file(s, why);
    if (err >= 0)
        err = put_in_place(s, overwrite, why);
    hec_scratch_remove(&s->folder);
    return err;
}

static int print_report(struct session *s) {
    struct hec_why why = {""};
    struct hec_summary summary = {0};
    struct hec_price price = hec_price_default();
    struct hec_buf text;
    int err = hec_load_summary(s->path, &s->args, &price, 0, &summary, &why);
    if (err < 0) {
        hec_error("the run cannot be reported: %s", why.text[0] ? why.text : hec_err_text(err));
        return err;
    }
    hec_buf_init(&text, 64u << 20);
    s->style.brief = true;
    if (hec_args_has(&s->args, HEC_OPT_JSON))
        err = hec_report_json(&summary, 1, &text);
    else
        err = hec_report_terminal(&summary, &s->style, &text);
    err = hec_print_made(&text, err);
    hec_summary_free(&summary);
    return err;
}

int hec_verb_import(struct hec_args *args) {
    static struct session s;
    s.args = *args;
    int err = parse(&s);
    if (err < 0)
        return err;
    struct hec_why why = {""};
    err = import_all(&s, &why);
    if (err < 0)
        hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
    else if (!hec_args_has(&s.args, HEC_OPT_QUIET))
        err = print_report(&s);
    return err;
}
