#include "observe/rounds.h"

void hec_rounds_due(struct hec_rounds *rounds, int64_t due_ns) {
    __atomic_store_n(&rounds->due_ns, due_ns, __ATOMIC_RELEASE);
}

void hec_rounds_begin(struct hec_rounds *rounds, int64_t now_ns) {
    int64_t late_ns = hec_rounds_late_ns(rounds, now_ns);
    __atomic_store_n(&rounds->late_ns, late_ns, __ATOMIC_RELEASE);
    hec_rounds_due(rounds, INT64_MAX);
}

/* Due before late: between two loads a round may begin, and its lateness is then counted twice, for one look. */
int64_t hec_rounds_late_ns(const struct hec_rounds *rounds, int64_t now_ns) {
    int64_t due_ns = __atomic_load_n(&rounds->due_ns, __ATOMIC_ACQUIRE);
    int64_t late_ns = __atomic_load_n(&rounds->late_ns, __ATOMIC_ACQUIRE);
    return late_ns + (now_ns > due_ns ? now_ns - due_ns : 0);
}
