/* Names out of texts, for copies that are given away. */
#ifndef HEC_STORE_SCRUB_H
#define HEC_STORE_SCRUB_H

#include "base/buf.h"
#include "store/copy.h"

#define HEC_SCRUB_UUID_LENGTH 40 /* "GPU-" and 36 characters */
#define HEC_SCRUB_UUIDS_MAX 512

struct hec_scrubber {
    const struct hec_store_scrub *scrub;
    const char *hostname; /* "" or NULL: none */
    char (*uuids)[HEC_SCRUB_UUID_LENGTH + 1];
    int uuid_count;
};

/* Append text to out with everything taken out that scrub names. */
void hec_scrub_text(struct hec_scrubber *scrubber, const char *text, struct hec_buf *out);

/* The first word of a command line, without its folder. */
void hec_scrub_arguments(const char *command, struct hec_buf *out);

#endif
