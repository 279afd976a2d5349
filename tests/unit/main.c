/* Runs the tests of a file, which registered themselves before main() (unit.h). */
#include "unit.h"

static struct CMUnitTest tests[256];
static size_t count;
static CMFixtureFunction before_each, after_each, before_all, after_all;

void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction before, CMFixtureFunction after) {
    if (count == sizeof tests / sizeof *tests)
        abort();
    tests[count++] = (struct CMUnitTest){name, test, before, after, NULL};
}

void unit_each(CMFixtureFunction before, CMFixtureFunction after) {
    before_each = before;
    after_each = after;
}

void unit_all(CMFixtureFunction before, CMFixtureFunction after) {
    before_all = before;
    after_all = after;
}

int main(void) {
    for (size_t i = 0; i < count; i++) {
        if (tests[i].setup_func || tests[i].teardown_func)
            continue;
        tests[i].setup_func = before_each;
        tests[i].teardown_func = after_each;
    }
    /* no test is a fault of the file, not a success */
    return count ? _cmocka_run_group_tests("tests", tests, count, before_all, after_all) : 1;
}
