#include "report/markdown.h"

#include "report/format.h"

#include <string.h>

void hec_markdown_text(struct hec_buf *out, const char *from) {
    char clean[1100];
    hec_format_clean(clean, sizeof clean, from, true);
    for (const char *c = clean; *c; c++) {
        if (strchr("\\`*_{}[]<>#|~&", *c))
            hec_buf_puts(out, "\\");
        hec_buf_add(out, c, 1);
    }
}
