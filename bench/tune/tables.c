/* What the tuner of `hec run --tune` (src/prove/tune.h) finds on measured tables of trainings under power limits, and what it costs.
 * usage: tables [--runs N] [--verbose] CSV...
 *
 * Each configuration of a table (data set, network, batch, optimizer) is a program whose own limit is the highest; each row is the truth
 * about one limit. A program is played N times, 10,000 of its own steps long; a block is 3 steps that are left out and 10 that count. The
 * tables have each row once, so noise is added: blocks differ by 0.6 % in time and in joules, as blocks of two programs on H200s did
 * (docs/tune.md), neighbours alike (0.5); one in fifty by five times that; steps by 1 % more; the pace drifts by 1 % to and fro.
 *
 * A null configuration draws less at its own limit than the lowest limit is: none of them can do anything, whatever the table has measured.
 * In a sham program, beside those, every limit has the row of the highest, also where it draws more.
 *
 * The last line is JSON:
 *   runs, delta, harm_violations      runs in which the true delay by trying passed its bound at any step; delta: how many may, as a share
 *   null_runs, null_claims            of null configurations, and those that claim a saving
 *   sham_runs, sham_claims            the same of sham programs
 *   fraction_of_bounded_best_median   what is saved in the end by what the best row saves that is at most 5 % slower
 *   fraction_of_bounded_best_mean
 *   slower_than_allowed               share of the others that end more than 5 % slower by their row
 *   delay_of_sweep_median             what trying lost, by what Zeus' sweep loses: 50 steps at each limit */
#include "tests/unit/tuned_program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS_MOST 1024
#define STEPS 10000.0
#define DELTA 0.01
#define SWEEP_STEPS 50

struct program {
    char name[256];
    struct tuned_program tuned;
};

static struct program programs[PROGRAMS_MOST];
static int program_count;

/* ---- tables ---- */

static void fail(const char *path, int line, const char *why) {
    fprintf(stderr, "tables: %s:%d: %s\n", path, line, why);
    exit(1);
}

static struct program *program_of(const char *name) {
    for (int i = 0; i < program_count; i++)
        if (strcmp(programs[i].name, name) == 0)
            return &programs[i];
    if (program_count == PROGRAMS_MOST)
        return NULL;
    struct program *p = &programs[program_count++];
    snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

static int column(char *header, const char *name) {
    int i = 0;
    for (char *rest = header, *field; (field = strsep(&rest, ",")); i++)
        if (strcmp(field, name) == 0)
            return i;
    return -1;
}

static void read_table(const char *path) {
    static const char *const wanted[] = {"dataset",     "network",        "batch_size",   "optimizer",
                                         "power_limit", "time_per_epoch", "average_power"};
    enum { WANTED = sizeof wanted / sizeof wanted[0] };
    char text[1024], copy[1024];
    int at[WANTED], line = 1;
    FILE *file = fopen(path, "r");
    if (!file || !fgets(text, sizeof text, file))
        fail(path, 0, "cannot be read");
    text[strcspn(text, "\r\n")] = '\0';
    for (int w = 0; w < WANTED; w++) {
        memcpy(copy, text, sizeof copy);
        if ((at[w] = column(copy, wanted[w])) < 0) {
            snprintf(copy, sizeof copy, "no column %s", wanted[w]);
            fail(path, line, copy);
        }
    }
    while (line++, fgets(text, sizeof text, file)) {
        char *fields[WANTED] = {NULL}, *rest = text, *field, name[256];
        text[strcspn(text, "\r\n")] = '\0';
        if (!text[0])
            continue;
        for (int i = 0; (field = strsep(&rest, ",")); i++)
            for (int w = 0; w < WANTED; w++)
                if (at[w] == i)
                    fields[w] = field;
        if (!fields[4] || !fields[5] || !fields[6])
            fail(path, line, "a row that is too short");
        struct tuned_row row = {atof(fields[4]), atof(fields[5]), atof(fields[6])};
        snprintf(name, sizeof name, "%s %s,%s,%s,%s", path, fields[0], fields[1], fields[2], fields[3]);
        struct program *found = program_of(name);
        if (!found || found->tuned.count == HEC_TUNE_SETTINGS)
            fail(path, line, "too many rows");
        struct tuned_program *p = &found->tuned;
        if (!(row.limit > 0 && row.seconds > 0 && row.watts > 0))
            fail(path, line, "a row with a figure that is not above 0");
        int i = p->count++;
        for (; i > 0 && p->rows[i - 1].limit < row.limit; i--)
            p->rows[i] = p->rows[i - 1];
        p->rows[i] = row;
    }
    fclose(file);
}

/* ---- what it comes to ---- */

static double saved(const struct tuned_program *p, int i) {
    return 1 - p->rows[i].seconds * p->rows[i].watts / (p->rows[0].seconds * p->rows[0].watts);
}

static double slower(const struct tuned_program *p, int i) {
    return p->rows[i].seconds / p->rows[0].seconds - 1;
}

static double bounded_best(const struct tuned_program *p) {
    double best = 0;
    for (int i = 1; i < p->count; i++)
        if (slower(p, i) <= TUNED_SLOWDOWN_MOST)
            best = fmax(best, saved(p, i));
    return best;
}

static double sweep_loses(const struct tuned_program *p) {
    double lost = 0;
    for (int i = 1; i < p->count; i++)
        lost += SWEEP_STEPS * slower(p, i);
    return lost;
}

static bool is_null(const struct tuned_program *p) {
    return p->rows[0].watts < p->rows[p->count - 1].limit;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count == 0 ? NAN : count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double mean(const double *values, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i] / count;
    return count ? sum : NAN;
}

static void put(const char *name, double value, bool last) {
    if (isfinite(value))
        printf("\"%s\": %.4g%s", name, value, last ? "}\n" : ", ");
    else
        printf("\"%s\": null%s", name, last ? "}\n" : ", ");
}

int main(int argc, char **argv) {
    int runs = 20, tables = 0;
    bool verbose = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
            runs = atoi(argv[++i]);
        else
            read_table(argv[i]), tables++;
    }
    if (!tables || runs < 1) {
        fputs("usage: tables [--runs N] [--verbose] CSV...\n", stderr);
        return 2;
    }
    double *fractions = calloc((size_t)(program_count * runs), sizeof *fractions);
    double *delays = calloc((size_t)(program_count * runs), sizeof *delays);
    int all = 0, violations = 0, null_runs = 0, null_claims = 0, sham_runs = 0, sham_claims = 0, found = 0, swept = 0,
        live = 0, too_slow = 0;
    if (!fractions || !delays)
        return 1;
    for (int c = 0; c < program_count; c++) {
        const struct tuned_program *p = &programs[c].tuned;
        struct tuned_program sham = *p;
        for (int i = 1; i < sham.count; i++)
            sham.rows[i] = (struct tuned_row){p->rows[i].limit, p->rows[0].seconds, p->rows[0].watts};
        double best = bounded_best(p), sweep = sweep_loses(p);
        for (int n = 0; n < runs; n++) {
            struct tuned r = tuned_play(p, STEPS), nothing = tuned_play(&sham, STEPS);
            all++;
            violations += r.violated;
            sham_runs++;
            sham_claims += nothing.claimed || nothing.tune.restarts > 0;
            if (is_null(p)) {
                null_runs++;
                null_claims += r.claimed;
            } else {
                live++;
                too_slow += slower(p, r.setting) > TUNED_SLOWDOWN_MOST;
                if (best > 0)
                    fractions[found++] = saved(p, r.setting) / best;
                if (sweep > 0)
                    delays[swept++] = r.lost / sweep;
            }
            if (verbose && n == 0)
                printf("%-70s draws %5.1f W, best %5.1f %%; limit %3.0f W saves %5.1f %%, %4.1f %% slower; lost %5.2f "
                       "steps, the sweep %6.1f; phase %d, restarts %d\n",
                       programs[c].name, p->rows[0].watts, 100 * best, p->rows[r.setting].limit,
                       100 * saved(p, r.setting), 100 * slower(p, r.setting), r.lost, sweep, r.tune.phase,
                       r.tune.restarts);
        }
    }
    printf("{\"runs\": %d, \"delta\": %g, \"harm_violations\": %d, \"null_runs\": %d, \"null_claims\": %d, "
           "\"sham_runs\": %d, \"sham_claims\": %d, ",
           all, DELTA, violations, null_runs, null_claims, sham_runs, sham_claims);
    put("fraction_of_bounded_best_median", median(fractions, found), false);
    put("fraction_of_bounded_best_mean", mean(fractions, found), false);
    put("slower_than_allowed", live ? (double)too_slow / live : NAN, false);
    put("delay_of_sweep_median", median(delays, swept), true);
    free(fractions);
    free(delays);
    return 0;
}
