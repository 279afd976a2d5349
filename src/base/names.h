/* Stable names of enumerators. */
#pragma once

/* const char *function(type value): the name at its place, in the order of the enumerators; "?" out of range. */
#define HEC_NAME_OF(function, type, ...)                                                                               \
    const char *function(type value) {                                                                                 \
        static const char *const names[] = {__VA_ARGS__};                                                              \
        return (unsigned)value < sizeof names / sizeof names[0] ? names[value] : "?";                                  \
    }
