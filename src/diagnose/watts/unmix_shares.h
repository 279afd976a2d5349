/* Seconds of each class up to any instant of the last seconds: sums at the edges of 0.25 ms bins, straight lines
 * between. Of time that is skipped only the sums are known. */
#ifndef HEC_DIAGNOSE_WATTS_UNMIX_SHARES_H
#define HEC_DIAGNOSE_WATTS_UNMIX_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#define HEC_SHARES_BIN_NS INT64_C(250000)
#define HEC_SHARES_BINS 16384 /* 4.1 s */
/* A reading may begin at most this long before the pieces' end: the ring, less one step of the pieces. */
#define HEC_SHARES_BACK_NS INT64_C(3000000000)

struct hec_unmix_shares {
    int width; /* classes + 1: the last is the time that any piece covers */
    bool begun;
    int64_t origin_ns; /* start of the first piece: edge 0 */
    int64_t since_ns;  /* the end of what was skipped last, or origin_ns: no instant before is known */
    int64_t now_ns;    /* all before is known */
    int64_t edges;     /* how many were written; the next lies at origin + edges * bin: */
    int64_t edge_ns;
    double *sum;  /* at now */
    double *edge; /* HEC_SHARES_BINS x width */
};

int hec_unmix_shares_init(struct hec_unmix_shares *shares, int classes); /* 0 or HEC_ERR_NOMEM */
void hec_unmix_shares_free(struct hec_unmix_shares *shares);
void hec_unmix_shares_begin(struct hec_unmix_shares *shares, int64_t origin_ns);
/* Time goes on to to_ns, before the next edge, in class; -1: no piece covers it. */
static inline void hec_unmix_shares_add(struct hec_unmix_shares *shares, int class, int64_t to_ns) {
    double seconds = (double)(to_ns - shares->now_ns) * 1e-9;
    if (class >= 0) {
        shares->sum[class] += seconds;
        shares->sum[shares->width - 1] += seconds;
    }
    shares->now_ns = to_ns;
}
/* The same over any number of edges. */
void hec_unmix_shares_advance(struct hec_unmix_shares *shares, int class, int64_t to_ns);
/* The same up to the last edge before to_ns, at once: no instant before that edge will be asked for. */
void hec_unmix_shares_skip(struct hec_unmix_shares *shares, int class, int64_t to_ns);
/* Seconds of each class over (start, end] into out, width long. False when it is not in the ring, was skipped or is not
 * yet known. */
bool hec_unmix_shares_between(const struct hec_unmix_shares *shares, int64_t start_ns, int64_t end_ns, double *out);

#endif
