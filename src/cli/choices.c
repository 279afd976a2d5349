/* The options that several verbs share: price, style, units. */
#include "base/log.h"
#include "cli/load.h"
#include "model/trace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_READABLE 120 /* longer lines of text are hard to read; COLUMNS asks for them */

/* The option, else the variable. Returns 1 when either gave a value. */
static int chosen(const struct hec_args *args, enum hec_option option, const char *variable, double *value) {
    const char *text = getenv(variable);
    if (hec_args_has(args, option)) {
        int err = hec_args_number(args, option, 0, 1e6, value);
        return err < 0 ? err : 1;
    }
    if (!text || !*text)
        return 0;
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number) || number < 0) {
        hec_error("%s needs a number, not \"%s\"", variable, text);
        return HEC_ERR_USAGE;
    }
    *value = number;
    return 1;
}

int hec_load_price(const struct hec_args *args, struct hec_price *price) {
    *price = hec_price_default();
    int dollars = chosen(args, HEC_OPT_PRICE, "HEC_PRICE", &price->dollars_per_kwh);
    int carbon = chosen(args, HEC_OPT_CARBON, "HEC_CARBON", &price->grams_co2_per_kwh);
    int hour = chosen(args, HEC_OPT_GPU_HOUR, "HEC_GPU_HOUR", &price->dollars_per_gpu_hour);
    if (dollars < 0 || carbon < 0 || hour < 0)
        return HEC_ERR_USAGE;
    price->dollars_default = dollars == 0;
    price->carbon_default = carbon == 0;
    return HEC_OK;
}

int hec_load_printed(const struct hec_args *args, const char *verb, struct hec_printed_unit list[HEC_PRINTED_MAX],
                     int *count) {
    struct hec_why why;
    *count = 0;
    for (int i = 0; i < args->given_count; i++) {
        if (args->given[i].option != HEC_OPT_UNIT)
            continue;
        if (*count == HEC_PRINTED_MAX) {
            hec_error("%s: more than %d --unit", verb, HEC_PRINTED_MAX);
            return HEC_ERR_USAGE;
        }
        int err = hec_printed_parse(args->given[i].value, &list[*count], &why);
        if (err < 0) {
            hec_error("%s: --unit %s: %s", verb, args->given[i].value, why.text);
            return err;
        }
        ++*count;
    }
    return HEC_OK;
}

int hec_load_unit(const char *text, char name[64], double *count) {
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    const char *number = equals ? equals + 1 : text;
    char *end;
    errno = 0;
    double value = strtod(number, &end);
    if ((equals && (length == 0 || length > 63)) || end == number || *end || errno || !(value > 0 && value < 1e18)) {
        hec_error("--units needs N or NAME=N with N above 0, not \"%s\"", text);
        return HEC_ERR_USAGE;
    }
    snprintf(name, 64, "%.*s", equals ? (int)length : 4, equals ? text : "unit");
    *count = value;
    return HEC_OK;
}

static bool speaks_utf8(void) {
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

int hec_print_failed(void) {
    int reason = errno;
    hec_error("standard output cannot be written%s%s", reason ? ": " : "", reason ? strerror(reason) : "");
    __fpurge(stdout); /* what is left is not tried again, nor reported again */
    clearerr(stdout);
    return HEC_ERR_IO;
}

int hec_print(const struct hec_buf *text) {
    return fputs(hec_buf_text(text), stdout) < 0 || fflush(stdout) != 0 ? hec_print_failed() : HEC_OK;
}

int hec_print_made(struct hec_buf *text, int err) {
    if (err == HEC_OK)
        err = hec_print(text);
    hec_buf_free(text);
    return err;
}

int hec_print_schema(int (*schema)(struct hec_buf *out)) {
    struct hec_buf out;
    hec_buf_init(&out, 1u << 20);
    return hec_print_made(&out, schema(&out));
}

int hec_columns(int fd) {
    const char *text = getenv("COLUMNS");
    struct winsize size;
    int columns = text && *text && strspn(text, "0123456789") == strlen(text) ? (int)strtol(text, NULL, 10) : 0;
    if (columns > 0)
        return columns;
    if (isatty(fd) != 1 || ioctl(fd, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col < COLUMNS_READABLE ? size.ws_col : COLUMNS_READABLE;
}

int hec_load_style(const struct hec_args *args, int fd, struct hec_report_style *style) {
    const char *when = hec_args_value(args, HEC_OPT_COLOR);
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool terminal = isatty(fd) == 1;
    *style = (struct hec_report_style){.utf8 = speaks_utf8()};
    if (!when || strcmp(when, "auto") == 0)
        style->color = terminal && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    else if (strcmp(when, "always") == 0)
        style->color = true;
    else if (strcmp(when, "never") != 0) {
        hec_error("--color needs auto, always or never, not \"%s\"", when);
        return HEC_ERR_USAGE;
    }
    style->columns = hec_columns(fd);
    return HEC_OK;
}

int hec_load_tracing(const struct hec_args *args, struct hec_session_options *options) {
    const char *mode = hec_args_value(args, HEC_OPT_TRACE), *hooks = hec_args_value(args, HEC_OPT_HOOKS);
    const char *wanted = getenv("HEC_HOOKS");
    int found = mode ? hec_trace_mode_find(mode) : (int)options->trace;
    if (found < 0) {
        hec_error("--trace needs auto, full, graph or off, not \"%s\"", mode);
        return HEC_ERR_USAGE;
    }
    if (hooks && strcmp(hooks, "on") != 0 && strcmp(hooks, "off") != 0) {
        hec_error("--hooks needs on or off, not \"%s\"", hooks);
        return HEC_ERR_USAGE;
    }
    options->trace = (enum hec_trace_mode)found;
    options->hooks = hooks ? strcmp(hooks, "on") == 0 : !wanted || strcmp(wanted, "0") != 0;
    return hec_args_number(args, HEC_OPT_TRACE_MEMORY, 33, 65536, &options->trace_memory_mb);
}
