/* Errors: one table (error.def) gives code, name, exit status and text.
 *
 * Contract, here once for every header of the project: a function that can fail
 * returns 0 (or a count >= 0) on success and a negative enum hec_err otherwise;
 * where it takes a `struct hec_why *`, that may be NULL, and on failure it holds
 * one sentence for a person, with no newline and no trailing full stop. */
#pragma once

enum hec_err {
    HEC_OK = 0,
#define HEC_ERROR(code, name, status, text) HEC_ERR_##name = (code),
#include "base/error.def"
#undef HEC_ERROR
};

struct hec_why {
    char text[512];
};

const char *hec_err_text(int err);  /* "not found" */
int hec_err_exit_status(int err);   /* sysexits-like status for the command line */
int hec_err_from_errno(int errnum); /* ENOSPC -> HEC_ERR_FULL, ... */

/* Fill why (if not NULL) and return err, so that a caller can `return hec_fail(...)`. */
int hec_fail(struct hec_why *why, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));
