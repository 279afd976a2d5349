/* Interned names: pieces in any order, bounds, hostile text. */
#include "base/error.h"
#include "base/ring_names.h"
#include "unit.h"

static struct hec_ring_name piece_of(uint32_t id, const char *text, int piece) {
    size_t length = strlen(text), at = (size_t)piece * HEC_RING_NAME_PIECE;
    struct hec_ring_name name = {
        id, (uint8_t)piece, (uint8_t)((length + HEC_RING_NAME_PIECE - 1) / HEC_RING_NAME_PIECE), (uint16_t)length, {0}};
    memcpy(name.text, text + at, length - at < HEC_RING_NAME_PIECE ? length - at : HEC_RING_NAME_PIECE);
    return name;
}

static int add(struct hec_ring_names *names, uint32_t id, const char *text, int piece) {
    struct hec_ring_name name = piece_of(id, text, piece);
    return hec_ring_names_add(names, &name);
}

TEST(pieces_come_in_any_order) {
    struct hec_ring_names names;
    hec_ring_names_init(&names, 8, 200);
    const char *text = "a name of three pieces, which is more than sixty-four bytes long in all";
    assert_int_equal(add(&names, 5, text, 2), HEC_OK);
    assert_int_equal(add(&names, 5, text, 0), HEC_OK);
    assert_null(hec_ring_names_text(&names, 5));
    assert_int_equal(add(&names, 5, text, 1), HEC_OK);
    assert_string_equal(hec_ring_names_text(&names, 5), text);
    assert_int_equal(add(&names, 5, text, 1), HEC_OK);
    assert_string_equal(hec_ring_names_text(&names, 5), text);
    assert_null(hec_ring_names_text(&names, 6));
    assert_null(hec_ring_names_text(&names, 0));
    hec_ring_names_free(&names);
}

TEST(the_longest_name_fits) {
    struct hec_ring_names names;
    hec_ring_names_init(&names, 1, HEC_RING_NAME_BYTES_MAX);
    char text[HEC_RING_NAME_BYTES_MAX + 1];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 254; i >= 0; i--)
        assert_int_equal(add(&names, 1, text, i), HEC_OK);
    assert_string_equal(hec_ring_names_text(&names, 1), text);
    hec_ring_names_free(&names);
}

TEST(bounds_hold) {
    struct hec_ring_names names;
    hec_ring_names_init(&names, 100, 10);
    char text[16];
    for (uint32_t i = 1; i <= 100; i++) {
        snprintf(text, sizeof text, "n%u", i);
        assert_int_equal(add(&names, i * 7919, text, 0), HEC_OK);
    }
    assert_int_equal(add(&names, 1, "one more", 0), HEC_ERR_LIMIT);
    assert_int_equal(add(&names, 7919, "longer than ten", 0), HEC_ERR_LIMIT);
    for (uint32_t i = 1; i <= 100; i++) {
        snprintf(text, sizeof text, "n%u", i);
        assert_string_equal(hec_ring_names_text(&names, i * 7919), text);
    }
    assert_int_equal(add(&names, 7919, "other", 0), HEC_OK); /* defined anew */
    assert_string_equal(hec_ring_names_text(&names, 7919), "other");
    hec_ring_names_free(&names);
}

TEST(impossible_pieces_are_refused) {
    struct hec_ring_names names;
    hec_ring_names_init(&names, 8, 100);
    struct hec_ring_name good = piece_of(3, "good", 0), bad;
    bad = good, bad.id = 0;
    assert_int_equal(hec_ring_names_add(&names, &bad), HEC_ERR_CORRUPT);
    bad = good, bad.length = 0;
    assert_int_equal(hec_ring_names_add(&names, &bad), HEC_ERR_CORRUPT);
    bad = good, bad.pieces = 2;
    assert_int_equal(hec_ring_names_add(&names, &bad), HEC_ERR_CORRUPT);
    bad = good, bad.piece = 1;
    assert_int_equal(hec_ring_names_add(&names, &bad), HEC_ERR_CORRUPT);
    bad = good, bad.length = 65535;
    assert_int_equal(hec_ring_names_add(&names, &bad), HEC_ERR_CORRUPT);
    hec_ring_names_free(&names);
}

TEST(text_is_made_printable) {
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\xa5"},
        {"a\x1b[31mb\x7f\n", "a?[31mb??"},
        {"cut \xe2\x82", "cut ??"},
        {"\xc0\xaf \xed\xa0\x80 \xf8 \xff", "?? ??? ? ?"}, /* overlong, surrogate, never valid */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_ring_names names;
        hec_ring_names_init(&names, 1, 100);
        assert_int_equal(add(&names, 1, cases[i][0], 0), HEC_OK);
        assert_string_equal(hec_ring_names_text(&names, 1), cases[i][1]);
        hec_ring_names_free(&names);
    }
}
