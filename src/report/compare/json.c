/* A comparison for programs: compare.def gives its fields. */
#define HEC_JSON_TABLE "report/compare/compare.def"
#include "report/compare/words.h"
#include "report/json_names.h"
#include "report/json_print.h"
#include "report/json_roots.h"
#include "report/json_values.h"

#include <string.h>

static json_t *notes_of(const struct hec_versus *v) {
    char notes[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE];
    return strings_of(notes[0], sizeof notes[0], hec_versus_notes(v, notes));
}

#include "report/json_objects.h"

json_t *hec_versus_root(const struct hec_versus *versus) {
    struct hec_answer answer = hec_versus_answer(versus);
    return json_comparison(versus, &answer);
}

int hec_versus_json(const struct hec_versus *versus, struct hec_buf *out) {
    return hec_json_print(hec_versus_root(versus), out);
}

#include "report/json_schema.h"

int hec_versus_schema(struct hec_buf *out) {
    return HEC_JSON_SCHEMA(out, .id = "urn:hec:compare:1", .title = "HEC comparison",
                           .description = "What `hec compare --json` prints. Missing is null, never 0.",
                           .root = "comparison");
}
