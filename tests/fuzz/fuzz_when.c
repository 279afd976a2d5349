/* The argument of `hec run --when`, and that of --until: text typed by people. */
#include "act/off_peak.h"
#include "text.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_text(data, size);
    struct hec_when when;
    struct hec_why why = {""};
    int64_t until_s = 0;
    if (!text)
        return 0;
    int err = hec_when_parse(text, &when, &why);
    if (err == HEC_OK ? when.count < 1 : why.text[0] == '\0')
        abort();
    for (int minute = 0; err == HEC_OK && minute < 1440; minute += 97)
        hec_when_holds(&when, &(struct hec_when_now){.co2 = NAN, .price = 0.1, .minute = minute});
    if (hec_off_peak_until(text, 1767225600, &until_s, &why) == HEC_OK && until_s < 1767225600)
        abort();
    free(text);
    return 0;
}
