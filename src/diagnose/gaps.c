#include "diagnose/gaps.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static void close_gap(struct hec_gap_facts *g) {
    double whole = 0;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        whole += g->now[s];
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        g->long_s[s] += whole >= HEC_GAP_LONG_S ? g->now[s] : 0;
    if (!g->open)
        return;
    g->open = false;
    if (g->now[HEC_STATE_STARTUP] > 0) {
        g->loads++;
        for (int s = 0; s < HEC_STATE_COUNT; s++)
            if (s != HEC_STATE_DATA && s != HEC_STATE_CHECKPOINT) {
                g->load_s += g->now[s];
                g->load_state_s[s] += g->now[s];
            }
    }
    memset(g->now, 0, sizeof g->now);
}

static struct hec_gap_facts *facts_of(struct hec_gaps *gaps, int device) {
    for (int i = 0; i < gaps->count; i++)
        if (gaps->list[i].device == device)
            return &gaps->list[i];
    struct hec_gap_facts *grown = realloc(gaps->list, ((size_t)gaps->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    gaps->list = grown;
    grown[gaps->count] = (struct hec_gap_facts){.device = device};
    return &grown[gaps->count++];
}

int hec_gaps_piece(struct hec_gaps *gaps, int device, const struct hec_state_piece *piece) {
    struct hec_gap_facts *g = facts_of(gaps, device);
    int64_t length = piece->end_ns - piece->start_ns;
    if (!g)
        return HEC_ERR_NOMEM;
    if (!piece->traced || !hec_state_idle(piece->state)) {
        close_gap(g);
        g->saving = g->saving && piece->traced && piece->state == HEC_STATE_COPY;
        if (g->saving)
            g->checkpoint_copy_s += (double)length / HEC_NS_PER_S;
        return 0;
    }
    double seconds = (double)length / HEC_NS_PER_S;
    g->saving = piece->state == HEC_STATE_CHECKPOINT;
    g->open = true;
    g->now[piece->state] += seconds;
    if (piece->state == HEC_STATE_HOST && length < HEC_GAP_BRIEF_NS)
        g->brief_host_s += seconds;
    return 0;
}

void hec_gaps_end(struct hec_gaps *gaps) {
    for (int i = 0; i < gaps->count; i++)
        close_gap(&gaps->list[i]);
}

const struct hec_gap_facts *hec_gaps_of(const struct hec_gaps *gaps, int device) {
    for (int i = 0; i < gaps->count; i++)
        if (gaps->list[i].device == device)
            return &gaps->list[i];
    return NULL;
}

void hec_gaps_free(struct hec_gaps *gaps) {
    free(gaps->list);
    gaps->list = NULL;
    gaps->count = 0;
}
