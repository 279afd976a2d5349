/* What a unit test begins with: the headers that cmocka needs before it, those of most tests, and comparisons of its own. */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A test is registered where it is written; tests/unit/main.c runs them in this order. `unit_state` is what its set-up left. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
/* With its own set-up before it and tear-down after it. */
#define TEST_WITH(name, before, after)                                                                                 \
    static void name(void **unit_state);                                                                               \
    __attribute__((constructor)) static void unit_register_##name(void) {                                              \
        unit_add(#name, name, before, after);                                                                          \
    }                                                                                                                  \
    static void name(__attribute__((unused)) void **unit_state)
/* Before and after each test of the file that has none of its own. */
#define EACH_TEST(before, after)                                                                                       \
    __attribute__((constructor)) static void unit_register_each(void) {                                                \
        unit_each(before, after);                                                                                      \
    }
/* Before the first test of the file and after the last. */
#define ALL_TESTS(before, after)                                                                                       \
    __attribute__((constructor)) static void unit_register_all(void) {                                                 \
        unit_all(before, after);                                                                                       \
    }

void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction before, CMFixtureFunction after);
void unit_each(CMFixtureFunction before, CMFixtureFunction after);
void unit_all(CMFixtureFunction before, CMFixtureFunction after);

/* A NAN is near nothing. */
#define assert_near(value, expected, tolerance) unit_assert_near(value, expected, tolerance, __FILE__, __LINE__)
static inline void unit_assert_near(double value, double expected, double tolerance, const char *file, int line) {
    if (fabs(value - expected) <= tolerance)
        return;
    print_error("%.9g is not within %g of %.9g\n", value, tolerance, expected);
    _fail(file, line);
}
