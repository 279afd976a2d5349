#include "agent/late.h"

#include <stdlib.h>
#include <string.h>

#define STEPS 16 /* of a lag: so much of it one step holds at most */

struct step {
    int64_t begun_ns, newest_ns;
    int64_t *amount; /* by counter */
};

struct hec_late {
    size_t counters;
    int64_t lag_ns;
    int64_t *amounts; /* of all steps */
    int count;        /* oldest first */
    struct step step[STEPS + 2];
};

struct hec_late *hec_late_new(size_t counters, int64_t lag_ns) {
    struct hec_late *late = lag_ns > 0 ? calloc(1, sizeof *late) : NULL;
    if (late)
        late->amounts = calloc((STEPS + 2) * counters, sizeof *late->amounts);
    if (!late || !late->amounts) {
        free(late);
        return NULL;
    }
    late->counters = counters;
    late->lag_ns = lag_ns;
    for (int i = 0; i < STEPS + 2; i++)
        late->step[i].amount = late->amounts + (size_t)i * counters;
    return late;
}

void hec_late_free(struct hec_late *late) {
    if (late)
        free(late->amounts);
    free(late);
}

/* The oldest step's place becomes a free one at the end. */
static void drop_oldest(struct hec_late *late) {
    struct step oldest = late->step[0];
    memset(oldest.amount, 0, late->counters * sizeof *oldest.amount);
    late->count--;
    memmove(&late->step[0], &late->step[1], (STEPS + 1) * sizeof late->step[0]);
    late->step[STEPS + 1] = oldest;
}

void hec_late_pass(struct hec_late *late, int64_t now_ns) {
    while (late && late->count > 0 && now_ns - late->step[0].newest_ns >= late->lag_ns)
        drop_oldest(late);
}

void hec_late_add(struct hec_late *late, size_t counter, int64_t amount, int64_t now_ns) {
    if (!late || amount == 0)
        return;
    hec_late_pass(late, now_ns);
    struct step *last = late->count > 0 ? &late->step[late->count - 1] : NULL;
    if (!last || now_ns - last->begun_ns > late->lag_ns / STEPS) {
        last = &late->step[late->count++];
        last->begun_ns = now_ns;
    }
    last->newest_ns = now_ns;
    last->amount[counter] += amount;
}

void hec_late_move(struct hec_late *late, size_t from, size_t to) {
    for (int i = 0; late && i < late->count; i++) {
        late->step[i].amount[to] += late->step[i].amount[from];
        late->step[i].amount[from] = 0;
    }
}

int64_t hec_late_of(const struct hec_late *late, size_t counter) {
    int64_t sum = 0;
    for (int i = 0; late && i < late->count; i++)
        sum += late->step[i].amount[counter];
    return sum;
}

int64_t hec_late_lag(const struct hec_late *late) {
    return late ? late->lag_ns : 0;
}
