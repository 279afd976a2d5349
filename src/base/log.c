#include "base/log.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum hec_log_level threshold = HEC_LOG_WARNING;
static atomic_bool has_error;

void hec_log_set_level(enum hec_log_level level) {
    threshold = level;
}

bool hec_log_has_error(void) {
    return has_error;
}

void hec_log(enum hec_log_level level, const char *format, ...) {
    if (level > threshold)
        return;
    if (level == HEC_LOG_ERROR)
        has_error = true;
    static const char *const prefix[] = {"hec: ", "hec: warning: ", "hec: ", "hec: debug: "};
    char raw[1024], text[1024], line[1100];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    /* file names and what a damaged file holds stand in messages */
    hec_text_clean(text, sizeof text, raw, strlen(raw), true);
    int length = snprintf(line, sizeof line, "%s%s\n", prefix[level], text);
    /* one write: lines of several threads and of the command stay whole */
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}
