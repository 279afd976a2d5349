/* A node at one instant for programs: json.def gives the fields. */
#pragma once

#include "top/state.h"
#include "top/view.h"

/* One line. HEC_ERR_NOMEM, HEC_ERR_LIMIT. */
int hec_top_json(const struct hec_top_state *state, const struct hec_top_view *view, struct hec_buf *out);
int hec_top_schema(struct hec_buf *out);
