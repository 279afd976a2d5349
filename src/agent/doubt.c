#include "agent/doubt.h"

#include <math.h>

#define SIGMAS_95 1.96

struct hec_doubt hec_doubt_unknown(void) {
    return (struct hec_doubt){NAN, NAN, NAN};
}

bool hec_doubt_valid(const struct hec_doubt *doubt) {
    return !(doubt->turns_uj2 < 0 || doubt->figures_uj < 0 || doubt->floor_uj < 0);
}

void hec_doubt_add(struct hec_doubt *doubt, const struct hec_doubt *more) {
    doubt->turns_uj2 += more->turns_uj2;
    doubt->figures_uj += more->figures_uj;
    doubt->floor_uj += more->floor_uj;
}

double hec_doubt_bound_uj(const struct hec_doubt *doubt) {
    double variance = doubt->turns_uj2 + doubt->figures_uj * doubt->figures_uj;
    return sqrt(SIGMAS_95 * SIGMAS_95 * variance + doubt->floor_uj * doubt->floor_uj);
}
