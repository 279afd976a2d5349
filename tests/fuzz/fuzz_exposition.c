/* Bytes as dcgm-exporter's list of fields, and as a label of a page: whatever they are, the page has the samples that it was
 * given, of characters that a scraper can read. */
#include "agent/dcgm.h"
#include "base/text.h"
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *text, size_t length, size_t lines) {
    for (size_t i = 0; i < length;) {
        size_t bytes = hec_text_character((const unsigned char *)text + i, length - i);
        if (bytes == 0)
            abort();
        lines -= text[i] == '\n';
        i += bytes;
    }
    if (lines != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hec_dcgm_list list;
    struct hec_why why;
    struct hec_buf out;
    struct hec_exposition page;
    char *value = fuzz_text(data, size);
    if (!value)
        return 0;
    if (hec_dcgm_list_parse(&list, (const char *)data, size, size % 2, &why) < 0)
        list.count = 0;
    hec_buf_init(&out, 1u << 24);
    hec_exposition_begin(&page, &out, size % 3 ? HEC_EXPOSITION_OPENMETRICS : HEC_EXPOSITION_PROMETHEUS);
    for (size_t i = 0; i < list.count; i++) {
        hec_exposition_family(&page, list.chosen[i].field->name, list.chosen[i].kind, NULL, list.chosen[i].help);
        hec_exposition_sample(&page, &(struct hec_label){"l", value}, 1, 1);
        check(out.data, out.length, 3); /* help, type, sample */
        hec_buf_clear(&out);
    }
    hec_exposition_family(&page, "m_total", HEC_FAMILY_COUNTER, NULL, "help");
    hec_exposition_sample(&page, (struct hec_label[]){{"a", value}, {"b", value}}, 2, 1);
    check(hec_buf_text(&out), out.length, 3);
    hec_buf_free(&out);
    free(value);
    return 0;
}
