/* What unmixing is made of, each against a plain reckoning: sums by blocks of time, shares of a window, the response of a sensor, and the
 * gathering of readings that have no error at all. */
#include "diagnose/watts/unmix_state.h"
#include "unit.h"

#define MS INT64_C(1000000)

static uint64_t seed = 3;

static double random_value(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 33) / 2147483648.0;
}

/* ---- sums ---- */

TEST(sums_by_blocks) {
    enum { COLUMNS = 4, CLASSES = 3, ROWS = 500 };
    static double row[ROWS][COLUMNS], weight[ROWS], second[ROWS];
    static int block[ROWS];
    struct hec_gram gram;
    assert_int_equal(hec_gram_init(&gram, COLUMNS), 0);
    assert_int_equal(gram.packed, 10);
    gram.classes = CLASSES;
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < COLUMNS; c++)
            row[i][c] = random_value() < 0.3 ? 0 : random_value() - 0.2;
        weight[i] = 0.1 + random_value();
        second[i] = random_value();
        block[i] = (int)(random_value() * HEC_BLOCKS_MAX);
        hec_gram_add(&gram, block[i], row[i], weight[i], second[i]);
    }
    for (int halves = 0; halves < 3; halves++) {
        for (int b = 0; b < HEC_BLOCKS_MAX; b++) {
            double sum[COLUMNS][COLUMNS] = {{0}}, weights = 0;
            int count = 0;
            for (int i = 0; i < ROWS; i++) {
                if (block[i] >> halves != b)
                    continue;
                for (int c = 0; c < COLUMNS; c++)
                    for (int d = 0; d < COLUMNS; d++)
                        sum[c][d] += weight[i] * row[i][c] * row[i][d];
                weights += weight[i];
                count++;
            }
            const double *at = gram.block + b * gram.packed;
            for (int c = 0; c < COLUMNS; c++)
                for (int d = c; d < COLUMNS; d++)
                    assert_near(*at++, sum[c][d], 1e-12);
            assert_int_equal(gram.count[b], count);
            assert_near(gram.weight[b], weights, 1e-12);
        }
        double seconds = 0, seen[CLASSES] = {0};
        for (int i = 0; i < ROWS; i++) {
            seconds += second[i];
            for (int c = 0; c < CLASSES; c++)
                seen[c] += second[i] * row[i][c];
        }
        assert_near(gram.seconds, seconds, 1e-9);
        for (int c = 0; c < CLASSES; c++)
            assert_near(gram.seen_s[c], seen[c], 1e-9);
        hec_gram_halve(&gram);
    }
    hec_gram_free(&gram);
}

/* An error of a millisecond at each end of a reading of 20 ms moves a share by a twentieth of what the class has there. */
TEST(errors_of_time) {
    struct hec_gram gram;
    const double from[3] = {1, 0, 0}, to[3] = {0.25, 0.75, 0};
    assert_int_equal(hec_gram_init(&gram, 4), 0);
    for (int i = 0; i < 2; i++)
        hec_gram_time(&gram, 3, from, to, 2, 0.02);
    for (int c = 0; c < 3; c++)
        for (int d = 0; d < 3; d++)
            assert_near(gram.timing[c * HEC_GRAM_CLASSES + d], 2 * 2 * (from[c] * from[d] + to[c] * to[d]) / 400,
                        1e-12);
    hec_gram_free(&gram);
}

/* ---- shares ---- */

#define PIECES 3000

static struct {
    int class; /* -1: no piece */
    int64_t start_ns, end_ns;
} piece[PIECES];

static void check_between(const struct hec_unmix_shares *shares, int64_t from_ns, int64_t to_ns) {
    double out[4], is[4] = {0};
    assert_true(hec_unmix_shares_between(shares, from_ns, to_ns, out));
    for (int i = 0; i < PIECES; i++) {
        int64_t from = piece[i].start_ns > from_ns ? piece[i].start_ns : from_ns;
        int64_t to = piece[i].end_ns < to_ns ? piece[i].end_ns : to_ns;
        if (piece[i].class < 0 || from >= to)
            continue;
        is[piece[i].class] += (double)(to - from) * 1e-9;
        is[3] += (double)(to - from) * 1e-9;
    }
    for (int c = 0; c < 4; c++) /* within a bin at each end its mean is taken */
        assert_near(out[c], is[c], 2 * 0.25e-3);
    if ((from_ns - shares->origin_ns) % HEC_SHARES_BIN_NS == 0 && (to_ns - shares->origin_ns) % HEC_SHARES_BIN_NS == 0)
        for (int c = 0; c < 4; c++)
            assert_near(out[c], is[c], 1e-9);
}

TEST(shares_of_any_window) {
    const int64_t origin = -7 * MS;
    struct hec_unmix_shares shares;
    double out[4];
    assert_int_equal(hec_unmix_shares_init(&shares, 3), 0);
    assert_int_equal(shares.width, 4);
    hec_unmix_shares_begin(&shares, origin);
    int64_t at = origin;
    for (int i = 0; i < PIECES; i++) {
        piece[i].class = (int)(random_value() * 4) - 1;
        piece[i].start_ns = at;
        piece[i].end_ns = at += 1 + (int64_t)(random_value() * 3 * MS);
        hec_unmix_shares_advance(&shares, piece[i].class, at);
        assert_true(shares.now_ns == at);
        if (i % 100 == 50) /* the bin that is being filled is known to its end as it is */
            check_between(&shares, at - 300 * MS > origin ? origin + (at - origin) / 2 : origin, at);
    }
    int64_t oldest = at - (HEC_SHARES_BINS - 2) * HEC_SHARES_BIN_NS, bin = HEC_SHARES_BIN_NS;
    for (int i = 0; i < 300; i++) {
        int64_t from = oldest + (int64_t)(random_value() * (double)(at - oldest - 1));
        int64_t to = from + 1 + (int64_t)(random_value() * (double)(at - from - 1));
        from = i % 2 ? from : origin + (from - origin + bin - 1) / bin * bin;
        to = i % 2 ? to : origin + (to - origin) / bin * bin;
        if (from < to)
            check_between(&shares, from, to);
    }
    assert_false(hec_unmix_shares_between(&shares, at - MS, at + 1, out));
    assert_false(hec_unmix_shares_between(&shares, at - MS, at - MS, out));
    assert_false(hec_unmix_shares_between(&shares, at - MS, at - 2 * MS, out));
    assert_false(hec_unmix_shares_between(&shares, oldest - 3 * bin, at, out)); /* the ring has it no more */
    assert_false(hec_unmix_shares_between(&shares, origin - 1, at, out));
    hec_unmix_shares_free(&shares);
}

TEST(skipped_time_is_not_known) {
    struct hec_unmix_shares shares;
    double out[3];
    assert_int_equal(hec_unmix_shares_init(&shares, 2), 0);
    hec_unmix_shares_begin(&shares, 100);
    hec_unmix_shares_advance(&shares, 0, 100 + 10 * MS);
    int64_t year = INT64_C(31536000000000000);
    hec_unmix_shares_skip(&shares, 1, 100 + year + 100000); /* up to the last edge before */
    assert_true(shares.now_ns == 100 + year && shares.since_ns == 100 + year);
    assert_near(shares.sum[0], 0.01, 1e-12);
    assert_near(shares.sum[1], (double)year * 1e-9 - 0.01, 1e-6);
    assert_near(shares.sum[2], (double)year * 1e-9, 1e-6);
    hec_unmix_shares_advance(&shares, 0, 100 + year + 10 * MS);
    assert_false(hec_unmix_shares_between(&shares, 100 + year - 1, 100 + year + MS, out));
    assert_true(hec_unmix_shares_between(&shares, 100 + year, 100 + year + 3 * MS, out));
    assert_near(out[0], 0.003, 1e-7); /* of sums of a year */
    assert_near(out[1], 0, 1e-7);
    hec_unmix_shares_skip(&shares, 1, 100 + year + 10 * MS + HEC_SHARES_BIN_NS); /* no edge before it */
    assert_true(shares.now_ns == 100 + year + 10 * MS && shares.since_ns == 100 + year);
    hec_unmix_shares_free(&shares);
}

/* ---- the response ---- */

TEST(windows_that_are_tried) {
    for (int w = 0; w < HEC_WINDOWS; w++) {
        int64_t ns = hec_response_windows_ns[w];
        assert_int_equal(hec_response_window_ns(w, 25 * MS), w == 0 ? 25 * MS : w == 1 ? -1 : ns); /* 20 is nearly 25 */
        assert_int_equal(hec_response_window_ns(w, 26 * MS), w ? ns : 26 * MS);
        assert_int_equal(hec_response_window_ns(w, 80 * MS), w == 0 ? 80 * MS : w == 3 ? -1 : ns); /* 100 is */
        assert_int_equal(hec_response_window_ns(w, 1000 * MS), w == 0 ? 1000 * MS : w == 6 ? -1 : ns);
    }
    double weight[HEC_TAPS] = {0};
    weight[0] = 0.25;
    weight[HEC_TAPS - 1] = 0.5;
    weight[HEC_TAPS / 2] = 0.25;
    assert_near(hec_response_lag_ns(weight), 0.25 * -60e6 + 0.5 * 60e6, 1e-3);
}

#define CLASSES 3
#define SAMPLES 400

static float z[SAMPLES * HEC_WINDOWS * HEC_TAPS * CLASSES];
static double y[SAMPLES], work[(HEC_TAPS + CLASSES) * SAMPLES];
static uint8_t covered[SAMPLES];
static uint8_t class_at[20000]; /* in each millisecond */

/* Samples of 20 ms of a device that is in one of three classes for 7 to 60 ms at a time, as a sensor has them that takes the mean of the
 * window and is late by the tap. */
static struct hec_response_rows sensed(int window, int tap, int count) {
    static const double watts[CLASSES] = {600, 300, 100};
    for (int at = 0; at < 20000;) {
        int class = (int)(random_value() * CLASSES), length = 7 + (int)(random_value() * 53);
        for (; length > 0 && at < 20000; length--)
            class_at[at++] = (uint8_t) class;
    }
    memset(z, 0, sizeof z);
    for (int i = 0; i < count; i++) {
        covered[i] = (1u << HEC_WINDOWS) - 1;
        y[i] = 0;
        for (int w = 0; w < HEC_WINDOWS; w++) {
            int length = (int)(hec_response_window_ns(w, 20 * MS) / MS);
            if (length < 0) /* the samples' own */
                length = 20;
            for (int k = 0; k < HEC_TAPS; k++) {
                int end = 2000 + 40 * i + (k - HEC_TAPS / 2) * 10;
                float *to = z + ((i * HEC_WINDOWS + w) * HEC_TAPS + k) * CLASSES;
                for (int at = end - length; at < end; at++)
                    to[class_at[at]] += 1.0f / (float)length;
                for (int c = 0; c < CLASSES && w == window && k == tap; c++)
                    y[i] += watts[c] * (double)to[c];
            }
        }
    }
    return (struct hec_response_rows){count, CLASSES, z, y, covered, 20 * MS};
}

TEST(responses_come_back) {
    static const struct {
        int window, tap;
    } sensors[] = {{0, 6}, {0, 3}, {0, 9}, {2, 5}, {3, 6}, {4, 4}, {5, 6}, {6, 2}};
    for (size_t s = 0; s < sizeof sensors / sizeof sensors[0]; s++) {
        struct hec_response_rows rows = sensed(sensors[s].window, sensors[s].tap, SAMPLES);
        struct hec_response found;
        double watts[CLASSES];
        for (int i = 0; i < SAMPLES; i += 9) { /* of some the shares are not known, and what was read is nonsense */
            covered[i] = 0;
            y[i] += 5;
        }
        hec_response_fit(&rows, &found, watts, work);
        assert_int_equal(found.window, sensors[s].window);
        assert_int_equal(found.reach, sensors[s].window);
        double sum = 0;
        for (int k = 0; k < HEC_TAPS; k++) {
            sum += found.weight[k];
            assert_near(found.weight[k], k == sensors[s].tap, 0.02);
        }
        assert_near(sum, 1, 1e-9);
        assert_near(watts[0], 600, 5);
        assert_near(watts[1], 300, 5);
        assert_near(watts[2], 100, 5);
        assert_true(found.distinct > HEC_DISTINCT);
    }
}

/* Too few say nothing: the samples' own span in the middle, the longest reach. */
TEST(few_samples_show_no_response) {
    for (int count = 49; count <= 50; count++) {
        struct hec_response_rows rows = sensed(3, 4, count);
        struct hec_response found;
        double watts[CLASSES];
        hec_response_fit(&rows, &found, watts, work);
        assert_int_equal(found.window, count < 50 ? 0 : 3);
        assert_int_equal(found.reach, count < 50 ? HEC_WINDOWS - 1 : 3);
        assert_int_equal(found.distinct > 0, count >= 50);
    }
    struct hec_response_rows none = {0, CLASSES, z, y, covered, 20 * MS};
    struct hec_response found;
    double watts[CLASSES] = {0};
    hec_response_fit(&none, &found, watts, work);
    for (int k = 0; k < HEC_TAPS; k++)
        assert_near(found.weight[k], k == HEC_TAPS / 2, 1e-12);
    assert_int_equal(found.window, 0);
    assert_near(found.distinct, 0, 0);
}

/* ---- readings without an error ---- */

static const double level[3] = {600, 250, 100};

/* Classes by turns for 35 to 180 ms, 20 s long, and how long each was; of `sets` of figures the sum of each up to a millisecond. */
static void draw_turns(int sets, const double (*of)[3], double (*sum)[20001], double *seconds) {
    for (int at = 0; at < 20000;) {
        int class = (int)(random_value() * 3), length = 35 + (int)(random_value() * 145);
        for (; length > 0 && at < 20000; length--, at++) {
            class_at[at] = (uint8_t) class;
            seconds[class] += 0.001;
            for (int k = 0; k < sets; k++)
                sum[k][at + 1] = sum[k][at] + of[k][class] / 1000;
        }
    }
}

/* After all readings. */
static void give_pieces(struct hec_unmix *unmix) {
    for (int at = 1, from = 0; at <= 20000; at++)
        if (at == 20000 || class_at[at] != class_at[from]) {
            assert_int_equal(hec_unmix_piece(unmix, class_at[from], from * MS, at * MS), 0);
            from = at;
        }
}

/* Samples of 20 ms, or counter windows of 100 ms. */
static void gather(bool power, bool window, int first_tap, struct hec_unmix_result *out) {
    static double sum[1][20001], *const spent = sum[0]; /* joules */
    static const struct hec_unmix_options options = {.classes = 4, .limit_w = 550};
    struct hec_unmix *unmix;
    double seconds[3] = {0};
    assert_int_equal(hec_unmix_begin(&options, &unmix), 0);
    draw_turns(1, &level, sum, seconds);
    for (int at = 200; power && at <= 19800; at += 20)
        assert_int_equal(
            hec_unmix_power(unmix, (at + first_tap * 10) * MS, 20 * MS, (spent[at] - spent[at - 20]) / 0.02), 0);
    for (int at = 100; window && at <= 20000; at += 100)
        assert_int_equal(hec_unmix_window(unmix, (at - 100) * MS, at * MS, spent[at] - spent[at - 100], 0), 0);
    give_pieces(unmix);
    assert_int_equal(hec_unmix_extra(unmix, 1, 3), 0);
    assert_int_equal(hec_unmix_extra(unmix, 1, 1), 0);
    hec_unmix_total(unmix, spent[20000] + 4 * level[1], 0.5);
    assert_int_equal(hec_unmix_solve(unmix, out), 0);
    assert_true(out->valid);
    assert_int_equal(out->classes, 4);
    assert_near(out->joules, spent[20000] + 4 * level[1], 1e-6);
    assert_near(out->total_j, spent[20000] + 4 * level[1], 1e-6);
    assert_near(out->total_bound_j, 0.5, 0);
    assert_near(out->covered_s, 20, 1e-9);
    for (int c = 0; c < 3; c++) {
        const struct hec_unmix_class *class = &out->class[c];
        assert_near(class->seconds, seconds[c] + 4 * (c == 1), 1e-9);
        assert_near(class->seen_s, seconds[c], 0.02 * seconds[c] + 0.4);
        assert_near(class->value, level[c], 0.005 * level[c]);
        assert_true(class->low <= class->value && class->value <= class->high);
        assert_near(class->low, level[c], 0.02 * level[0]);
        assert_near(class->high, level[c], 0.02 * level[0]);
        assert_near(class->joules, class->value * class->seconds, 1e-6);
        assert_int_equal(class->flaw, HEC_UNMIX_GOOD);
        assert_int_equal(class->merged_with, -1);
        assert_false(class->at_zero);
        assert_int_equal(class->above_limit, c == 0);
    }
    assert_int_equal(out->class[3].flaw, HEC_UNMIX_UNSEEN);
    assert_true(isnan(out->class[3].value));
    assert_near(out->class[3].seconds, 0, 0);
    double watts, alone_s;
    for (int c = 0; c < 3; c++) {
        assert_int_equal(hec_unmix_alone(unmix, c, &watts, &alone_s), 0);
        if (alone_s > 0)
            assert_near(watts, level[c], 1e-6 * level[c]);
        assert_int_equal(alone_s > 0, power);
    }
    assert_int_equal(hec_unmix_alone(unmix, 3, &watts, &alone_s), 0);
    assert_true(isnan(watts) && alone_s == 0);
    int64_t reach_ns;
    assert_int_equal(hec_unmix_reach(unmix, &reach_ns), 0);
    assert_int_equal(reach_ns, power ? 0 : hec_response_windows_ns[HEC_WINDOWS - 1]);
    hec_unmix_free(unmix);
}

TEST(exact_samples) {
    for (int tap = -3; tap <= 3; tap += 3) {
        struct hec_unmix_result out;
        gather(true, false, tap, &out);
        assert_int_equal(out.basis, HEC_UNMIX_SAMPLES);
        assert_true(out.lag_known);
        assert_near(out.lag_ns, -tap * 10e6, 2e5);
        assert_int_equal(out.window_ns, 0);
        assert_int_equal(out.power_used, 981);
        assert_int_equal(out.power_left, 0);
        assert_int_equal(out.window_used + out.window_left, 0);
        assert_true(out.power_residual_w < 3 && isnan(out.window_residual_w));
        assert_true(out.power_r2 > 0.999 && isnan(out.window_r2));
        assert_in_range(out.power_inflation, 1, 30);
    }
}

TEST(exact_windows) {
    struct hec_unmix_result out;
    gather(false, true, 0, &out);
    assert_int_equal(out.basis, HEC_UNMIX_WINDOWS);
    assert_true(isnan(out.lag_ns));
    assert_int_equal(out.window_used, 200);
    assert_int_equal(out.power_used + out.power_left + out.window_left, 0);
    assert_true(out.window_residual_w < 3 && isnan(out.power_residual_w));
    assert_true(out.window_r2 > 0.9999 && isnan(out.power_r2));
}

/* Two shares of each class, from windows of 100 ms. */
TEST(exact_counters) {
    static const double share[2][3] = {{0.9, 0.5, 0}, {0.1, 1, 0.25}};
    static double sum[2][20001];
    static const struct hec_unmix_options options = {.classes = 3, .counters = 2, .limit_w = NAN};
    struct hec_unmix *unmix;
    struct hec_unmix_result out;
    double seconds[3] = {0};
    assert_int_equal(hec_unmix_begin(&options, &unmix), 0);
    draw_turns(2, share, sum, seconds);
    for (int at = 100; at <= 20000; at += 100)
        for (int k = 0; k < 2; k++)
            assert_int_equal(
                hec_unmix_counter(unmix, k, (at - 100) * MS, at * MS, 10 * (sum[k][at] - sum[k][at - 100])), 0);
    give_pieces(unmix);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(hec_unmix_solve_counter(unmix, k, &out), 0);
        assert_true(out.valid);
        assert_int_equal(out.window_used, 200);
        for (int c = 0; c < 3; c++) {
            assert_near(out.class[c].value, share[k][c], 1e-3);
            assert_true(out.class[c].low <= out.class[c].value && out.class[c].value <= out.class[c].high);
            assert_true(out.class[c].low >= 0 && out.class[c].high <= 1);
            assert_near(out.class[c].seconds, seconds[c], 1e-9);
            assert_int_equal(out.class[c].flaw, HEC_UNMIX_GOOD);
        }
    }
    hec_unmix_free(unmix);
}
