/* What is believed of the classes, for groups of them: means, and the inverse of the covariance
 *
 *     S_gh = [g = h] s_g^2 + f_g f_h l^2
 *
 * of groups whose own deviations s are independent and whose common level has a standard deviation of l. Of a group, mean, s
 * and f are the means over its classes by time: within it deviations are taken as one. */
#ifndef HEC_DIAGNOSE_WATTS_UNMIX_BELIEF_H
#define HEC_DIAGNOSE_WATTS_UNMIX_BELIEF_H

#include "diagnose/watts/unmix_fit.h"
#include "diagnose/watts/unmix_state.h"

/* fit->group, groups and seconds are set; seconds: of each class. plain: of classes without a belief. Fills fit->believed,
 * certainty and lower; the latter is 0 where the total leaves no room for it. */
void hec_belief_groups(const struct hec_unmix_belief *beliefs, double level_sd, const struct hec_unmix_belief *plain,
                       const double *seconds, struct hec_fit *fit);

#endif
