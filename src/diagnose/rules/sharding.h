/* A model that is sharded (FSDP), and would fit on each device. */
#pragma once

#include "diagnose/parallelism.h"
#include "diagnose/rules/facts.h"

/* Whether it is so of the run. *found: what its way and others would take. */
bool hec_sharding_needless(const struct hec_summary *summary, struct hec_parallelism *found);
/* Of what the device waits for its host, the part that is sharding's and no other cause's; 0: it is needed, or there is none. */
double hec_sharding_share(const struct hec_facts *facts);
