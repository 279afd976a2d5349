#include "base/error.h"
#include "diagnose/watts/unmix_state.h"

#include <stdlib.h>
#include <string.h>

int hec_gram_init(struct hec_gram *gram, int columns) {
    *gram = (struct hec_gram){.columns = columns, .packed = columns * (columns + 1) / 2};
    gram->block = calloc((size_t)gram->packed * HEC_BLOCKS_MAX, sizeof *gram->block);
    return gram->block ? 0 : HEC_ERR_NOMEM;
}

void hec_gram_free(struct hec_gram *gram) {
    free(gram->block);
}

void hec_gram_add(struct hec_gram *gram, int block, const double *row, double weight, double seconds) {
    double *to = gram->block + (size_t)block * (size_t)gram->packed;
    int n = gram->columns;
    for (int i = 0; i < n; to += n - i, i++) {
        double x = row[i] * weight;
        if (x == 0)
            continue;
        for (int j = i; j < n; j++)
            to[j - i] += x * row[j];
    }
    gram->count[block]++;
    gram->weight[block] += weight;
    gram->seconds += seconds;
    for (int i = 0; i < gram->classes; i++)
        gram->seen_s[i] += seconds * row[i];
}

void hec_gram_time(struct hec_gram *gram, int classes, const double *from, const double *to, double weight,
                   double seconds) {
    double scale = weight * ((double)HEC_TIMING_NS * 1e-9 / seconds) * ((double)HEC_TIMING_NS * 1e-9 / seconds);
    for (int i = 0; i < classes; i++)
        for (int j = 0; j < classes; j++)
            gram->timing[i * HEC_GRAM_CLASSES + j] += scale * (from[i] * from[j] + to[i] * to[j]);
}

void hec_gram_halve(struct hec_gram *gram) {
    size_t packed = (size_t)gram->packed;
    for (int i = 0; i < HEC_BLOCKS_MAX; i++) {
        int to = i / 2;
        double *target = gram->block + (size_t)to * packed, *source = gram->block + (size_t)i * packed;
        if (i % 2) {
            for (size_t k = 0; k < packed; k++)
                target[k] += source[k];
            gram->count[to] += gram->count[i];
            gram->weight[to] += gram->weight[i];
        } else if (i) {
            memcpy(target, source, packed * sizeof *target);
            gram->count[to] = gram->count[i];
            gram->weight[to] = gram->weight[i];
        }
    }
    memset(gram->block + HEC_BLOCKS_MAX / 2 * packed, 0, HEC_BLOCKS_MAX / 2 * packed * sizeof *gram->block);
    for (int i = HEC_BLOCKS_MAX / 2; i < HEC_BLOCKS_MAX; i++) {
        gram->count[i] = 0;
        gram->weight[i] = 0;
    }
}

int hec_unmix_shares_init(struct hec_unmix_shares *shares, int classes) {
    *shares = (struct hec_unmix_shares){.width = classes + 1};
    shares->sum = calloc((size_t)shares->width, sizeof *shares->sum);
    shares->edge = calloc((size_t)shares->width * HEC_SHARES_BINS, sizeof *shares->edge);
    return shares->sum && shares->edge ? 0 : HEC_ERR_NOMEM;
}

void hec_unmix_shares_free(struct hec_unmix_shares *shares) {
    free(shares->sum);
    free(shares->edge);
}

void hec_unmix_shares_begin(struct hec_unmix_shares *shares, int64_t origin_ns) {
    shares->begun = true;
    shares->origin_ns = shares->since_ns = shares->now_ns = origin_ns;
    shares->edges = 1; /* edge 0: zeros */
    shares->edge_ns = origin_ns + HEC_SHARES_BIN_NS;
}

void hec_unmix_shares_advance(struct hec_unmix_shares *shares, int class, int64_t to_ns) {
    for (; to_ns >= shares->edge_ns; shares->edge_ns += HEC_SHARES_BIN_NS) {
        hec_unmix_shares_add(shares, class, shares->edge_ns);
        memcpy(shares->edge + (shares->edges % HEC_SHARES_BINS) * shares->width, shares->sum,
               (size_t)shares->width * sizeof *shares->sum);
        shares->edges++;
    }
    hec_unmix_shares_add(shares, class, to_ns);
}

void hec_unmix_shares_skip(struct hec_unmix_shares *shares, int class, int64_t to_ns) {
    if (to_ns <= shares->edge_ns)
        return;
    int64_t bins = (to_ns - shares->edge_ns) / HEC_SHARES_BIN_NS;
    shares->edges += bins;
    shares->edge_ns += bins * HEC_SHARES_BIN_NS;
    shares->since_ns = shares->edge_ns;
    hec_unmix_shares_advance(shares, class, shares->edge_ns);
}

bool hec_unmix_shares_between(const struct hec_unmix_shares *shares, int64_t start_ns, int64_t end_ns, double *out) {
    if (start_ns < shares->since_ns || start_ns >= end_ns || end_ns > shares->now_ns)
        return false;
    if ((start_ns - shares->origin_ns) / HEC_SHARES_BIN_NS <= shares->edges - HEC_SHARES_BINS)
        return false;
    for (int side = 0; side < 2; side++) {
        int64_t after_ns = (side ? end_ns : start_ns) - shares->origin_ns;
        int64_t k = after_ns / HEC_SHARES_BIN_NS;
        double length = HEC_SHARES_BIN_NS;
        const double *from = shares->edge + (k % HEC_SHARES_BINS) * shares->width;
        const double *to = shares->edge + ((k + 1) % HEC_SHARES_BINS) * shares->width;
        if (k + 1 >= shares->edges) { /* the bin that is being filled */
            to = shares->sum;
            length = (double)(shares->now_ns - shares->origin_ns - k * HEC_SHARES_BIN_NS);
        }
        double part = length > 0 ? (double)(after_ns - k * HEC_SHARES_BIN_NS) / length : 0;
        for (int c = 0; c < shares->width; c++) {
            double at = from[c] + part * (to[c] - from[c]);
            out[c] = side ? at - out[c] : at;
        }
    }
    return true;
}
