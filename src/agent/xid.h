/* XID errors of one device: what their numbers say (xids.def), and how often each came. */
#pragma once

#include <stdint.h>

#define HEC_XIDS_MAX 16 /* numbers that are counted apart; of a device that has more, the rest is counted together */

struct hec_xids {
    struct {
        int64_t number, times;
    } seen[HEC_XIDS_MAX];
    int count;
    int64_t others;
};

/* "Unknown Error" where the table has none. */
const char *hec_xid_text(int64_t number);

/* So many more; number 0: of those that are counted together. */
void hec_xids_add(struct hec_xids *xids, int64_t number, int64_t times);
