/* An entry of the power guard's journal. One that is taken is printed and read again to the same. */
#include "act/power_journal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1); /* of the exact length, so that a read too far is seen */
    if (!text)
        return 0;
    memcpy(text, data, size);
    struct hec_power_entry entry, again;
    struct hec_why why = {""};
    char key[HEC_POWER_KEY];
    int err = hec_power_entry_parse(text, size, &entry, &why);
    if (err == HEC_OK) {
        struct hec_buf out;
        hec_buf_init(&out, 65536);
        if (hec_power_entry_key(entry.uuid, entry.machine, key) < 0 || strchr(key, '/') || entry.value < 1 ||
            (entry.knob == HEC_POWER_CAP) != (entry.prior > 0) || hec_power_entry_print(&entry, &out) < 0 ||
            hec_power_entry_parse(out.data, out.length, &again, &why) < 0 || memcmp(&entry, &again, sizeof entry) != 0)
            abort();
        hec_buf_free(&out);
    } else if (!why.text[0]) {
        abort();
    }
    free(text);
    return 0;
}
