/* What a program says in its own lines of the work that it does (hec run --unit), laid over the loop and its joules. */
#include "base/clock.h"
#include "diagnose/build.h"
#include "diagnose/meter/joules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX ((size_t)1 << 18) /* of which the median is; of more every nth counts */

struct lines {
    int64_t from_ns, to_ns;    /* that count */
    int64_t first_ns, last_ns; /* of those */
    int64_t all, count;
    double first, sum; /* of their numbers */
    double *numbers;   /* NULL: they are only counted */
    size_t kept, each;
};

static void see(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct lines *l = context;
    double number = (double)value / HEC_PRINTED_PER_UNIT;
    l->all += valid;
    if (!valid || t_ns < l->from_ns || t_ns > l->to_ns)
        return;
    if (!l->count++) {
        l->first_ns = t_ns;
        l->first = number;
    }
    l->last_ns = t_ns;
    l->sum += number;
    if (l->numbers && (size_t)(l->count - 1) % l->each == 0 && l->kept < NUMBERS_MAX)
        l->numbers[l->kept++] = number;
}

static int read_lines(struct hec_build *b, int index, int64_t from_ns, int64_t to_ns, struct lines *out,
                      struct hec_why *why) {
    *out = (struct lines){.from_ns = from_ns, .to_ns = to_ns};
    return hec_meter_read(&b->meter, HEC_PRINTED, index, see, out, why);
}

static int median(struct hec_build *b, int index, struct lines *lines, double *out, struct hec_why *why) {
    size_t each = (size_t)lines->count / NUMBERS_MAX + 1;
    *lines = (struct lines){.from_ns = lines->from_ns, .to_ns = lines->to_ns, .each = each};
    lines->numbers = malloc(NUMBERS_MAX * sizeof *lines->numbers);
    int err = lines->numbers ? hec_meter_read(&b->meter, HEC_PRINTED, index, see, lines, why) : HEC_ERR_NOMEM;
    *out = err || !lines->kept ? NAN : hec_quantiles_of(lines->numbers, lines->kept).median;
    free(lines->numbers);
    lines->numbers = NULL;
    return err;
}

/* Watts of the used devices from one instant to another; NAN unknown. */
static int watts(struct hec_build *b, int64_t from_ns, int64_t to_ns, double *mean, double *bound,
                 struct hec_why *why) {
    const int64_t edge[2] = {from_ns, to_ns};
    double joules = 0, bounds = 0, seconds = (double)(to_ns - from_ns) / HEC_NS_PER_S;
    int used = 0, err = 0;
    for (int i = 0; i < b->out->device_count && !err; i++) {
        const struct hec_device_summary *d = &b->out->devices[i].readings;
        struct hec_joules of = {NAN, NAN};
        if (!d->used)
            continue;
        err = d->energy.valid ? hec_meter_joules(&b->meter, d, edge, 1, &of, why) : 0;
        joules += of.joules;
        bounds += of.bound;
        used++;
    }
    bool known = used && seconds > 0 && bounds <= HEC_PHASE_BOUND_MAX * joules;
    *mean = known ? joules / seconds : NAN;
    *bound = known ? bounds / seconds : NAN;
    return err;
}

static int find(struct hec_build *b, int index, struct hec_printed_summary *p, struct hec_why *why) {
    const struct hec_loop *loop = &b->out->loop;
    int64_t from_ns = llround(loop->seconds[HEC_RUN_SETUP] * HEC_NS_PER_S);
    int64_t to_ns = from_ns + llround(loop->seconds[HEC_RUN_LOOP] * HEC_NS_PER_S);
    int64_t least = p->unit.rate ? 1 : 2; /* of counts, the first one's time began before it */
    struct lines lines;
    int err = read_lines(b, index, from_ns, to_ns, &lines, why);
    p->lines = lines.all;
    p->of_loop = loop->known && lines.count >= least;
    if (!err && !p->of_loop)
        err = read_lines(b, index, INT64_MIN, INT64_MAX, &lines, why);
    double mean = NAN, bound = NAN, seconds = (double)(lines.last_ns - lines.first_ns) / HEC_NS_PER_S;
    p->used = lines.count;
    if (!err && p->unit.rate && lines.count)
        err = median(b, index, &lines, &p->per_second, why);
    else if (lines.count >= least && seconds > 0)
        p->per_second = (lines.sum - lines.first) / seconds;
    if (!err && p->of_loop && p->unit.rate)
        err = watts(b, from_ns, to_ns, &mean, &bound, why);
    else if (!err && lines.count > 1)
        err = watts(b, lines.first_ns, lines.last_ns, &mean, &bound, why);
    if (p->per_second > 0) {
        p->joules_per_unit = mean / p->per_second;
        p->joules_per_unit_bound = bound / p->per_second;
    }
    return err;
}

int hec_printed_find(struct hec_build *b, struct hec_why *why) {
    struct hec_summary *out = b->out;
    const char *rest = b->input->printed;
    int err = 0;
    hec_copy_text(out->printed_from, sizeof out->printed_from, b->input->printed_from);
    while (rest && *rest && out->printed_count < HEC_PRINTED_MAX && !err) {
        struct hec_printed_summary *p = &out->printed[out->printed_count];
        char line[HEC_PRINTED_TEXT];
        struct hec_why damaged;
        size_t length = strcspn(rest, "\n");
        *p = (struct hec_printed_summary){.per_second = NAN, .joules_per_unit = NAN, .joules_per_unit_bound = NAN};
        snprintf(line, sizeof line, "%.*s", (int)length, rest);
        rest += length + (rest[length] == '\n');
        if (hec_printed_parse(line, &p->unit, &damaged) < 0)
            break; /* its number is of a list that cannot be read */
        err = find(b, out->printed_count++, p, why);
    }
    return err;
}
