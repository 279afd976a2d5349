/* What the user chose to see of the state, and the keys by which. Pure. */
#pragma once

#include <stdbool.h>

enum hec_top_sort {
    HEC_TOP_WATTS,
    HEC_TOP_JOULES,
    HEC_TOP_MEMORY,
    HEC_TOP_SM,
    HEC_TOP_PID,
    HEC_TOP_USER,
    HEC_TOP_GPU,
    HEC_TOP_COMMAND,
    HEC_TOP_SORT_COUNT
};

/* Beyond the characters. */
enum hec_top_key {
    HEC_TOP_KEY_UP = 0x110000,
    HEC_TOP_KEY_DOWN,
    HEC_TOP_KEY_PAGE_UP,
    HEC_TOP_KEY_PAGE_DOWN,
    HEC_TOP_KEY_HOME,
    HEC_TOP_KEY_END,
    HEC_TOP_KEY_LEFT,
    HEC_TOP_KEY_RIGHT,
    HEC_TOP_KEY_BACKSPACE,
    HEC_TOP_KEY_ENTER,
    HEC_TOP_KEY_ESCAPE,
};

struct hec_top_view {
    enum hec_top_sort sort;
    bool backwards;
    bool devices_only, paused, help, quit;
    bool typing; /* the filter */
    char filter[64];
    int scroll,
        page;   /* rows above the first that is shown; how many there were room for. Both as the layout left them */
    bool plain; /* for lines that do not go to a screen: no hints of keys */
};

enum hec_top_sort hec_top_sort_find(const char *name); /* HEC_TOP_SORT_COUNT: there is none */
/* Whether anything changes on the screen. */
bool hec_top_key(struct hec_top_view *view, int key);
