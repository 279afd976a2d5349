/* Files of the electric grid's carbon and prices, which others fetch. */
#include "observe/grid/signal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Values in order, none over another, each a number that may be. */
static void check(const struct hec_signal *signal) {
    for (size_t i = 0; i < signal->count; i++) {
        const struct hec_signal_value *v = &signal->values[i];
        if (v->until_s <= v->from_s || (i && v->from_s < v[-1].until_s) || isinf(v->value))
            abort();
        if (!isnan(v->value) && hec_signal_at(signal, v->from_s) != v)
            abort();
        if (hec_signal_next(signal, v->from_s) != v->until_s)
            abort();
    }
    if (hec_signal_at(signal, INT64_MIN) || hec_signal_at(signal, INT64_MAX))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int carbon = 0; carbon < 2; carbon++) {
        struct hec_signal signal;
        struct hec_why why = {""};
        int err = hec_signal_parse((const char *)data, size, carbon, &signal, &why);
        if (err == HEC_OK ? signal.count == 0 : why.text[0] == '\0')
            abort();
        if (err == HEC_OK)
            check(&signal);
        hec_signal_free(&signal);
    }
    return 0;
}
