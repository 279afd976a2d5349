/* Which ranks a short table has a row for: those that others wait for, the one that waits most, a usual one, and what differs from that.
 * Of 64 ranks most are alike, and one stands for them. */
#include "base/clock.h"
#include "base/list.h"
#include "diagnose/build.h"

#include <math.h>
#include <stdlib.h>

#define ROWS 8
#define APART 0.10       /* of joules, and of what a rank waits */
#define STEP_APART 0.05  /* of a step */
#define WAITS_LEAST 0.02 /* of the run: less is no difference */
#define HELD_LEAST 0.05  /* of all waiting, and more than an even share */

static double step_of(const struct hec_summary *s, const struct hec_rank *r) {
    const struct hec_device_diagnosis *d = hec_rank_device(s, r);
    return d && d->steps.count ? d->steps.duration.mean : NAN;
}

/* What one lacks of two figures is a difference too. */
static bool near(double a, double b, double share, double least) {
    return isfinite(a) && isfinite(b) ? fabs(a - b) <= fmax(share * fmax(fabs(a), fabs(b)), least)
                                      : isfinite(a) == isfinite(b);
}

static bool alike(const struct hec_summary *s, const struct hec_rank *a, const struct hec_rank *b) {
    return near(a->waited_s, b->waited_s, APART, WAITS_LEAST * s->seconds) &&
           near(step_of(s, a), step_of(s, b), STEP_APART, 0) &&
           near(hec_rank_joules(hec_rank_device(s, a)), hec_rank_joules(hec_rank_device(s, b)), APART, 0);
}

static double known(double value) {
    return isfinite(value) ? value : 0;
}

static int64_t waited(const struct hec_rank *r) {
    return llround(known(r->waited_s) * HEC_NS_PER_S);
}

/* The one that waits as long as most do, of those that hold nobody up; the first where nothing is known of waiting. */
static int usual_of(const struct hec_job_diagnosis *job, int64_t *waited_ns) {
    size_t count = 0;
    int usual = 0;
    for (int i = 0; i < job->rank_count; i++)
        if (!job->ranks[i].holds)
            waited_ns[count++] = waited(&job->ranks[i]);
    qsort(waited_ns, count, sizeof *waited_ns, hec_by_int64);
    while (usual + 1 < job->rank_count &&
           (job->ranks[usual].holds || (count && waited(&job->ranks[usual]) != waited_ns[count / 2])))
        usual++;
    return usual;
}

static int add(struct hec_job_diagnosis *job, int rank, int rows) {
    bool room = rows < ROWS && !job->ranks[rank].in_short_table;
    job->ranks[rank].in_short_table |= room;
    return rows + room;
}

/* Those that hold others up most, first. */
static int add_holders(struct hec_job_diagnosis *job) {
    double held = 0;
    int rows = 0;
    for (int i = 0; i < job->rank_count; i++)
        held += known(job->ranks[i].held_s);
    for (int i = 0; i < job->rank_count; i++)
        job->ranks[i].holds = held > 0 && job->ranks[i].held_s >= fmax(HELD_LEAST, 1.0 / job->rank_count) * held;
    for (int row = 0; row < ROWS / 2; row++) {
        int most = -1;
        for (int i = 0; i < job->rank_count; i++)
            if (job->ranks[i].holds && !job->ranks[i].in_short_table &&
                (most < 0 || job->ranks[i].held_s > job->ranks[most].held_s))
                most = i;
        rows = most < 0 ? rows : add(job, most, rows);
    }
    return rows;
}

int hec_job_alike(const struct hec_summary *s, struct hec_job_diagnosis *job) {
    if (!job->rank_count)
        return HEC_OK;
    int64_t *waited_ns = malloc((size_t)job->rank_count * sizeof *waited_ns);
    if (!waited_ns)
        return HEC_ERR_NOMEM;
    int rows = add_holders(job), most = 0;
    job->usual = usual_of(job, waited_ns);
    for (int i = 0; i < job->rank_count; i++)
        most = waited(&job->ranks[i]) > waited(&job->ranks[most]) ? i : most;
    rows = add(job, job->usual, rows);
    rows = add(job, most, rows);
    for (int i = 0; i < job->rank_count; i++) {
        job->ranks[i].unusual = !alike(s, &job->ranks[i], &job->ranks[job->usual]);
        if (job->ranks[i].unusual || job->rank_count <= ROWS)
            rows = add(job, i, rows);
    }
    free(waited_ns);
    return HEC_OK;
}
