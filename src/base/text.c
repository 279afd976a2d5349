#include "base/text.h"

#include <string.h>

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

static bool is_control(const unsigned char *character, size_t bytes) {
    return bytes == 1 ? *character < 0x20 || *character == 0x7f : *character == 0xc2 && character[1] < 0xa0;
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
