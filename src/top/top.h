/* hec top: a node's devices and processes on a terminal, as they are now. It lives in a library of its own (lib/hec/libhectop.so),
 * so that nothing else loads ncurses; src/cli/top.c loads it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEC_TOP_LIBRARY "hec/libhectop.so"
#define HEC_TOP_ENTRY "hec_top_main"
#define HEC_TOP_SORTS "watts joules memory sm pid user gpu command" /* as enum hec_top_sort */

struct hec_top_options {
    int64_t interval_ns;
    const char *nvml_path; /* of the simulated machine; NULL: the system's */
    const char *filter;    /* NULL: every process */
    const char *sort;      /* one of HEC_TOP_SORTS; NULL: the first */
    bool once, json;       /* once: one snapshot, then leave; json: objects, a line each */
    bool waste;            /* who wastes most, instead of processes */
    bool schema;           /* print that of the objects, and leave */
    bool color, utf8;
    int columns; /* of lines that do not go to a screen; 0: as many as they need */
};

/* Until the user leaves, or SIGTERM, SIGINT or SIGHUP. Returns the exit status. */
int hec_top_main(const struct hec_top_options *options);
