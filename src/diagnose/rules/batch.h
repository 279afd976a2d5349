/* Inside rules/: whether a larger batch is at hand where launching is the limit. */
#pragma once

#include "diagnose/rules/facts.h"

/* A step is of few samples, memory has room for more of them, and none has to be waited for. Of training a larger batch comes before
 * launching less then: the claim of it is of so many times the samples, and of more all of the wait goes too. */
bool hec_batch_at_hand(const struct hec_facts *facts);
