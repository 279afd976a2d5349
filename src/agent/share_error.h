/* How far the active joules of a tenant may be off. Three reasons, which are added up in three ways:
 *
 *   turns    of whose turn it is the driver sees only samples. Errors of different times are independent: variances add.
 *   figures  what each tenant draws for its utilisation is fitted. Such an error stays until more is learned: it adds as it is.
 *   floor    the idle floor is an estimate, and what is above it is active. The same holds.
 *
 * The three are independent of each other. A tenant that is alone on the device has but the last. */
#ifndef HEC_AGENT_SHARE_ERROR_H
#define HEC_AGENT_SHARE_ERROR_H

#include <stdbool.h>

struct hec_share_error {
    double turns_uj2;  /* variance */
    double figures_uj; /* standard deviation */
    double floor_uj;   /* at most so much */
};

/* Of joules of which nothing was noted, as by an older version; it stays unknown whatever is added. */
struct hec_share_error hec_share_error_unknown(void);
/* No negative figure; unknown is fine. */
bool hec_share_error_valid(const struct hec_share_error *error);
void hec_share_error_add(struct hec_share_error *error, const struct hec_share_error *more);
/* The true value is within so much in 95 of 100 cases; NAN: not known. */
double hec_share_error_bound_uj(const struct hec_share_error *error);

#endif
