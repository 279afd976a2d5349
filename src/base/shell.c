#include "base/shell.h"

#include <stdbool.h>
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
