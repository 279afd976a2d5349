/* The hash of what comes from outside: a function of the bytes, spread over a table's places, and nobody's to know before. */
#include "base/hash.h"
#include "unit.h"

/* after the four above */
#include <inttypes.h>

static char *program;

static void test_function_of_the_bytes(void **state) {
    (void)state;
    char a[64], b[65];
    memset(a, 'x', sizeof a);
    memset(b, 'x', sizeof b);
    for (size_t length = 0; length <= sizeof a; length++) {
        assert_true(hec_hash(a, length) == hec_hash(b + 1, length)); /* wherever they lie */
        for (size_t other = 0; other < length; other++)
            assert_true(hec_hash(a, length) != hec_hash(a, other));
        for (size_t bit = 0; bit < 8 * length; bit++) {
            b[bit / 8] ^= (char)(1 << bit % 8);
            assert_true(hec_hash(a, length) != hec_hash(b, length));
            b[bit / 8] ^= (char)(1 << bit % 8);
        }
    }
}

/* Numbers in steps of 2^shift, 64 for each place in the mean: 86 more are ten standard deviations. */
static void test_spread(void **state) {
    (void)state;
    for (int shift = 0; shift < 48; shift++) {
        int count[1024] = {0};
        for (uint64_t i = 0; i < 65536; i++) {
            uint64_t key = i << shift;
            count[hec_hash(&key, sizeof key) & 1023]++;
        }
        for (int i = 0; i < 1024; i++)
            assert_in_range(count[i], 10, 150);
    }
}

static void test_another_process_has_another_key(void **state) {
    (void)state;
    char command[4200], theirs[32] = "", ours[32];
    snprintf(command, sizeof command, "'%s' print", program);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(theirs, sizeof theirs, pipe));
    assert_int_equal(pclose(pipe), 0);
    snprintf(ours, sizeof ours, "%" PRIx64 "\n", hec_hash("key", 3));
    assert_true(strlen(theirs) > 4);
    assert_string_not_equal(theirs, ours);
}

int main(int argc, char **argv) {
    if (argc > 1)
        return printf("%" PRIx64 "\n", hec_hash("key", 3)) < 0;
    program = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_function_of_the_bytes),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_another_process_has_another_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
