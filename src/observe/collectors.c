#include "observe/collector.h"

#define IN(collector) &collector,
#define OUT(collector)

const struct hec_collector *const *hec_collectors_of(enum hec_observer observer) {
    static const struct hec_collector *const run[] = {
#define HEC_COLLECTOR(source, run, untraced, node, screen) run(hec_collector_##source)
#include "observe/collectors.def"
#undef HEC_COLLECTOR
        NULL};
    static const struct hec_collector *const untraced[] = {
#define HEC_COLLECTOR(source, run, untraced, node, screen) untraced(hec_collector_##source)
#include "observe/collectors.def"
#undef HEC_COLLECTOR
        NULL};
    static const struct hec_collector *const node[] = {
#define HEC_COLLECTOR(source, run, untraced, node, screen) node(hec_collector_##source)
#include "observe/collectors.def"
#undef HEC_COLLECTOR
        NULL};
    static const struct hec_collector *const screen[] = {
#define HEC_COLLECTOR(source, run, untraced, node, screen) screen(hec_collector_##source)
#include "observe/collectors.def"
#undef HEC_COLLECTOR
        NULL};
    static const struct hec_collector *const *const lists[] = {
        [HEC_OBSERVER_RUN] = run,
        [HEC_OBSERVER_UNTRACED] = untraced,
        [HEC_OBSERVER_NODE] = node,
        [HEC_OBSERVER_SCREEN] = screen,
    };
    return lists[observer];
}
