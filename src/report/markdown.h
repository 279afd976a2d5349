/* Inside src/report: text in Markdown. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

/* Text from outside: nothing in it is markup, a link, or mentions anybody. before and after are put as they are. */
void hec_markdown_text(struct hec_buf *out, const char *before, const char *from, const char *after);
/* The same as a code span, which makes no link and mentions nobody: ` becomes '. cell: inside a table. */
void hec_markdown_code(struct hec_buf *out, const char *from, bool cell);
/* The same where HTML is expected, within <summary>. */
void hec_markdown_html(struct hec_buf *out, const char *from);
