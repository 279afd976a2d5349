/* Inside src/report: values of receipt/conditions.def. */
#ifndef HEC_REPORT_RECEIPT_VALUES_H
#define HEC_REPORT_RECEIPT_VALUES_H

#include "report/json_values.h"
#include "report/receipt/receipt.h"

static inline json_t *words_of(const struct hec_receipt_words *words) {
    json_t *list = json_array();
    for (int i = 0; i < words->count; i++)
        json_array_append_new(list, of_EXACT(words->list[i]));
    return list;
}

#endif
