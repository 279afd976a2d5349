/* Why a figure is what it is, or why there is none: an id, numbers and at most one text that was recorded. Plain data:
 * report/words/reasons.h makes a sentence of it. */
#pragma once

#include <stdbool.h>
#include <string.h>

enum hec_reason_id {
    HEC_REASON_NONE, /* there is nothing to say */
#define HEC_REASON(id, ...) HEC_REASON_##id,
#define HEC_REASON_PLAIN(id) HEC_REASON_##id,
#include "diagnose/reasons.def"
    HEC_REASON_COUNT
};

#define HEC_REASON_NUMBERS 5
#define HEC_REASON_TEXT 400

struct hec_reason {
    enum hec_reason_id id;
    char text[HEC_REASON_TEXT]; /* a name, or words of others, as the recording has them; "": none */
    union {
        double number[HEC_REASON_NUMBERS];
#define HEC_REASON(id, ...)                                                                                            \
    struct {                                                                                                           \
        double __VA_ARGS__;                                                                                            \
    } id;
#define HEC_REASON_PLAIN(id)
#include "diagnose/reasons.def"
    };
};

/* HEC_BECAUSE(NO_GPU), HEC_BECAUSE_OF(LOST, lost_s, joules, known_s): the compiler sees that the row has those numbers. */
#define HEC_BECAUSE(id_) ((struct hec_reason){.id = HEC_REASON_##id_})
#define HEC_BECAUSE_OF(id_, ...)                                                                                       \
    ((struct hec_reason){.id = HEC_REASON_##id_ + HEC_REASON_FITS(id_, __VA_ARGS__), .id_ = {__VA_ARGS__}})
#define HEC_REASON_FITS(id_, ...)                                                                                      \
    (0 * sizeof(char[sizeof((double[]){__VA_ARGS__}) == sizeof((struct hec_reason *)0)->id_ ? 1 : -1]))

/* As much of the text as there is room for. */
static inline struct hec_reason hec_reason_with(struct hec_reason reason, const char *text) {
    size_t length = strlen(text);
    memcpy(reason.text, text, length < sizeof reason.text ? length : sizeof reason.text - 1); /* zeroed before */
    return reason;
}
/* What the recording says itself; NULL or "": nothing. */
static inline struct hec_reason hec_reason_said(const char *text) {
    return hec_reason_with((struct hec_reason){.id = text && *text ? HEC_REASON_SAID : HEC_REASON_NONE},
                           text ? text : "");
}
/* Of what watts rest on: their intervals may be taken at their word (docs/energy.md). */
static inline bool hec_reason_measured(const struct hec_reason *how) {
    return how->id == HEC_REASON_MEASURED_SAMPLES || how->id == HEC_REASON_MEASURED_COUNTER ||
           how->id == HEC_REASON_MEASURED_CONTEXT;
}
