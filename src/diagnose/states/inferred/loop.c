#include "base/error.h"
#include "base/list.h"
#include "diagnose/states/inferred/device.h"

#include <math.h>
#include <stdlib.h>

/* How often the longest pause of the loop one of set-up is, at least; and shorter ones are the loop's own in any case. */
#define LONGER 2
#define PAUSE_LEAST_NS (50 * INT64_C(1000000))
#define CALLS_LEAST 100 /* in a loop: fewer are no sign of one */

int hec_inferred_pauses_add(struct hec_inferred_pauses *p, const struct hec_activity *call, int64_t rest_ns) {
    if (p->calls == 0)
        p->first_ns = p->until_ns = call->start_ns;
    if (call->start_ns - p->until_ns - rest_ns >= PAUSE_LEAST_NS) {
        if (!hec_list_room(p->list, p->count, p->capacity, 16))
            return HEC_ERR_NOMEM;
        p->list[p->count++] = (struct hec_inferred_pause){p->until_ns, call->start_ns, p->calls};
    }
    p->calls += fmax(hec_inferred_launches(call), 1); /* of a broken file perhaps infinite */
    p->until_ns = call->end_ns > p->until_ns ? call->end_ns : p->until_ns;
    return 0;
}

/* Of the second half but its end, after which a program says what it found: what the loop has too. */
static int64_t longest_in_loop(const struct hec_inferred_pauses *p, int64_t half_ns) {
    int64_t end_ns = p->until_ns - (p->until_ns - half_ns) / 4, longest = 0;
    for (size_t i = 0; i < p->count; i++) {
        int64_t length = p->list[i].end_ns - p->list[i].start_ns;
        if (p->list[i].end_ns > half_ns && p->list[i].start_ns < end_ns && length > longest)
            longest = length;
    }
    return longest;
}

struct hec_steady hec_inferred_pauses_loop(const struct hec_inferred_pauses *p) {
    int64_t half_ns = p->first_ns + (p->until_ns - p->first_ns) / 2, longest = longest_in_loop(p, half_ns);
    struct hec_steady loop = {.from_ns = p->first_ns, .to_ns = p->until_ns};
    double before = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct hec_inferred_pause *pause = &p->list[i];
        if (pause->end_ns <= half_ns && pause->end_ns - pause->start_ns > LONGER * longest) {
            loop.from_ns = pause->end_ns;
            before = pause->calls;
        }
    }
    loop.known = loop.to_ns > loop.from_ns && p->calls - before >= CALLS_LEAST;
    return loop;
}
