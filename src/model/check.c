#include "model/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *hec_check_status_name(enum hec_check_status status) {
    static const char *const names[HEC_CHECK_STATUS_COUNT] = {"ok", "limited", "missing"};
    return names[status];
}

struct hec_check *hec_check_add(struct hec_check_list *list, const char *area, const char *name,
                                enum hec_check_status status, const char *format, ...) {
    static struct hec_check scratch;
    struct hec_check *check = &scratch;
    if (list->count < HEC_CHECK_MAX)
        check = &list->items[list->count++];
    else
        list->omitted++;
    memset(check, 0, sizeof *check);
    snprintf(check->area, sizeof check->area, "%s", area);
    snprintf(check->name, sizeof check->name, "%s", name);
    check->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(check->finding, sizeof check->finding, format, args);
    va_end(args);
    return check;
}
