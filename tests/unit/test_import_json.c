/* The JSON reader: grammar, numbers, texts, the edges of its window, and what it says when something is wrong. */
#include "tests/unit/import_fixture.h"

#include "store/import/event.h"
#include "store/import/json.h"

static struct hec_json *json;
static struct hec_import_input *input;
static struct hec_why why;

static void start(const char *text, size_t length) {
    const char *path = folder_write("x.json", text, length);
    why.text[0] = '\0';
    assert_int_equal(hec_import_input_open(path, &input, &why), HEC_OK);
    json = malloc(sizeof *json);
    hec_json_init(json, input, &why);
}

static void stop(void) {
    free(json);
    hec_import_input_close(input);
}

static void enter(int kind) {
    assert_int_equal(hec_json_peek(json), kind);
    assert_int_equal(hec_json_enter(json), HEC_OK);
}

/* Skips one value; what it returns. */
static int pass_over(const char *text, size_t length) {
    start(text, length);
    int err = hec_json_peek(json);
    if (err > 0)
        err = hec_json_skip(json);
    else if (err == 0)
        err = HEC_ERR_NOTFOUND;
    if (err == HEC_OK)
        err = hec_json_finish(json);
    stop();
    return err;
}

TEST(test_valid) {
    static const char *const texts[] = {"{}",
                                        "[]",
                                        " [ ] ",
                                        "0",
                                        "-0",
                                        "-1.5e+10",
                                        "1E5",
                                        "true",
                                        "false",
                                        "null",
                                        "\"\"",
                                        "[[],{}]",
                                        "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":\"\"}",
                                        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"",
                                        "[NaN, nan, -nan, Infinity, -Infinity, inf, -inf]",
                                        "\t\r\n[1\n,\r2 ]\t",
                                        "\"\xc3\xa9\"",
                                        "[1,1e-5,0.5]",
                                        "[true ,false]",
                                        "{ \"a\" : 1 , \"b\" : 2 }",
                                        "nan"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (pass_over(texts[i], strlen(texts[i])) != HEC_OK)
            fail_msg("%s: %s", texts[i], why.text);
}

TEST(test_invalid) {
    static const struct {
        const char *text;
        const char *offset; /* where the error is */
    } cases[] = {
        {"[1,]", "byte 3"},
        {"{\"a\":1,}", "byte 7"},
        {"[1 2]", "byte 3"},
        {"{\"a\" 1}", "byte 5"},
        {"{a:1}", "byte 1"},
        {"[01]", "byte 1"},
        {"[!a\"]", "byte 1"},
        {"[#]", "byte 1"},
        {"[1.]", "byte 1"},
        {"[.5]", "byte 1"},
        {"[-]", "byte 1"},
        {"[+1]", "byte 1"},
        {"[1e]", "byte 1"},
        {"[tru]", "byte 1"},
        {"[1}", "byte 2"},
        {"{\"a\":1]", "byte 6"},
        {"[1] 2", "byte 4"},
        {"[\"a\",'b']", "byte 5"},
        {"{\"a\":}", "byte 5"},
        {"{,\"a\":1}", "byte 1"},
        {"[,1]", "byte 1"},
        {"[1]]", "byte 3"},
        {"{\"a\":1 \"b\":2}", "byte 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int err = pass_over(cases[i].text, strlen(cases[i].text));
        if (err != HEC_ERR_CORRUPT || !strstr(why.text, cases[i].offset))
            fail_msg("%s: %d %s, not %s", cases[i].text, err, why.text, cases[i].offset);
    }
    assert_int_equal(pass_over("[\0]", 3), HEC_ERR_CORRUPT);
    assert_int_equal(pass_over("\"\0\"", 3), HEC_ERR_CORRUPT);
}

/* What profilers write that is not JSON: the one string of the text, and how many bytes were taken for text. */
TEST(test_repaired) {
    static const struct {
        const char *json, *text;
        int64_t repaired;
    } cases[] = {
        {"[\"torch\\cuda\\__init__.py\"]", "torch\\cuda\\__init__.py", 2},
        {"[\"\\x \\u12g4\"]", "\\x \\u12g4", 2},
        {"[\"a\nb\"]", "a\nb", 1},
        {"[\"device = 0 {\"event_id\": 3, \"stream\": 7}\"]", "device = 0 {\"event_id\": 3, \"stream\": 7}", 4},
        {"[\"plain\" ,\"next\"]", "plain", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_json_text text;
        start(cases[i].json, strlen(cases[i].json));
        assert_int_equal(hec_json_peek(json), '[');
        assert_int_equal(hec_json_enter(json), HEC_OK);
        assert_int_equal(hec_json_element(json), 1);
        assert_int_equal(hec_json_peek(json), '"');
        assert_int_equal(hec_json_string(json, &text), HEC_OK);
        if (text.length != strlen(cases[i].text) || memcmp(text.data, cases[i].text, text.length) != 0 ||
            json->repaired != cases[i].repaired)
            fail_msg("%s: %.*s, %lld repaired", cases[i].json, (int)text.length, text.data, (long long)json->repaired);
        stop();
    }
    /* as members: read and passed over; the last quote of a value is the one that a key or the end follows */
    const char *members[] = {"{\"name\": \"f(\"a\", \"b\")\", \"pid\": 1}", "{\"name\": \"{\"a\": \"b\"}\"}",
                             "{\"a\"b\": 1, \"c\": [\"d\"e\"]}"};
    for (size_t i = 0; i < 3; i++)
        if (pass_over(members[i], strlen(members[i])) != HEC_OK)
            fail_msg("%s: %s", members[i], why.text);
    /* a string that does not end: the first quote that was taken for text is named */
    assert_int_equal(pass_over("[\"a\"x, 1]", 9), HEC_ERR_CORRUPT);
    assert_non_null(strstr(why.text, "byte 4"));
}

TEST(test_truncated_anywhere) {
    const char *text = "{\"a\": [1, -2.5e3, \"x\\u00e9\\\\y\", true, null], \"b\": {\"c\": false}}";
    for (size_t length = 1; length < strlen(text); length++) {
        int err = pass_over(text, length);
        if (err != HEC_ERR_CORRUPT || !strstr(why.text, "cut short"))
            fail_msg("%.*s: %d %s", (int)length, text, err, why.text);
    }
    assert_int_equal(pass_over(text, strlen(text)), HEC_OK);
}

TEST(test_depth) {
    static char text[4 * HEC_JSON_DEPTH_MAX];
    for (int extra = 0; extra < 2; extra++) {
        size_t depth = HEC_JSON_DEPTH_MAX + (size_t)extra;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(pass_over(text, 2 * depth), extra ? HEC_ERR_LIMIT : HEC_OK);
    }
    size_t million = 1000000;
    char *deep = malloc(million);
    memset(deep, '[', million);
    assert_int_equal(pass_over(deep, million), HEC_ERR_LIMIT);
    free(deep);
}

static void text_is(const char *quoted, const char *expected, size_t length) {
    struct hec_json_text text;
    start(quoted, strlen(quoted));
    assert_int_equal(hec_json_peek(json), '"');
    assert_int_equal(hec_json_string(json, &text), HEC_OK);
    assert_int_equal(text.length, length);
    assert_memory_equal(text.data, expected, length);
    stop();
}

TEST(test_texts) {
    text_is("\"plain\"", "plain", 5);
    text_is("\"\"", "", 0);
    text_is("\"a\\\"b\\\\c\\/\\n\"", "a\"b\\c/\n", 7);
    text_is("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10);
    text_is("\"\\ud83dx\"", "\xef\xbf\xbdx", 4); /* half a pair */
    text_is("\"\\ude00\"", "\xef\xbf\xbd", 3);
    text_is("\"a\\u0000b\"", "a\0b", 3);
}

/* A value of every kind at every offset around the end of the window. */
TEST(test_window) {
    const char *tail = "\"key\" : [ -12.5e2 , \"te\\u00e9xt\" , true , null , NaN , {\"k\":\"v\"} ] }";
    char *text = malloc(HEC_JSON_WINDOW + 256);
    for (size_t before = HEC_JSON_WINDOW - 80; before < HEC_JSON_WINDOW + 8; before++) {
        memset(text, ' ', before);
        text[0] = '{';
        memcpy(text + before, tail, strlen(tail));
        start(text, before + strlen(tail));
        struct hec_json_text key, value;
        enter('{');
        assert_int_equal(hec_json_member(json, &key), 1);
        assert_memory_equal(key.data, "key", 3);
        enter('[');
        assert_int_equal(hec_json_element(json), 1);
        assert_int_equal(hec_json_peek(json), '0');
        assert_int_equal(hec_json_number(json, &value), HEC_OK);
        assert_int_equal(value.length, 7);
        assert_memory_equal(value.data, "-12.5e2", 7);
        assert_int_equal(hec_json_element(json), 1);
        assert_int_equal(hec_json_peek(json), '"');
        assert_int_equal(hec_json_string(json, &value), HEC_OK);
        assert_memory_equal(value.data, "te\xc3\xa9xt", 6);
        assert_int_equal(hec_json_element(json), 1);
        assert_int_equal(hec_json_skip(json), HEC_OK);
        assert_int_equal(hec_json_leave(json), HEC_OK);
        assert_int_equal(hec_json_member(json, &key), 0);
        assert_int_equal(hec_json_finish(json), HEC_OK);
        stop();
    }
    free(text);
}

/* What looks for the end of a string sees as far as everywhere else: quotes in a string at every offset around the end of the window. */
TEST(test_repaired_around_the_window) {
    const char *tail = "\"f(\"ab\", \"cd\")\", \"pid\": 1}";
    char *text = malloc(HEC_JSON_WINDOW + 256);
    for (size_t before = HEC_JSON_WINDOW - 60; before < HEC_JSON_WINDOW + 8; before++) {
        struct hec_json_text key, value;
        memset(text, ' ', before);
        memcpy(text, "{\"name\":", 8);
        memcpy(text + before, tail, strlen(tail));
        start(text, before + strlen(tail));
        enter('{');
        assert_int_equal(hec_json_member(json, &key), 1);
        assert_int_equal(hec_json_peek(json), '"');
        assert_int_equal(hec_json_string(json, &value), HEC_OK);
        assert_int_equal(value.length, 13);
        assert_memory_equal(value.data, "f(\"ab\", \"cd\")", 13);
        assert_int_equal(hec_json_member(json, &key), 1);
        assert_memory_equal(key.data, "pid", 3);
        assert_int_equal(hec_json_skip(json), HEC_OK);
        assert_int_equal(hec_json_member(json, &key), 0);
        assert_int_equal(hec_json_finish(json), HEC_OK);
        assert_int_equal(json->repaired, 4);
        stop();
    }
    free(text);
}

/* 64 MiB of text in one value: read in the same few hundred KiB; kept up to a limit, skipped beyond. */
TEST(test_long_text) {
    size_t length = 64u << 20;
    char *text = malloc(length);
    memset(text, 'x', length);
    text[0] = '"';
    memcpy(text + length / 2, "\\n", 2);
    text[length - 1] = '"';
    assert_int_equal(pass_over(text, length), HEC_OK);
    struct hec_json_text value;
    start(text, length);
    assert_int_equal(hec_json_peek(json), '"');
    assert_int_equal(hec_json_string(json, &value), HEC_OK);
    assert_int_equal(value.length, HEC_JSON_TEXT_MAX);
    assert_int_equal(hec_json_finish(json), HEC_OK);
    stop();
    assert_int_equal(pass_over(text, length - 1), HEC_ERR_CORRUPT);
    free(text);
}

TEST(test_leave) {
    struct hec_json_text key;
    static const char *const inner[] = {"{}", "{\"a\":1}", "{\"a\":1,\"b\":[{}]}"};
    for (size_t i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, "[%s,7]", inner[i]);
        start(text, strlen(text));
        enter('[');
        assert_int_equal(hec_json_element(json), 1);
        enter('{');
        if (i == 2) {
            assert_int_equal(hec_json_member(json, &key), 1);
            assert_int_equal(hec_json_skip(json), HEC_OK);
        }
        assert_int_equal(hec_json_leave(json), HEC_OK);
        assert_int_equal(hec_json_element(json), 1);
        assert_int_equal(hec_json_peek(json), '0');
        stop();
    }
}

/* The time of an event at `text`. */
static struct hec_import_number time_at(const char *text) {
    static struct hec_import_event event;
    char object[64];
    start(object, (size_t)snprintf(object, sizeof object, "{\"ts\": %s}", text));
    assert_int_equal(hec_json_peek(json), '{');
    assert_int_equal(hec_import_event_read(json, &event), HEC_OK);
    stop();
    return event.start_ns;
}

static void micros_are(const char *text, int64_t expected) {
    struct hec_import_number number = time_at(text);
    if (!number.known || number.value != expected)
        fail_msg("%s is %lld", text, (long long)number.value);
}

TEST(test_micros) {
    micros_are("0", 0);
    micros_are("1", 1000);
    micros_are("1.5", 1500);
    micros_are("1.001", 1001);
    micros_are("1.0004", 1000);
    micros_are("1.0005", 1001);
    micros_are("1.9999", 2000);
    micros_are("-1.5", -1500);
    micros_are("4203669604595.407", 4203669604595407);
    micros_are("1682725898082228", 1682725898082228000);
    micros_are("1e3", 1000000);
    micros_are("1.5e3", 1500000);
    static const char *const bad[] = {"\"\"",  "\"-\"", "\"x\"",  "\"1x\"", "99999999999999999999",
                                      "1e300", "NaN",   "\".5\"", "inf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(time_at(bad[i]).known);
}
