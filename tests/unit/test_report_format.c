/* Numbers and foreign text for people. */
#include "report/format.h"

#include "model/run.h"
#include "unit.h"

static char text[HEC_FORMAT_SIZE];

TEST(test_si) {
    assert_string_equal(hec_format_si(text, 11626, 4, "J"), "11.63 kJ");
    assert_string_equal(hec_format_si(text, 0.1065, 4, "J"), "106.5 mJ");
    assert_string_equal(hec_format_si(text, 999.96, 3, "W"), "1000 W");
    assert_string_equal(hec_format_si(text, 0, 3, "J"), "0.00 J");
    assert_string_equal(hec_format_si(text, -1500, 2, "J"), "-1.5 kJ");
    assert_string_equal(hec_format_si(text, NAN, 3, "J"), "unknown");
    assert_string_equal(hec_format_si(text, INFINITY, 3, "J"), "unknown");
    assert_string_equal(hec_format_si(text, 0.1991, 3, "/s"), "0.199 /s");
    assert_string_equal(hec_format_si(text, 0.00021, 2, ""), "0.00021 ");
    assert_string_equal(hec_format_si(text, 1993, 3, "/s"), "1.99 k/s");
}

TEST(test_bounded) {
    assert_string_equal(hec_format_bounded(text, 11626, 58, "J", true), "11.63 kJ \u00b1 0.06 kJ");
    assert_string_equal(hec_format_bounded(text, 11626, 58, "J", false), "11.63 kJ +- 0.06 kJ");
    assert_string_equal(hec_format_bounded(text, 11626, 121, "J", true), "11.63 kJ \u00b1 0.13 kJ");
    assert_string_equal(hec_format_bounded(text, 532.4, 31, "J", true), "532 J \u00b1 31 J");
    assert_string_equal(hec_format_bounded(text, 0.1065, 0.0003, "J", true), "106.5 mJ \u00b1 0.3 mJ");
    assert_string_equal(hec_format_bounded(text, 5, 900, "J", true), "5 J \u00b1 900 J");
    assert_string_equal(hec_format_bounded(text, 1234, NAN, "J", true), "1.234 kJ");
    assert_string_equal(hec_format_bounded(text, NAN, 3, "J", true), "unknown");
}

TEST(test_seconds) {
    assert_string_equal(hec_format_seconds(text, 0.0312), "31.2 ms");
    assert_string_equal(hec_format_seconds(text, 9.876), "9.88 s");
    assert_string_equal(hec_format_seconds(text, 60.24), "60.2 s");
    assert_string_equal(hec_format_seconds(text, 245.4), "4 min 5 s");
    assert_string_equal(hec_format_seconds(text, 86399.9), "24 h 0 min");
    assert_string_equal(hec_format_seconds(text, NAN), "unknown");
}

TEST(test_others) {
    assert_string_equal(hec_format_bytes(text, 4.194e9, "/s"), "4.19 GB/s");
    assert_string_equal(hec_format_bytes(text, 12, ""), "12 B");
    assert_string_equal(hec_format_bytes(text, NAN, ""), "unknown");
    assert_string_equal(hec_format_share(text, 0.884), "88 %");
    assert_string_equal(hec_format_share(text, 0.052), "5.2 %");
    assert_string_equal(hec_format_share(text, 0.0004), "0.04 %");
    assert_string_equal(hec_format_share(text, 0), "0.0 %");
    assert_string_equal(hec_format_share(text, NAN), "-");
    assert_string_equal(hec_format_count(text, 300000), "300000");
    assert_string_equal(hec_format_count(text, -1234567), "-1234567");
    assert_string_equal(hec_format_count(text, 999.5), "999.5");
    assert_string_equal(hec_format_count(text, 0.25), "0.25");
    assert_string_equal(hec_format_count(text, 1e300), "1e+300");
    assert_string_equal(hec_format_gpu(text, 3), "GPU 3");
    assert_string_equal(hec_format_gpu(text, HEC_DEVICE_INDEX(HEC_VENDOR_AMD, 0)), "AMD GPU 0");
    assert_string_equal(hec_format_gpu(text, HEC_DEVICE_INDEX(HEC_VENDOR_AMD, 31)), "AMD GPU 31");
    assert_string_equal(hec_format_gpu(text, HEC_DEVICE_MAX), "GPU 64");
    assert_string_equal(hec_format_gpu(text, -1), "GPU -1");
    assert_string_equal(hec_format_dollars(text, 1.239), "$1.24");
    assert_string_equal(hec_format_dollars(text, 0.000421), "$0.00042");
    assert_string_equal(hec_format_dollars(text, 0), "$0.00");
    assert_string_equal(hec_format_dollars(text, NAN), "unknown");
}

#define CLEAN(from, to) assert_string_equal(hec_format_clean(text, sizeof text, from, true), to)

TEST(test_clean) {
    char small[8];
    CLEAN("caf\xc3\xa9 \xe2\x82\xac", "caf\xc3\xa9 \xe2\x82\xac");
    assert_string_equal(hec_format_clean(text, sizeof text, "caf\xc3\xa9", false), "caf?");
    CLEAN("a\x1b]0;x\x07\n\t\x7f", "a?]0;x????");
    /* C1 controls, overlong, surrogate, beyond Unicode, cut off */
    CLEAN("\xc2\x9b|\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82", "?|?\?|?\?\?|?\?\?\?|?\?");
    /* turned backwards, isolated, of no width, a line of its own, a tag; what is seen stays, emoji too */
    CLEAN("a\u202egpj.exe", "a?gpj.exe");
    CLEAN("\u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069|", "????????|");
    CLEAN("\u061c\u200b\u200d\u200e\u200f\u2060\ufeff\u00ad", "????????");
    CLEAN("\u2028|\u2029|\U000e0041|\U0001d173", "?|?|?|?");
    /* fillers, an empty pattern, selectors of variants, but for those of colour behind a sign */
    CLEAN("\u115f\u1160\u3164\uffa0|\u2800|\u034f\u17b4\u17b5", "????|?|???");
    CLEAN("\u180b\u180f\ufe00\ufe0d|\U000e0100\U000e01ef\U000e0fff|\ufff0", "????|???|?");
    CLEAN("\u26a0\ufe0f \u2714\ufe0e", "\u26a0\ufe0f \u2714\ufe0e");
    CLEAN("\u05d0\u0627\u2027\u202f\u2070\U0001f600", "\u05d0\u0627\u2027\u202f\u2070\U0001f600");
    assert_string_equal(hec_format_clean(small, sizeof small, "12345\xe2\x82\xac", true), "12345");
    assert_string_equal(hec_format_clean(small, sizeof small, "123456789", true), "1234567");
}
