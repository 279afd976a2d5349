/* hec export: a run's timeline for other tools. */
#include "base/log.h"
#include "base/text.h"
#include "cli/load.h"
#include "cli/output.h"
#include "report/export/export.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct format {
    enum hec_option option;
    const char *suffix;
    bool binary;
    int (*write)(const struct hec_summary_input *input, hec_export_write write, void *context, struct hec_why *why);
} formats[] = {
    {HEC_OPT_PERFETTO, ".perfetto-trace", true, hec_export_perfetto},
    {HEC_OPT_CSV, ".csv", false, hec_export_csv},
};

struct session {
    struct hec_args args;
    const struct format *format;
    char path[PATH_MAX]; /* "": standard output */
    bool reported;       /* the error message is out */
    struct hec_output output;
    struct hec_progress progress;
    double megabytes;
};

static int choose_format(struct session *s) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (!hec_args_has(&s->args, formats[i].option))
            continue;
        if (s->format) {
            hec_error("export: one of --perfetto and --csv, not both");
            return HEC_ERR_USAGE;
        }
        s->format = &formats[i];
    }
    if (!s->format)
        hec_error("export: say --perfetto or --csv");
    return s->format ? HEC_OK : HEC_ERR_USAGE;
}

/* RUN.hec becomes RUN.csv. */
static int choose_path(struct session *s) {
    const char *from = s->args.rest[0];
    size_t length = strlen(from), suffix = strlen(".hec");
    struct hec_why why;
    int err = hec_output_path(&s->args, true, s->path, &why);
    if (err < 0)
        hec_error("%s", why.text);
    if (strcmp(s->path, "-") == 0) {
        s->path[0] = '\0';
    } else if (!s->path[0] && isatty(STDOUT_FILENO) == 1) {
        if (length > suffix && strcmp(from + length - suffix, ".hec") == 0)
            length -= suffix;
        snprintf(s->path, sizeof s->path, "%.*s%s", (int)length, from, s->format->suffix);
    }
    return err;
}

static int parse(struct session *s) {
    if (s->args.rest_count != 1)
        return hec_args_wrong(&s->args, "one run file, please");
    int err;
    if ((err = choose_format(s)) < 0 || (err = choose_path(s)) < 0)
        return err;
    if (!s->path[0] && s->format->binary && isatty(STDOUT_FILENO) == 1) {
        hec_error("export: the trace is binary and is not written to a terminal; give -o FILE");
        return HEC_ERR_USAGE;
    }
    return HEC_OK;
}

static int open_output(struct session *s, struct hec_why *why) {
    struct stat there, run;
    bool force = hec_args_has(&s->args, HEC_OPT_FORCE);
    if (!s->path[0])
        return HEC_OK;
    if (force && stat(s->path, &there) == 0 && stat(s->args.rest[0], &run) == 0 && run.st_dev == there.st_dev &&
        run.st_ino == there.st_ino)
        return hec_fail(why, HEC_ERR_USAGE, "%s is the run itself, so it is not overwritten", s->path);
    return hec_output_open(&s->output, s->path, force, why);
}

static int write_bytes(void *context, const void *bytes, size_t count) {
    struct session *s = context;
    char text[64];
    s->megabytes += (double)count / 1e6;
    snprintf(text, sizeof text, "exporting: %.1f MB", s->megabytes);
    hec_progress_show(&s->progress, text, NAN);
    return fwrite(bytes, 1, count, s->output.file) == count ? HEC_OK : HEC_ERR_IO;
}

static int write_export(void *context, const struct hec_summary_input *input, struct hec_why *why) {
    struct session *s = context;
    int err = s->format->write(input, write_bytes, s, why);
    if (err == HEC_ERR_IO || (err >= 0 && fflush(s->output.file) != 0)) {
        s->reported = !s->path[0];
        err = s->reported ? hec_print_failed() : hec_fail(why, HEC_ERR_IO, "%s: %s", s->path, strerror(errno));
    }
    const char *left_out = input->left_out(input->context);
    if (err >= 0 && left_out)
        hec_warn("a part of %s is damaged and left out: %s", s->args.rest[0], left_out);
    return err;
}

static int export_run(struct session *s, struct hec_why *why) {
    s->output.file = stdout;
    int err = open_output(s, why);
    if (err < 0)
        return err;
    hec_progress_begin(&s->progress);
    err = hec_load_input(s->args.rest[0], &s->args, write_export, s, why);
    hec_progress_end(&s->progress);
    if (!s->path[0])
        return err;
    int closed = hec_output_close(&s->output, err >= 0, err >= 0 ? why : NULL);
    return err < 0 ? err : closed;
}

int hec_verb_export(struct hec_args *args) {
    static struct session s;
    s.args = *args;
    int err = parse(&s);
    if (err < 0)
        return err;
    struct hec_why why = {""};
    err = export_run(&s, &why);
    if (err < 0 && !s.reported)
        hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
    else if (err >= 0 && s.path[0] && !hec_args_value(&s.args, HEC_OPT_OUTPUT))
        hec_text_print(stdout, s.path);
    return err;
}
