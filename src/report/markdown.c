#include "report/markdown.h"

#include "report/format.h"

#include <string.h>
#include <strings.h>

/* Behind what would make a mention, or a link of bare text. */
static void separate(struct hec_buf *out, const char *c) {
    if (*c == '@' || strncmp(c, "://", 3) == 0 || strncasecmp(c, "www.", 4) == 0)
        hec_buf_puts(out, "<!-- -->");
}

void hec_markdown_text(struct hec_buf *out, const char *before, const char *from, const char *after) {
    char clean[1100];
    hec_buf_puts(out, before);
    hec_format_clean(clean, sizeof clean, from, true);
    for (const char *c = clean; *c; c++) {
        if (strchr("\\`*_{}[]<>#|~&", *c))
            hec_buf_puts(out, "\\");
        hec_buf_add(out, c, 1);
        separate(out, c);
    }
    hec_buf_puts(out, after);
}

void hec_markdown_code(struct hec_buf *out, const char *from, bool cell) {
    char clean[1100];
    hec_format_clean(clean, sizeof clean, from, true);
    hec_buf_puts(out, "`");
    for (const char *c = clean; *c; c++) {
        size_t slashes = strspn(c, "\\");
        if (cell &&
            (*c == '|' || (slashes && c[slashes] == '|'))) /* a pipe behind an even number of them ends the cell */
            hec_buf_puts(out, "\\");
        hec_buf_add(out, *c == '`' ? "'" : c, 1);
    }
    hec_buf_puts(out, clean[0] ? "`" : " `"); /* two backticks would open a longer span */
}

void hec_markdown_html(struct hec_buf *out, const char *from) {
    char clean[1100];
    hec_format_clean(clean, sizeof clean, from, true);
    for (const char *c = clean; *c; c++)
        switch (*c) {
        case '&':
            hec_buf_puts(out, "&amp;");
            break;
        case '<':
            hec_buf_puts(out, "&lt;");
            break;
        case '>':
            hec_buf_puts(out, "&gt;");
            break;
        default:
            hec_buf_add(out, c, 1);
            separate(out, c);
        }
}
