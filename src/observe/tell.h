/* Events whose number is bounded: a fork bomb, or one that drops marks, must not fill the run file. */
#ifndef HEC_OBSERVE_TELL_H
#define HEC_OBSERVE_TELL_H

#include "model/run.h"

#include <stdarg.h>

/* Gives the sink an event of no device, the text cut at 255 bytes, while *left, which counts down, is not 0. The last one
 * is a note instead: further events of `of` ("marks") are left out. */
void hec_tell(const struct hec_sink *sink, int *left, const char *of, enum hec_event_kind kind, int64_t t_ns,
              const char *format, va_list args) __attribute__((format(printf, 6, 0)));

#endif
