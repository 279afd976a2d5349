/* A day of eight simulated H200s under a budget of watts: as `hec agent --power-budget` divides it (src/act/budget.c), and with an equal
 * limit for each, on the same jobs. usage: day [BUDGET_W [RUNS]]
 *
 * Each GPU has jobs of one class, drawn: what a second of them does (kernels of the simulated GPU, and waiting), how long they take at the
 * GPU's own limit, and how long after the deadline of one the next is due. A job of the class high has to be done as fast as the equal
 * limit allows, one of normal may take a tenth longer, one of low twice as long. A class may be as much slower as the tightest of
 * its deadlines leaves. Readings are what NVML gives: the mean power of the last second, traffic once in ten, the clock of a moment.
 * A new limit holds from the next second on.
 *
 * The last line is JSON: of all runs together, work for a joule against equal limits (with traffic known, and by clocks alone), jobs that
 * missed their deadline, and the longest that the budget was exceeded. */
#include "act/budget.h"
#include "bench/uniform.h"
#include "sim/dvfs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GPUS 8
#define DAY_S 86400
#define JOBS_MOST 4096
#define KINDS 5
#define CONTEXT_W 120.0

static const enum sim_activity kinds[KINDS] = {SIM_GEMM_BF16, SIM_GEMM_FP32, SIM_ELEMENTWISE, SIM_SMALL_KERNELS,
                                               SIM_WAIT_DATA};

struct job {
    int gpu;
    double share[KINDS]; /* of a second at the GPU's own limit */
    double seconds;      /* so many of those */
    double due_s, deadline_s;
    double done, end_s; /* seconds of it; when it was through, NAN: it was not */
};

struct pace { /* of a job under a limit */
    double pace, watts;
    double time[KINDS]; /* shares of time */
    double clock_mhz[KINDS];
    double traffic;
};

static const struct sim_profile *profile;
static struct job jobs[JOBS_MOST];
static int job_count;
static double slack[HEC_POWER_CLASS_COUNT];

static struct pace pace_of(const struct job *job, double limit_w) {
    struct sim_limits limits = {.cap_mw = (int32_t)(limit_w * 1000)}, own = {.cap_mw = profile->power_default_mw};
    struct sim_controller over = {.end_ns = 0, .over_ns = INT64_C(1000000000)};
    struct pace out = {0};
    double takes = 0, joules = 0;
    for (int k = 0; k < KINDS; k++) {
        int32_t wanted = sim_wanted_mw(profile, &own, kinds[k]), held = sim_held_power_mw(profile, limits.cap_mw);
        int32_t mw = wanted > limits.cap_mw ? held : wanted;
        double s = job->share[k] * (double)sim_lasts_ns(profile, &limits, &over, kinds[k], 0, 1000000000) * 1e-9;
        out.time[k] = s;
        out.clock_mhz[k] = sim_clock_mhz(profile, kinds[k], mw);
        takes += s;
        joules += s * mw * 1e-3;
        out.traffic += job->share[k] * sim_activity_info(kinds[k])->counters.dram;
    }
    for (int k = 0; k < KINDS; k++)
        out.time[k] /= takes;
    out.pace = 1 / takes;
    out.traffic /= takes;
    out.watts = joules / takes;
    return out;
}

static enum hec_power_class class_of(int gpu) {
    return gpu < 2 ? HEC_POWER_HIGH : gpu < 5 ? HEC_POWER_NORMAL : HEC_POWER_LOW;
}

static void draw_jobs(double equal_w) {
    static const double longer[HEC_POWER_CLASS_COUNT] = {1.0, 1.1, 2.0};
    for (int c = 0; c < HEC_POWER_CLASS_COUNT; c++)
        slack[c] = INFINITY;
    job_count = 0;
    for (int gpu = 0; gpu < GPUS; gpu++)
        for (double due_s = 600 * uniform(); due_s < DAY_S * 0.9 && job_count < JOBS_MOST;) {
            struct job *job = &jobs[job_count++];
            double sum = 0, waits = uniform() < 0.5 ? 0.05 * uniform() : 0.6 * uniform();
            *job = (struct job){.gpu = gpu, .seconds = 600 * exp(2 * uniform()), .due_s = due_s};
            for (int k = 0; k + 1 < KINDS; k++)
                sum += job->share[k] = -log(1 - uniform()) * (kinds[k] == SIM_SMALL_KERNELS ? 0.3 : 1);
            for (int k = 0; k + 1 < KINDS; k++)
                job->share[k] *= (1 - waits) / sum;
            job->share[KINDS - 1] = waits;
            double takes_s = job->seconds / pace_of(job, equal_w).pace;
            job->deadline_s = due_s + takes_s * longer[class_of(gpu)] + 30;
            due_s = job->deadline_s + 300 * uniform();
            slack[class_of(gpu)] = fmin(slack[class_of(gpu)], takes_s * longer[class_of(gpu)] / job->seconds - 1);
        }
}

struct outcome {
    double joules, work, over_s, longest_over_s, most_w;
    double late[HEC_POWER_CLASS_COUNT], jobs[HEC_POWER_CLASS_COUNT], seconds[HEC_POWER_CLASS_COUNT],
        work_of[HEC_POWER_CLASS_COUNT];
};

static double clock_at_a_moment(const struct pace *pace) {
    double u = uniform();
    int k = 0;
    while (k + 1 < KINDS && (u -= pace->time[k]) > 0)
        k++;
    return pace->clock_mhz[k];
}

enum scheme { EQUAL, SHARED, BY_CLOCKS, SCHEMES };

static struct outcome play(double budget_w, enum scheme scheme) {
    static struct hec_budget budget;
    struct outcome out = {0};
    struct hec_budget_reading readings[GPUS];
    double limits[GPUS], over_s = 0;
    hec_budget_begin(&budget, budget_w);
    for (int c = 0; c < HEC_POWER_CLASS_COUNT; c++)
        budget.slowdown[c] = slack[c];
    for (int gpu = 0; gpu < GPUS; gpu++)
        limits[gpu] = scheme == EQUAL ? budget_w / GPUS : profile->power_default_mw * 1e-3;
    for (int j = 0; j < job_count; j++)
        jobs[j].done = 0, jobs[j].end_s = NAN;
    for (int t = 0; t < DAY_S; t++) {
        double watts = 0;
        for (int gpu = 0; gpu < GPUS; gpu++) {
            struct job *job = NULL;
            for (int j = 0; j < job_count && !job; j++)
                if (jobs[j].gpu == gpu && jobs[j].due_s <= t && isnan(jobs[j].end_s))
                    job = &jobs[j];
            struct pace pace = {.watts = CONTEXT_W};
            if (job) {
                pace = pace_of(job, limits[gpu]);
                job->done += pace.pace;
                out.work += pace.pace;
                if (job->done >= job->seconds)
                    job->end_s = t;
            }
            watts += pace.watts;
            readings[gpu] = (struct hec_budget_reading){
                .there = true,
                .power_class = class_of(gpu),
                .holders = job ? (uint64_t)(job - jobs) + 1 : 0,
                .least_w = profile->power_min_mw * 1e-3,
                .own_w = profile->power_default_mw * 1e-3,
                .watts = pace.watts * (0.99 + 0.02 * uniform()),
                .idle_w = CONTEXT_W,
                .clock_mhz = job ? clock_at_a_moment(&pace) : 1980,
                .traffic = scheme == BY_CLOCKS || t % 10 != gpu ? NAN : pace.traffic * (0.98 + 0.04 * uniform()),
                .busy = job ? 1 - pace.time[KINDS - 1] : 0};
        }
        out.joules += watts;
        over_s = watts > budget_w ? over_s + 1 : 0;
        out.over_s += watts > budget_w;
        out.longest_over_s = fmax(out.longest_over_s, over_s);
        if (t > 1)
            out.most_w = fmax(out.most_w, watts);
        if (scheme != EQUAL)
            hec_budget_divide(&budget, t, readings, GPUS, limits);
    }
    for (int j = 0; j < job_count; j++) {
        enum hec_power_class c = class_of(jobs[j].gpu);
        out.jobs[c]++;
        out.late[c] += !(jobs[j].end_s <= jobs[j].deadline_s);
        if (isfinite(jobs[j].end_s)) {
            out.seconds[c] += jobs[j].end_s - jobs[j].due_s;
            out.work_of[c] += jobs[j].seconds;
        }
    }
    return out;
}

int main(int argc, char **argv) {
    static const char *const names[SCHEMES] = {"equal", "shared", "by clocks"};
    double budget_w = argc > 1 ? atof(argv[1]) : 4800, jobs_all = 0;
    int runs = argc > 2 ? atoi(argv[2]) : 5;
    double gain[SCHEMES] = {0}, late[SCHEMES] = {0}, over_s[SCHEMES] = {0};
    profile = sim_profile_find("h200");
    for (int run = 0; run < runs; run++) {
        double per_joule[SCHEMES];
        draw_jobs(budget_w / GPUS);
        jobs_all += job_count;
        for (int s = 0; s < SCHEMES; s++) {
            struct outcome out = play(budget_w, (enum scheme)s);
            per_joule[s] = out.work / out.joules;
            gain[s] += (per_joule[s] / per_joule[EQUAL] - 1) / runs;
            over_s[s] = fmax(over_s[s], out.longest_over_s);
            printf("%-10s %+5.1f %% work for a joule, most %.0f W, over for %.0f s;", names[s],
                   100 * (per_joule[s] / per_joule[EQUAL] - 1), out.most_w, out.longest_over_s);
            for (int c = 0; c < HEC_POWER_CLASS_COUNT; c++) {
                late[s] += out.late[c];
                printf(" %s %.3f, %.0f of %.0f late%c", hec_power_class_name((enum hec_power_class)c),
                       out.seconds[c] / out.work_of[c], out.late[c], out.jobs[c],
                       c + 1 < HEC_POWER_CLASS_COUNT ? ';' : '\n');
            }
        }
    }
    printf(
        "{\"budget_w\": %.0f, \"runs\": %d, \"jobs\": %.0f, \"gain\": %.4f, \"gain_by_clocks\": %.4f, \"late\": %.0f, "
        "\"late_by_clocks\": %.0f, \"late_equal\": %.0f, \"longest_over_s\": %.0f}\n",
        budget_w, runs, jobs_all, gain[SHARED], gain[BY_CLOCKS], late[SHARED], late[BY_CLOCKS], late[EQUAL],
        over_s[SHARED]);
    return 0;
}
