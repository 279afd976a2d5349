#include "diagnose/view/view.h"

#include <stdlib.h>
#include <string.h>

size_t hec_view_merge_states(int64_t (*cells)[HEC_STATE_COUNT], size_t count, size_t by) {
    size_t left = 0;
    for (size_t i = 0; i < count; i += by, left++) {
        int64_t sum[HEC_STATE_COUNT] = {0};
        for (size_t k = i; k < count && k < i + by; k++)
            for (int s = 0; s < HEC_STATE_COUNT; s++)
                sum[s] += cells[k][s];
        memcpy(cells[left], sum, sizeof sum);
    }
    return left;
}

static struct hec_view_states *states_of(struct hec_view *view, int device, int64_t from_ns) {
    for (int i = 0; i < view->state_count; i++)
        if (view->states[i].device == device)
            return &view->states[i];
    if (view->state_count == HEC_VIEW_DEVICES)
        return NULL;
    struct hec_view_states *s = &view->states[view->state_count++];
    int64_t(*cells)[HEC_STATE_COUNT] = s->cells; /* of pieces that do not count any more */
    *s = (struct hec_view_states){.device = device, .cells = cells, .capacity = view->state_cells};
    s->from_ns = from_ns < 0 ? from_ns : 0;
    int64_t length_ns = view->duration_ns - s->from_ns, count = (int64_t)view->state_cells;
    s->step_ns = length_ns > count ? (length_ns - 1) / count + 1 : 1;
    if (!s->cells)
        s->cells = malloc(s->capacity * sizeof *s->cells);
    return s;
}

/* Where the run's end was not known, or activity goes on beyond it: cells become twice as long. */
static void reach(struct hec_view_states *s, int64_t end_ns) {
    while ((end_ns - s->from_ns - 1) / s->step_ns >= (int64_t)s->capacity) {
        s->count = hec_view_merge_states(s->cells, s->count, 2);
        s->step_ns *= 2;
    }
    size_t needed = (size_t)((end_ns - s->from_ns - 1) / s->step_ns) + 1;
    if (needed > s->count)
        memset(s->cells[s->count], 0, (needed - s->count) * sizeof *s->cells);
    s->count = needed > s->count ? needed : s->count;
}

static void add_to_detail(struct hec_view_detail *d, int device, const struct hec_state_piece *piece) {
    if (piece->end_ns <= d->from_ns || piece->start_ns >= d->to_ns || d->piece_count == HEC_VIEW_SPANS || !d->pieces)
        return;
    d->pieces[d->piece_count++] = (struct hec_view_piece){
        .start_ns = piece->start_ns < d->from_ns ? d->from_ns : piece->start_ns,
        .end_ns = piece->end_ns > d->to_ns ? d->to_ns : piece->end_ns,
        .device = device,
        .state = piece->state,
    };
}

int hec_view_piece(struct hec_view *view, int device, const struct hec_state_piece *piece) {
    struct hec_view_states *s = states_of(view, device, piece->start_ns);
    if (!s)
        return 0;
    if (!s->cells)
        return HEC_ERR_NOMEM;
    if (!piece->traced)
        return 0;
    add_to_detail(&view->detail, device, piece);
    if (s->count && piece->start_ns >= s->at_ns && piece->end_ns <= s->at_ns + s->step_ns) { /* most of millions */
        s->cells[s->at][piece->state] += piece->end_ns - piece->start_ns;
        return 0;
    }
    reach(s, piece->end_ns);
    for (int64_t at = piece->start_ns; at < piece->end_ns;) {
        int64_t i = (at - s->from_ns) / s->step_ns, border = s->from_ns + (i + 1) * s->step_ns;
        int64_t to = border < piece->end_ns ? border : piece->end_ns;
        s->cells[i][piece->state] += to - at;
        s->at = (size_t)i;
        s->at_ns = border - s->step_ns;
        at = to;
    }
    return 0;
}

void hec_view_forget(struct hec_view *view) {
    view->state_count = 0;
    view->detail.piece_count = 0;
}
