#include "observe/collector.h"

#define IN(collector) &collector,
#define OUT(collector)

const struct hec_collector *const *hec_collectors_of(enum hec_observer observer) {
#define HEC_COLLECTOR(source, run, untraced, window, attached, node, screen) run(hec_collector_##source)
    static const struct hec_collector *const of_run[] = {
#include "observe/collectors.def"
        NULL};
#undef HEC_COLLECTOR
#define HEC_COLLECTOR(source, run, untraced, window, attached, node, screen) untraced(hec_collector_##source)
    static const struct hec_collector *const of_untraced[] = {
#include "observe/collectors.def"
        NULL};
#undef HEC_COLLECTOR
#define HEC_COLLECTOR(source, run, untraced, window, attached, node, screen) window(hec_collector_##source)
    static const struct hec_collector *const of_window[] = {
#include "observe/collectors.def"
        NULL};
#undef HEC_COLLECTOR
#define HEC_COLLECTOR(source, run, untraced, window, attached, node, screen) attached(hec_collector_##source)
    static const struct hec_collector *const of_attached[] = {
#include "observe/collectors.def"
        NULL};
#undef HEC_COLLECTOR
#define HEC_COLLECTOR(source, run, untraced, window, attached, node, screen) node(hec_collector_##source)
    static const struct hec_collector *const of_node[] = {
#include "observe/collectors.def"
        NULL};
#undef HEC_COLLECTOR
#define HEC_COLLECTOR(source, run, untraced, window, attached, node, screen) screen(hec_collector_##source)
    static const struct hec_collector *const of_screen[] = {
#include "observe/collectors.def"
        NULL};
#undef HEC_COLLECTOR
    static const struct hec_collector *const *const lists[] = {
        [HEC_OBSERVER_RUN] = of_run,           [HEC_OBSERVER_UNTRACED] = of_untraced, [HEC_OBSERVER_WINDOW] = of_window,
        [HEC_OBSERVER_ATTACHED] = of_attached, [HEC_OBSERVER_NODE] = of_node,         [HEC_OBSERVER_SCREEN] = of_screen,
    };
    return lists[observer];
}
