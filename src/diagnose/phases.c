#include "diagnose/build.h"
#include "diagnose/meter/joules.h"
#include "diagnose/timeline/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct hec_phases {
    struct hec_summary *out;
    uint32_t name[HEC_SUMMARY_PHASES_MAX]; /* id in the timeline; 0: it has no activities */
    struct hec_meter_part part[HEC_SUMMARY_PHASES_MAX];
};

/* In ascending order of start. */
static int take_activities(void *to, const struct hec_activity *activities, size_t count) {
    struct hec_phases *p = to;
    for (size_t k = 0; k < count; k++)
        for (int i = 0; i < p->out->phase_count && activities[k].kind == HEC_ACTIVITY_PHASE; i++)
            if (activities[k].name && p->name[i] == activities[k].name)
                hec_meter_part_add(&p->part[i], activities[k].start_ns, activities[k].end_ns);
    return 0;
}

int hec_phases_begin(const struct hec_timeline_tables *tables, int64_t end_ns, struct hec_summary *out,
                     struct hec_phases **phases, struct hec_pass_consumer *consumer) {
    for (int i = 0; i < out->phase_count; i++) {
        out->phases[i].joules = out->phases[i].bound_joules = NAN;
        out->phases[i].energy = HEC_PHASE_ENERGY_NO_TOTAL;
    }
    *phases = NULL;
    *consumer = (struct hec_pass_consumer){0};
    if (!out->phase_count || end_ns <= 0)
        return HEC_OK;
    struct hec_phases *p = calloc(1, sizeof *p);
    float *shares = calloc((size_t)out->phase_count * HEC_METER_BINS, sizeof *shares);
    if (!p || !shares) {
        free(p);
        free(shares);
        return HEC_ERR_NOMEM;
    }
    p->out = out;
    for (int i = 0; i < out->phase_count; i++) {
        p->part[i] = (struct hec_meter_part){.end_ns = end_ns, .share = shares + (size_t)i * HEC_METER_BINS};
        for (uint32_t id = 1; id < tables->name_count && !p->name[i]; id++)
            if (strncmp(out->phases[i].name, hec_timeline_name(tables, id), sizeof out->phases[i].name) == 0)
                p->name[i] = id;
    }
    *phases = p;
    *consumer = hec_stage_consumer(HEC_STAGE_PHASES, p, take_activities);
    return HEC_OK;
}

static void settle(const struct hec_meter_part *part, struct hec_phase_summary *phase) {
    if (!isfinite(part->of.joules) || !isfinite(part->of.bound) || part->seconds <= 0)
        phase->energy = HEC_PHASE_ENERGY_NO_POWER;
    else if (part->of.bound > HEC_PHASE_BOUND_MAX * part->of.joules)
        phase->energy = HEC_PHASE_ENERGY_SHORT;
    else {
        phase->energy = HEC_PHASE_ENERGY_KNOWN;
        phase->joules = part->of.joules;
        phase->bound_joules = part->of.bound;
    }
}

int hec_phases_end(struct hec_phases *p, struct hec_meter *meter, struct hec_why *why) {
    int err = HEC_OK;
    if (!p || !isfinite(p->out->joules))
        return HEC_OK;
    for (int i = 0; i < p->out->device_count && !err; i++)
        if (p->out->devices[i].readings.used)
            err = hec_meter_parts(meter, &p->out->devices[i].readings, p->part, p->out->phase_count, why);
    for (int i = 0; i < p->out->phase_count && !err; i++)
        settle(&p->part[i], &p->out->phases[i]);
    return err;
}

void hec_phases_free(struct hec_phases *p) {
    if (p)
        free(p->part[0].share);
    free(p);
}
