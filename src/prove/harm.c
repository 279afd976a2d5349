#include "prove/harm.h"

#include <math.h>

bool hec_harm_allows(const struct hec_harm *harm, double passed, double worst) {
    return harm->spent + worst <= harm->most * passed;
}

void hec_harm_charge(struct hec_harm *harm, double cost) {
    harm->spent += fmax(cost, 0);
}
