#include "agent/share_error.h"

#include <math.h>

#define SIGMAS_95 1.96

struct hec_share_error hec_share_error_unknown(void) {
    return (struct hec_share_error){NAN, NAN, NAN};
}

bool hec_share_error_valid(const struct hec_share_error *error) {
    return !(error->turns_uj2 < 0 || error->figures_uj < 0 || error->floor_uj < 0);
}

void hec_share_error_add(struct hec_share_error *error, const struct hec_share_error *more) {
    error->turns_uj2 += more->turns_uj2;
    error->figures_uj += more->figures_uj;
    error->floor_uj += more->floor_uj;
}

double hec_share_error_bound_uj(const struct hec_share_error *error) {
    double variance = error->turns_uj2 + error->figures_uj * error->figures_uj;
    return sqrt(SIGMAS_95 * SIGMAS_95 * variance + error->floor_uj * error->floor_uj);
}
