#include "cli/trial_of.h"

#include <math.h>

static struct hec_trial_block block_of(const struct hec_steady_block *b) {
    return (struct hec_trial_block){.seconds = b->seconds, .joules = b->joules, .units = b->units, .steps = b->steps};
}

/* Of a run that did not come to its end the whole is not known. */
void hec_trial_of(const struct hec_summary *s, struct hec_trial_block *blocks, struct hec_trial *out) {
    static const struct hec_trial_block unknown = {NAN, NAN, NAN, NAN};
    bool whole = s->complete || s->imported[0];
    *out = (struct hec_trial){
        .whole = unknown, .run = unknown, .block = blocks, .block_count = s->blocks.count, .pair = -1};
    for (int i = 0; i < s->blocks.count; i++)
        blocks[i] = block_of(&s->blocks.block[i]);
    if (s->blocks.count)
        out->whole = block_of(&s->blocks.whole);
    if (whole) {
        out->run.seconds = s->seconds;
        out->run.joules = s->joules;
        out->run.units = s->units[0].is_default ? NAN : s->units[0].count;
        out->run.steps = s->timeline.steps.count ? (double)s->timeline.steps.count : NAN;
    }
}
