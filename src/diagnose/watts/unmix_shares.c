#include "diagnose/watts/unmix_shares.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

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
