/* The bytes of a run file. */
#ifndef HEC_STORE_IMAGE_H
#define HEC_STORE_IMAGE_H

#include <stddef.h>

struct hec_image {
    unsigned char *bytes; /* malloc'ed; NULL: there are none */
    size_t length;
};

#endif
