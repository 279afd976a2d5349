#include "observe/nvml/visible.h"
#include "unit.h"

#define COUNT 4

static const char uuids[COUNT][96] = {
    "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-8932f0aa-1111-2222-3333-444444444444",
    "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "", /* a device that would not say */
};

static const struct hec_visible_mig migs[] = {
    {2, "MIG-1f0a2b3c-0000-1111-2222-333333333333", 1, 0},
    {2, "MIG-1f0a9999-0000-1111-2222-333333333333", 2, 0},
    {1, "MIG-77777777-0000-1111-2222-333333333333", 5, 1},
};

static const struct {
    const char *text;
    const char *visible; /* one letter a device */
    bool by_ordinal;
} cases[] = {
    {NULL, "1111", false},
    {"", "0000", false},
    {" ", "0000", false},
    {"-1", "0000", false},
    {"NoDevFiles", "0000", false},
    {"none", "0000", false},
    {"0", "1000", true},
    {"2,0", "1010", true},
    {" 1 , 3 ", "0101", true},
    {"0,1,2,3", "1111", true},
    {"0,-1,1", "1000", true},
    {"0,4,1", "1000", true},
    {"0,,1", "1000", true},
    {"1,", "0100", true},
    {",1", "0000", false},
    {"0,0", "0000", false},
    {"1,0,1", "0000", false},
    {"0,-1,0", "1000", true}, /* what follows the first invalid entry does not count */
    {"1gpu,2", "0110", true},
    {"99999999999999999999,0", "0000", false},
    {"0,GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "1000", true},
    {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "1000", false},
    {"GPU-8932f9", "1000", false},
    {"GPU-8932f", "0000", false}, /* not unique */
    {"GPU-", "0000", false},
    {"GPU-aaaa,GPU-8932f0", "0110", false},
    {"GPU-aaaa,GPU-ffff,GPU-8932f0", "0010", false},
    {"GPU-aaaa,GPU-aaaaaaaa", "0000", false}, /* the same device twice */
    {"GPU-aaaa,1", "0010", false},
    {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6-and-more", "0000", false},
    {"MIG-1f0a2b3c-0000-1111-2222-333333333333", "0010", false},
    {"MIG-1f0a2,MIG-1f0a9", "0010", false},
    {"MIG-1f0a", "0000", false},
    {"MIG-7777,MIG-1f0a9", "0110", false},
    {"MIG-7777,MIG-7777", "0000", false},
    {"MIG-GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee/2/0", "0010", false},
    {"MIG-GPU-8932f0aa-1111-2222-3333-444444444444/5/1", "0100", false},
    {"MIG-GPU-8932f0aa-1111-2222-3333-444444444444/5/0", "0000", false},
    {"MIG-GPU-8932f0aa-1111-2222-3333-444444444444", "0000", false},
    {"MIG-GPU-8932f0aa-1111-2222-3333-444444444444/5", "0000", false},
};

TEST(test_table) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_visible_input input = {cases[i].text, uuids, COUNT, migs, sizeof migs / sizeof migs[0]};
        bool visible[COUNT], by_ordinal;
        char got[COUNT + 1] = "";
        int number = hec_visible_parse(&input, visible, &by_ordinal), expected = 0;
        for (int d = 0; d < COUNT; d++) {
            got[d] = visible[d] ? '1' : '0';
            expected += cases[i].visible[d] == '1';
        }
        if (strcmp(got, cases[i].visible) != 0 || by_ordinal != cases[i].by_ordinal || number != expected)
            fail_msg("\"%s\": got %s (%d, by ordinal %d), expected %s", cases[i].text ? cases[i].text : "(unset)", got,
                     number, by_ordinal, cases[i].visible);
    }
}

TEST(test_long_list) {
    char text[8192];
    memset(text, '1', sizeof text);
    text[sizeof text - 1] = '\0';
    struct hec_visible_input input = {text, uuids, COUNT, NULL, 0};
    bool visible[COUNT];
    assert_int_equal(hec_visible_parse(&input, visible, NULL), 0);
    for (size_t i = 1; i < sizeof text - 1; i += 2)
        text[i] = ',';
    assert_int_equal(hec_visible_parse(&input, visible, NULL), 0); /* 1,1,1,...: named twice */
}

TEST(test_no_devices) {
    struct hec_visible_input input = {"0,1", NULL, 0, NULL, 0};
    bool none;
    assert_int_equal(hec_visible_parse(&input, &none, NULL), 0);
}
