/* One row of `hec doctor`: something that can, can only partly, or cannot be measured here. Every source of
 * measurements adds its own rows. */
#pragma once

#define HEC_CHECK_MAX 96

enum hec_check_status {
    HEC_CHECK_OK,      /* measured as intended */
    HEC_CHECK_LIMITED, /* measured in part, or more coarsely */
    HEC_CHECK_MISSING, /* not measured here */
    HEC_CHECK_STATUS_COUNT
};

struct hec_check {
    char area[24]; /* rows of one area are shown together: "host", "cpu energy", "gpu 0" */
    char name[48];
    enum hec_check_status status;
    char finding[256]; /* what was found, one sentence */
    char remedy[256];  /* what would enable it; empty when nothing is to be done or nothing can be */
    char cost[128];    /* what measuring it costs; empty when it is not worth a word */
};

struct hec_check_list {
    struct hec_check items[HEC_CHECK_MAX];
    int count;
    int omitted; /* rows that no longer fitted */
};

/* "ok", "limited", "missing": stable, used in JSON. */
const char *hec_check_status_name(enum hec_check_status status);

/* Append a row with an empty remedy and cost, and return it so that the caller can add them. When the list is full the
 * row is counted in omitted and a scratch row is returned, never NULL. Not for use by several threads at once. */
struct hec_check *hec_check_add(struct hec_check_list *list, const char *area, const char *name,
                                enum hec_check_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
