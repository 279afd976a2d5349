#include "top/json.h"

#include "top/layout.h"

#define HEC_JSON_TABLE "top/json.def"
#include "report/json_names.h"
#include "report/json_print.h"
#include "report/json_values.h"
#include "report/json_objects.h"

int hec_top_json(const struct hec_top_state *state, const struct hec_top_view *view, struct hec_buf *out) {
    int order[HEC_TOP_PROCESSES_MAX], count = hec_top_order(state, view, order);
    json_t *processes = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(processes, json_process(state, &state->processes[order[i]]));
    int wasteful[HEC_WASTE_TENANTS], waste_count = hec_top_wastes(state, view, wasteful);
    json_t *wastes = json_array();
    for (int i = 0; i < waste_count; i++)
        json_array_append_new(wastes, json_waste(&state->wastes[wasteful[i]]));
    return hec_json_print_line(json_top(state, processes, wastes), out);
}

#include "report/json_schema.h"

int hec_top_schema(struct hec_buf *out) {
    return HEC_JSON_SCHEMA(out, .id = "urn:hec:top:1", .title = "HEC top",
                           .description = "What `hec top --json` prints: an object a line. Missing is null, never 0.",
                           .root = "top");
}
