/* A moment as files of the electric grid and people write it: 2026-11-30T22:00:00+00:00, 2026-11-30 22:00, ...Z. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Seconds since 1970 in UTC. *zoned: the text has Z or an offset; else it is taken as UTC. False: it is no moment of the years 1970 to
 * 2199. */
bool hec_time_text(const char *text, int64_t *seconds, bool *zoned);
