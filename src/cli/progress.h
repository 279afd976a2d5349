/* Progress on a terminal, for what takes longer than a second; silent anywhere else. */
#ifndef HEC_CLI_PROGRESS_H
#define HEC_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct hec_progress {
    int64_t begin_ns, shown_ns;
    bool terminal, shown;
};

/* Standard error decides, for that is where it is shown. */
void hec_progress_begin(struct hec_progress *progress);
/* what: what is being done; share: 0..1 of it all, NAN when nobody knows. Cheap enough to call often. */
void hec_progress_show(struct hec_progress *progress, const char *what, double share);
/* The same at once: something begins that lasts. */
void hec_progress_now(struct hec_progress *progress, const char *what);
/* Wipe the line. */
void hec_progress_end(struct hec_progress *progress);

#endif
