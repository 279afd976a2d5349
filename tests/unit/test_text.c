/* Text from outside, for people: without what a terminal obeys. */
#include "base/text.h"

#include "unit.h"

TEST(lines_of_others) {
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"", ""},
        {"plain", "plain\n"},
        {"a\nb\n", "a\nb\n"},
        {"\n\na\n", "\n\na\n"},
        {"tab\there", "tab\there\n"},
        {"10 %\r20 %\r\n", "10 %\n20 %\n"},
        {"\r\r\rx", "x\n"},
        {"\033[1;31mred\033[0m", "red\n"},
        {"\033]0;title\ab", "b\n"},
        {"\033]8;;http://x\033\\link\033]8;;\033\\", "link\n"},
        {"\033Pq#0;2\033\\x", "x\n"},
        {"\033]0;without an end\nnext", "\nnext\n"},
        {"\033[31", ""},
        {"\033[3\nx", "\nx\n"},
        {"\033", ""},
        {"\033cx", "x\n"},
        {"\033(0x", "0x\n"},
        {"\302\23331m", "?31m\n"},
        {"\342\200\256abc", "?abc\n"},
        {"\a\b\177", "???\n"},
        {"\377\303", "??\n"},
        {"\303\244", "\303\244\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_buf out;
        hec_buf_init(&out, 1 << 20);
        hec_text_lines(&out, cases[i].from);
        assert_string_equal(hec_buf_text(&out), cases[i].to);
        hec_buf_free(&out);
    }
}

/* Every pair of bytes, and every byte after the beginning of a sequence: nothing that is not printed comes out, and it ends. */
TEST(no_bytes_break_it) {
    for (int a = 1; a < 256; a++)
        for (int b = 1; b < 256; b++) {
            char text[8] = {'x', 27, (char)a, (char)b, '\\', 'y', 0};
            struct hec_buf out;
            hec_buf_init(&out, 1 << 20);
            hec_text_lines(&out, text);
            hec_text_lines(&out, text + 2);
            for (const char *c = hec_buf_text(&out); *c; c++)
                assert_true((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\t');
            hec_buf_free(&out);
        }
}
