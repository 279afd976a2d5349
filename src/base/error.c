#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static const struct {
    int code;
    int status;
    const char *text;
} errors[] = {
    {0, 0, "success"},
#define HEC_ERROR(code, name, status, text) {code, status, text},
#include "base/error.def"
#undef HEC_ERROR
};

static int find(int err) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == err)
            return (int)i;
    return -1;
}

const char *hec_err_text(int err) {
    int i = find(err);
    return i < 0 ? "unknown error" : errors[i].text;
}

int hec_err_exit_status(int err) {
    int i = find(err);
    return i < 0 ? 1 : errors[i].status;
}

int hec_err_from_errno(int errnum) {
    switch (errnum) {
    case 0:
        return HEC_OK;
    case ENOMEM:
        return HEC_ERR_NOMEM;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return HEC_ERR_FULL;
    case ENOENT:
    case ENOTDIR:
        return HEC_ERR_NOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return HEC_ERR_PERMISSION;
    case EBUSY:
    case EAGAIN:
        return HEC_ERR_BUSY;
    default:
        return HEC_ERR_IO;
    }
}

int hec_fail(struct hec_why *why, int err, const char *format, ...) {
    if (why) {
        va_list args;
        va_start(args, format);
        vsnprintf(why->text, sizeof why->text, format, args);
        va_end(args);
    }
    return err;
}
