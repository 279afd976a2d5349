#include "agent/xid.h"

#include <stddef.h>

static const struct {
    int64_t number;
    const char *text;
} texts[] = {
#define HEC_XID(number, text) {number, text},
#include "agent/xids.def"
#undef HEC_XID
};

const char *hec_xid_text(int64_t number) {
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].number == number)
            return texts[i].text;
    return "Unknown Error";
}

void hec_xids_add(struct hec_xids *xids, int64_t number, int64_t times) {
    int i = 0;
    while (i < xids->count && xids->seen[i].number != number)
        i++;
    if (number <= 0 || i == HEC_XIDS_MAX) {
        xids->others += times;
        return;
    }
    if (i == xids->count) {
        xids->seen[xids->count++].number = number;
        xids->seen[i].times = 0;
    }
    xids->seen[i].times += times;
}
