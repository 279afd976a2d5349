/* Names of pods out of an answer of the API server: what is none is left out. */
#include "agent/pod_names.h"
#include "base/error.h"
#include "unit.h"

#define UID "1a2b3c4d-0001-4002-8003-a0b0c0d0e0f0"

static struct hec_pod_name rows[4];

static int parse(const char *text) {
    return hec_pod_names_parse(text, strlen(text), rows, 4);
}

TEST(names_are_those_of_the_metadata) {
    assert_int_equal(parse("{\"items\":[{\"metadata\":{\"name\":\"train-0\",\"namespace\":\"ml\",\"uid\":\"" UID "\"}},"
                           "{\"metadata\":{\"name\":\"api\",\"namespace\":\"kube-system\",\"uid\":\"x\","
                           "\"annotations\":{\"kubernetes.io/config.hash\":\"00112233445566778899aabbccddeeff\"}}}]}"),
                     2);
    assert_string_equal(rows[0].uid, UID);
    assert_string_equal(rows[0].pod_namespace, "ml");
    assert_string_equal(rows[0].pod, "train-0");
    assert_string_equal(rows[1].uid, "00112233445566778899aabbccddeeff");
}

TEST(what_is_no_name_is_left_out) {
    static const char *const none[] = {
        "{\"items\":[]}",
        "{\"items\":[1,null,\"x\",[]]}",
        "{\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}]}",
        "{\"items\":[{\"metadata\":{\"name\":\"A\\\"\",\"namespace\":\"b\",\"uid\":\"" UID "\"}}]}",
        "{\"items\":[{\"metadata\":{\"name\":\"\",\"namespace\":\"b\",\"uid\":\"" UID "\"}}]}",
        "{\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"" UID UID "\"}}]}",
    };
    static const char *const broken[] = {"", "{", "[]", "{}", "{\"items\":{}}", "{\"items\":[]}x"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_int_equal(parse(none[i]), 0);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        assert_int_equal(parse(broken[i]), HEC_ERR_CORRUPT);
    char many[1024] = "{\"items\":[";
    for (int i = 0; i < 6; i++)
        strcat(many, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"" UID "\"}},");
    many[strlen(many) - 1] = '\0';
    assert_int_equal(parse(strcat(many, "]}")), 4);
}

TEST(outside_kubernetes_nobody_is_asked) {
    struct hec_pod_names *names = NULL;
    struct hec_tenant tenant = {0};
    unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(hec_pod_names_start("/nowhere", &names, NULL), HEC_ERR_NOTFOUND);
    assert_null(names);
    assert_false(hec_pod_names_find(NULL, UID, &tenant));
    hec_pod_names_stop(NULL);
}
