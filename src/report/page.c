#include "report/page.h"

#include "report/format.h"

#include <stdio.h>
#include <string.h>

#define LABEL_WIDTH 13
#define TEXT_MAX 4096

static const char *const tones[] = {
    [HEC_TONE_PLAIN] = "",          [HEC_TONE_BOLD] = "\033[1m",    [HEC_TONE_DIM] = "\033[2m",
    [HEC_TONE_GOOD] = "\033[1;32m", [HEC_TONE_WARN] = "\033[1;33m", [HEC_TONE_BAD] = "\033[1;31m",
};

void hec_page_init(struct hec_page *page, const struct hec_report_style *style, struct hec_buf *out) {
    int columns = style->columns > 0 ? style->columns : 80;
    *page = (struct hec_page){.out = out,
                              .color = style->color,
                              .utf8 = style->utf8,
                              .all = style->all,
                              .columns = columns < 40    ? 40
                                         : columns > 500 ? 500
                                                         : columns};
}

void hec_page_blank(struct hec_page *page) {
    hec_buf_puts(page->out, "\n");
    page->lines++;
}

static void toned(struct hec_page *page, enum hec_tone tone, const char *text, size_t length) {
    bool coloured = page->color && tone != HEC_TONE_PLAIN && length > 0;
    if (coloured)
        hec_buf_puts(page->out, tones[tone]);
    hec_buf_add(page->out, text, length);
    if (coloured)
        hec_buf_puts(page->out, "\033[0m");
}

/* Bytes of text that fit in `columns` characters, cut at a space where there is one. */
static size_t fitting(const char *text, int columns) {
    size_t at = 0, space = 0;
    int used = 0;
    while (text[at] && used < columns) {
        if (at > 1 && text[at] == ' ' &&
            text[at + 1] != '%') /* a percentage stays whole, a dash of a list with its text */
            space = at;
        for (at++; ((unsigned char)text[at] & 0xc0) == 0x80; at++)
            ;
        used++;
    }
    if (!text[at] || (text[at] == ' ' && text[at + 1] != '%'))
        return at;
    return space ? space : at;
}

static void put(struct hec_page *page, int indent, const char *label, enum hec_tone tone, bool one_line,
                const char *text) {
    int width = page->columns - LABEL_WIDTH, filled = indent;
    hec_buf_printf(page->out, "%*s", indent, "");
    toned(page, HEC_TONE_DIM, label, strlen(label));
    filled += (int)strlen(label);
    for (;;) {
        hec_buf_printf(page->out, "%*s", filled < LABEL_WIDTH ? LABEL_WIDTH - filled : filled == indent ? 0 : 1, "");
        size_t length = fitting(text, width - (filled > LABEL_WIDTH ? filled + 1 - LABEL_WIDTH : 0));
        toned(page, tone, text, length);
        text += length + strspn(text + length, " ");
        if (one_line && *text)
            hec_buf_puts(page->out, page->utf8 ? "\u2026" : "...");
        hec_buf_puts(page->out, "\n");
        page->lines++;
        if (!*text || one_line)
            return;
        filled = 0;
    }
}

static void format_and_put(struct hec_page *page, int indent, const char *label, enum hec_tone tone, bool one_line,
                           const char *format, va_list arguments) {
    char raw[TEXT_MAX], text[TEXT_MAX];
    vsnprintf(raw, sizeof raw, format, arguments);
    put(page, indent, label, tone, one_line, hec_format_clean(text, sizeof text, raw, page->utf8));
}

void hec_page_row(struct hec_page *page, int indent, const char *label, enum hec_tone tone, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    format_and_put(page, indent, label, tone, false, format, arguments);
    va_end(arguments);
}

void hec_page_line(struct hec_page *page, int indent, const char *label, enum hec_tone tone, const char *format, ...) {
    struct hec_page narrow = *page;
    va_list arguments;
    narrow.columns -= 3; /* room for the mark of the cut */
    va_start(arguments, format);
    format_and_put(&narrow, indent, label, tone, true, format, arguments);
    va_end(arguments);
    page->lines = narrow.lines;
}

void hec_page_code(struct hec_page *page, int indent, const char *code) {
    char text[TEXT_MAX];
    while (*code) {
        int length = (int)strcspn(code, "\n");
        char line[256];
        snprintf(line, sizeof line, "%.*s", length, code);
        hec_format_clean(text, sizeof text, line, page->utf8);
        hec_buf_printf(page->out, "%*s", indent, "");
        toned(page, HEC_TONE_GOOD, text, strlen(text));
        hec_buf_puts(page->out, "\n");
        page->lines++;
        code += length + (code[length] == '\n');
    }
}
