#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static enum hec_log_level threshold = HEC_LOG_WARNING;

void hec_log_set_level(enum hec_log_level level) {
    threshold = level;
}

void hec_log(enum hec_log_level level, const char *format, ...) {
    if (level > threshold)
        return;
    static const char *const prefix[] = {"hec: ", "hec: warning: ", "hec: ", "hec: debug: "};
    char line[1024];
    int length = snprintf(line, sizeof line, "%s", prefix[level]);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + length, sizeof line - (size_t)length - 1, format, args);
    va_end(args);
    length += more < 0 ? 0 : more;
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    /* one write: lines of several threads and of the command stay whole */
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}
