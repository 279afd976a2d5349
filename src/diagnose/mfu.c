/* Model FLOPs utilisation, by what the Python hooks counted of the model. */
#include "diagnose/build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOPS_MOST 1e30
#define MFU_MOST 1.0 /* what is more is of another model or another part */

static int precision_of(const char *name, size_t length) {
    int i = 0;
    while (i < HEC_PRECISION_COUNT && (strlen(hec_precision_name((enum hec_precision)i)) != length ||
                                       strncmp(hec_precision_name((enum hec_precision)i), name, length) != 0))
        i++;
    return i;
}

static bool read_flops(const char *text, struct hec_model_flops *out) {
    char *end;
    out->counted = strtoll(text, &end, 10);
    out->error = strtod(end, &end);
    if (out->counted <= 0 || !(out->error >= 0 && out->error <= 1))
        return false;
    while (*(text = end + strspn(end, " "))) {
        size_t length = strcspn(text, "=");
        int precision = precision_of(text, length);
        if (precision == HEC_PRECISION_COUNT || !text[length])
            return false;
        double flops = strtod(text + length + 1, &end);
        if (!(flops > 0 && flops <= FLOPS_MOST) || (*end && *end != ' '))
            return false;
        out->step[precision] = flops;
        out->all += flops;
    }
    return out->all > 0;
}

void hec_model_flops_read(const char *text, const char *why, struct hec_model_flops *out) {
    *out = (struct hec_model_flops){.all = 0};
    if (!text || !*text || !read_flops(text, out))
        *out = (struct hec_model_flops){.all = 0};
    if (!out->all)
        hec_copy_text(out->why, sizeof out->why, why);
}

static bool read_products(const char *text, struct hec_model_flops *out) {
    while (*(text += strspn(text, " "))) {
        char *end;
        size_t length = strcspn(text, "=");
        bool weights = length == strlen("weights") && strncmp(text, "weights", length) == 0;
        int precision = precision_of(text, length);
        if ((!weights && precision == HEC_PRECISION_COUNT) || !text[length])
            return false;
        double amount = strtod(text + length + 1, &end);
        if (!(amount > 0 && amount <= FLOPS_MOST) || (*end && *end != ' '))
            return false;
        if (weights)
            out->weights = amount;
        else
            out->odd[precision] = fmin(amount, out->step[precision]);
        text = end;
    }
    return true;
}

void hec_model_products_read(const char *text, struct hec_model_flops *out) {
    struct hec_model_flops read = *out;
    if (text && out->all > 0 && read_products(text, &read))
        *out = read;
}

/* Seconds that a step's arithmetic takes at the peaks of a part; NAN where one is not known. */
static double peak_seconds(const struct hec_model_flops *flops, const struct hec_part *part) {
    double seconds = 0;
    for (int i = 0; i < HEC_PRECISION_COUNT && part; i++) {
        double peak = part->peak_tflops[i];
        if (i == HEC_PRECISION_TF32 && peak == 0) /* older than TF32 */
            peak = part->peak_tflops[HEC_PRECISION_FP32];
        if (flops->step[i] > 0)
            seconds += peak > 0 ? flops->step[i] / (peak * 1e12) : NAN;
    }
    return part ? seconds : NAN;
}

/* How many devices a process shares its steps' arithmetic out to, this one among them; 0 unknown. The hooks' figure is of one process,
 * and of all where they are the ranks of a job. */
static int devices_of_process(const struct hec_summary *s, int index) {
    const struct hec_job_diagnosis *job = &s->job;
    int used = 0, number = hec_rank_of(job->ranks, job->rank_count, index);
    for (int i = 0; i < s->device_count; i++)
        used += s->devices[i].readings.used;
    if (job->rank_count <= 1 && job->size <= 1)
        return used;
    for (int i = 0; number >= 0 && job->rank_count <= job->size && i < job->rank_count; i++)
        if (job->ranks[i].number == number)
            return __builtin_popcountll(job->ranks[i].devices);
    return 0;
}

void hec_mfu_find(struct hec_summary *s) {
    const struct hec_loop *loop = &s->loop;
    bool found = s->steps.source == HEC_STEP_OPTIMIZER || s->steps.source == HEC_STEP_MODULE;
    for (int i = 0; i < s->device_count; i++) {
        struct hec_device_diagnosis *d = &s->devices[i];
        const struct hec_part *part = hec_part_find(d->readings.device.name);
        int devices = devices_of_process(s, d->readings.device.index);
        d->mfu = NAN;
        if (!d->readings.used || !found || !s->flops.all || !loop->known || !devices ||
            !(loop->seconds[HEC_RUN_LOOP] > 0))
            continue;
        double mfu = peak_seconds(&s->flops, part) * (double)loop->steps / loop->seconds[HEC_RUN_LOOP] / devices;
        d->mfu = mfu <= MFU_MOST ? mfu : NAN;
    }
}
