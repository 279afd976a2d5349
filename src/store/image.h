/* The bytes of a run file. */
#pragma once

#include <stddef.h>

struct hec_image {
    unsigned char *bytes; /* malloc'ed; NULL: there are none */
    size_t length;
};
