/* What a unit test begins with: the headers that cmocka needs before it, those of most tests, and comparisons of its own. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

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

/* A NAN is near nothing. */
#define assert_near(value, expected, tolerance) unit_assert_near(value, expected, tolerance, __FILE__, __LINE__)
static inline void unit_assert_near(double value, double expected, double tolerance, const char *file, int line) {
    if (fabs(value - expected) <= tolerance)
        return;
    print_error("%.9g is not within %g of %.9g\n", value, tolerance, expected);
    _fail(file, line);
}

#endif
