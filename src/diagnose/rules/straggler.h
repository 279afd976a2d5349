/* One rank that the others wait for: what of it other findings say, or must not say again. Seconds of the loop; 0: there is none. */
#pragma once

#include "diagnose/rules/facts.h"

/* That others wait for this device while its process alone writes checkpoints: the finding about these says it. */
double hec_straggler_checkpoint_s(const struct hec_facts *facts);
/* That this device waits for code which its process alone runs, and others for it: the finding about the late rank says it. */
double hec_straggler_code_s(const struct hec_facts *facts);
