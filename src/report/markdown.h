/* Inside src/report: text in Markdown. */
#ifndef HEC_REPORT_MARKDOWN_H
#define HEC_REPORT_MARKDOWN_H

#include "base/buf.h"

/* Text from outside: nothing in it is markup. */
void hec_markdown_text(struct hec_buf *out, const char *from);

#endif
