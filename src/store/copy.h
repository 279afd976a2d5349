/* A run file again, compact, with names taken out and facts put in: what `hec gather` makes. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct hec_store_fact {
    const char *key, *value;
};

/* What to take out of meta values, device strings and texts of events. Names of processes, phases and units stay. */
struct hec_store_scrub {
    bool hostname;  /* the meta key hostname, wherever its value stands as a word: "host" */
    bool uuids;     /* GPU-... and MIG-...: numbered ones, the same for the same everywhere */
    bool paths;     /* absolute paths but those under /dev, /etc, /lib, /proc, /sys, /usr: their last part */
    bool arguments; /* the meta key command keeps its first word */
    char *(*withhold)(
        const char *text,
        int *count);         /* the command and texts of events without what looks like a secret, as a copy that is
                                                        freed, NULL: no memory; *count is increased for each. NULL: as they are */
    const char *const *drop; /* meta keys to leave out, NULL at the end; may be NULL */
    const struct hec_store_fact *facts; /* added to meta, in place of what is there */
    size_t fact_count;
};

/* Every row is read and checked as by the reader; nothing else of the source gets into the copy. Series are copied
 * exactly. The copy of a killed run stays one (no store_closed). to is created as by hec_writer_create, complete or not
 * at all. scrub may be NULL. On success why is empty, or says what was damaged and left out. */
int hec_store_copy(const char *from, const char *to, bool overwrite, const struct hec_store_scrub *scrub,
                   struct hec_why *why);

/* Names out of texts, for copies that are given away. */
#define HEC_SCRUB_UUID_LENGTH 40 /* "GPU-" and 36 characters */

struct hec_scrubber {
    const struct hec_store_scrub *scrub;
    const char *hostname; /* one, or several with commas between them; "" or NULL: none */
    char (*uuids)[HEC_SCRUB_UUID_LENGTH + 1];
    int uuid_count;
};

/* Append text to out with everything taken out that scrub names. */
void hec_scrub_text(struct hec_scrubber *scrubber, const char *text, struct hec_buf *out);
