#include "diagnose/watts/unmix_belief.h"

#include <math.h>
#include <string.h>

#define ROOM 0.98 /* of the total: least values may take so much of it */

void hec_belief_groups(const struct hec_unmix_belief *beliefs, double level_sd, const struct hec_unmix_belief *plain,
                       const double *seconds, struct hec_fit *fit) {
    double *sd = fit->own_sd, factor[HEC_NNLS_MAX] = {0}, common = 0, least = 0;
    int n = fit->groups;
    memset(fit->believed, 0, sizeof fit->believed);
    memset(fit->lower, 0, sizeof fit->lower);
    memset(fit->own_sd, 0, sizeof fit->own_sd);
    for (int c = 0; c < fit->classes; c++) {
        int g = fit->group[c];
        if (g < 0 || !(fit->seconds[g] > 0))
            continue;
        const struct hec_unmix_belief *b = beliefs[c].sd > 0 ? &beliefs[c] : plain;
        double part = seconds[c] / fit->seconds[g];
        fit->believed[g] += part * b->watts;
        fit->lower[g] += part * b->floor;
        sd[g] += part * b->sd;
        factor[g] += part * b->factor;
    }
    /* Sherman and Morrison: D^-1 - D^-1 f f' D^-1 l^2 / (1 + l^2 f' D^-1 f) */
    for (int g = 0; g < n; g++) {
        common += factor[g] * factor[g] / (sd[g] * sd[g]);
        least += fit->lower[g] * fit->seconds[g];
    }
    double level2 = level_sd * level_sd, shrink = level2 / (1 + level2 * common);
    for (int g = 0; g < n; g++)
        fit->believed_sd[g] = sqrt(sd[g] * sd[g] + factor[g] * factor[g] * level2);
    for (int g = 0; g < n; g++)
        for (int h = 0; h < n; h++)
            fit->certainty[g * n + h] =
                (g == h ? 1 / (sd[g] * sd[g]) : 0) - shrink * factor[g] / (sd[g] * sd[g]) * factor[h] / (sd[h] * sd[h]);
    if (fit->has_total && least > ROOM * fit->total)
        memset(fit->lower, 0, sizeof fit->lower);
}
