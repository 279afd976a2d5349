#include "top/view.h"

#include <stdio.h>
#include <string.h>

enum hec_top_sort hec_top_sort_find(const char *name) {
    static const char *const names[HEC_TOP_SORT_COUNT] = {"watts", "joules", "memory", "sm",
                                                          "pid",   "user",   "gpu",    "command"};
    int sort = 0;
    while (sort < HEC_TOP_SORT_COUNT && strcmp(name, names[sort]) != 0)
        sort++;
    return (enum hec_top_sort)sort;
}

static void sort_by(struct hec_top_view *view, int sort) {
    view->sort = (enum hec_top_sort)((sort + HEC_TOP_SORT_COUNT) % HEC_TOP_SORT_COUNT);
    view->backwards = false;
}

/* Only ASCII is typed: what is beyond it is found by the part before it. */
static bool type(struct hec_top_view *view, int key) {
    size_t length = strlen(view->filter);
    if (key == HEC_TOP_KEY_ENTER)
        view->typing = false;
    else if (key == HEC_TOP_KEY_ESCAPE)
        *view = (struct hec_top_view){.sort = view->sort,
                                      .backwards = view->backwards,
                                      .devices_only = view->devices_only,
                                      .paused = view->paused};
    else if (key == HEC_TOP_KEY_BACKSPACE && length > 0)
        view->filter[length - 1] = '\0';
    else if (key >= ' ' && key < 0x7f && length + 1 < sizeof view->filter)
        snprintf(view->filter + length, 2, "%c", key);
    else
        return false;
    view->scroll = 0;
    return true;
}

bool hec_top_key(struct hec_top_view *view, int key) {
    if (view->typing)
        return type(view, key);
    if (view->help) { /* any key leaves it */
        view->help = false;
        return true;
    }
    switch (key) {
    case 'q':
    case 'Q':
        view->quit = true;
        break;
    case 'h':
    case '?':
        view->help = true;
        break;
    case ' ':
        view->paused = !view->paused;
        break;
    case 'd':
        view->devices_only = !view->devices_only;
        view->scroll = 0;
        break;
    case '/':
        view->typing = true;
        break;
    case HEC_TOP_KEY_ESCAPE:
        view->filter[0] = '\0';
        break;
    case 'P':
        sort_by(view, HEC_TOP_WATTS);
        break;
    case 'J':
        sort_by(view, HEC_TOP_JOULES);
        break;
    case 'M':
        sort_by(view, HEC_TOP_MEMORY);
        break;
    case 'N':
        sort_by(view, HEC_TOP_PID);
        break;
    case '<':
    case HEC_TOP_KEY_LEFT:
        sort_by(view, (int)view->sort - 1);
        break;
    case '>':
    case HEC_TOP_KEY_RIGHT:
        sort_by(view, (int)view->sort + 1);
        break;
    case 'I':
    case 'R':
        view->backwards = !view->backwards;
        break;
    case HEC_TOP_KEY_UP:
        view->scroll--;
        break;
    case HEC_TOP_KEY_DOWN:
        view->scroll++;
        break;
    case HEC_TOP_KEY_PAGE_UP:
        view->scroll -= view->page;
        break;
    case HEC_TOP_KEY_PAGE_DOWN:
        view->scroll += view->page;
        break;
    case HEC_TOP_KEY_HOME:
        view->scroll = 0;
        break;
    case HEC_TOP_KEY_END:
        view->scroll = 1 << 20; /* the layout cuts it */
        break;
    default:
        return false;
    }
    return true;
}
