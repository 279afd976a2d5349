#include "base/text.h"

#include <stdint.h>
#include <string.h>

static bool plain_word(const char *word) {
    return *word &&
           strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%") == strlen(word);
}

void hec_shell_line(char *const *argv, struct hec_buf *out) {
    for (int i = 0; argv[i]; i++) {
        if (i)
            hec_buf_puts(out, " ");
        if (plain_word(argv[i])) {
            hec_buf_puts(out, argv[i]);
            continue;
        }
        hec_buf_puts(out, "'");
        for (const char *c = argv[i]; *c; c++) {
            if (*c == '\'')
                hec_buf_puts(out, "'\\''");
            else
                hec_buf_add(out, c, 1);
        }
        hec_buf_puts(out, "'");
    }
}

size_t hec_text_character(const unsigned char *text, size_t left) {
    unsigned char c = text[0];
    size_t length = c < 0x80                ? 1
                    : c >= 0xc2 && c < 0xe0 ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) || (c == 0xf0 && text[1] < 0x90) ||
        (c == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

/* Characters of Unicode that show nothing and change what is shown around them: they break lines, turn the direction of the
 * text after them (a file that is named "exe.gpj" backwards), or differ although they look alike. Its categories Cf, Zl
 * and Zp, but for the few signs among them that are seen; what it says may be ignored when it is shown
 * (Default_Ignorable_Code_Point: fillers, selectors of variants), but for the two selectors that stand behind a sign to have it in
 * colour or not; and the empty pattern of Braille. */
static const struct {
    uint32_t first, last;
} invisible[] = {
    {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},   {0x115f, 0x1160},   {0x17b4, 0x17b5},
    {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},   {0x2800, 0x2800},
    {0x3164, 0x3164},   {0xfe00, 0xfe0d},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
    {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static uint32_t code_of(const unsigned char *character, size_t bytes) {
    uint32_t code = bytes == 1 ? *character : *character & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | (character[i] & 0x3fu);
    return code;
}

static bool is_control(const unsigned char *character, size_t bytes) {
    uint32_t code = code_of(character, bytes);
    for (size_t i = 0; code >= invisible[0].first && i < sizeof invisible / sizeof invisible[0]; i++)
        if (code >= invisible[i].first && code <= invisible[i].last)
            return true;
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

char *hec_text_clean(char *out, size_t size, const char *from, size_t length, bool utf8) {
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        const unsigned char *at = (const unsigned char *)from + i;
        size_t bytes = hec_text_character(at, length - i);
        bool keep = bytes > 0 && !is_control(at, bytes) && (bytes == 1 || utf8);
        size_t more = keep ? bytes : 1;
        if (used + more >= size)
            break;
        if (keep)
            memcpy(out + used, at, bytes);
        else
            out[used] = '?';
        used += more;
        i += bytes ? bytes : 1;
    }
    out[used] = '\0';
    return out;
}

/* The bytes of the control sequence at text, which begins with ESC: up to its final byte (ECMA-48), or to its end for those that hold
 * a text, such as a title; never beyond the line. */
static size_t sequence(const char *text) {
    size_t i = 1;
    if (text[1] == '[') {
        for (i = 2; text[i] >= 0x20 && text[i] <= 0x3f;)
            i++;
        return i + (text[i] >= 0x40 && text[i] <= 0x7e);
    }
    if (text[1] == '\0' || !strchr("]P_^X", text[1]))
        return 1 + (text[1] >= 0x20 && text[1] <= 0x7e);
    while (text[i] && text[i] != '\a' && text[i] != '\n' && text[i] != '\033')
        i++;
    return i + (text[i] == '\a') + 2 * (text[i] == '\033' && text[i + 1] == '\\');
}

void hec_text_lines(struct hec_buf *out, const char *from) {
    char clean[8];
    bool begun = false;
    while (*from) {
        size_t bytes = hec_text_character((const unsigned char *)from, strlen(from) < 4 ? strlen(from) : 4);
        bytes = bytes ? bytes : 1;
        if (*from == '\033') {
            from += sequence(from);
            continue;
        }
        if (*from == '\n' || *from == '\r') {
            if (begun || *from == '\n')
                hec_buf_puts(out, "\n");
            bool both = *from == '\r' && from[1] == '\n';
            begun = false;
            from += both ? 2 : 1;
            continue;
        }
        hec_buf_puts(out, *from == '\t' ? "\t" : hec_text_clean(clean, sizeof clean, from, bytes, true));
        begun = true;
        from += bytes;
    }
    if (begun)
        hec_buf_puts(out, "\n");
}

void hec_text_print(FILE *to, const char *from) {
    struct hec_buf lines;
    hec_buf_init(&lines, 64u << 20);
    hec_text_lines(&lines, from);
    fputs(hec_buf_text(&lines), to);
    hec_buf_free(&lines);
}
