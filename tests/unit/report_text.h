/* What a report says: its text in `out`, and questions about it. */
#pragma once

#include "base/buf.h"
#include "unit.h"

static struct hec_buf out;

/* Empty, for the next report. */
static inline struct hec_buf *page(void) {
    hec_buf_free(&out);
    hec_buf_init(&out, 16 << 20);
    return &out;
}

/* Each of the words is in it, or none of them. */
#define SAYS(...) says_all((const char *const[]){__VA_ARGS__, NULL}, true)
#define SAYS_NOT(...) says_all((const char *const[]){__VA_ARGS__, NULL}, false)
static inline void says_all(const char *const *words, bool all) {
    for (; *words; words++)
        if (!strstr(hec_buf_text(&out), *words) == all)
            fail_msg("\"%s\" is %s:\n%s", *words, all ? "missing in" : "in", hec_buf_text(&out));
}

/* How many there are: none is wider, and none has bytes that steer a terminal. */
static inline int lines(int widest) {
    int count = 0, width = 0;
    if (getenv("SHOW"))
        print_message("%s\n", hec_buf_text(&out));
    for (const char *c = hec_buf_text(&out); *c; c++) {
        if (*c == '\n')
            width = 0, count++;
        else if (((unsigned char)*c & 0xc0) != 0x80 && ++width > widest)
            fail_msg("a line is wider than %d:\n%s", widest, hec_buf_text(&out));
        assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
    }
    return count;
}
