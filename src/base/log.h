/* Messages for a person, on standard error, each one line that starts with "hec: ". */
#pragma once

#include <stdbool.h>

enum hec_log_level { HEC_LOG_ERROR, HEC_LOG_WARNING, HEC_LOG_INFO, HEC_LOG_DEBUG };

void hec_log_set_level(enum hec_log_level level); /* default: WARNING */
void hec_log(enum hec_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool hec_log_has_error(void); /* whether one was said so far */

#define hec_error(...) hec_log(HEC_LOG_ERROR, __VA_ARGS__)
/* What was asked for is there: shown at any level. */
#define hec_say(...) hec_log(HEC_LOG_ERROR, __VA_ARGS__)
#define hec_warn(...) hec_log(HEC_LOG_WARNING, __VA_ARGS__)
#define hec_info(...) hec_log(HEC_LOG_INFO, __VA_ARGS__)
#define hec_debug(...) hec_log(HEC_LOG_DEBUG, __VA_ARGS__)
