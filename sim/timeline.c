#include "sim/timeline.h"

#include <string.h>

#define FULL_PACE_PPM 1000000

static struct sim_segment *at(struct sim_timeline *timeline, uint64_t index) {
    return &timeline->segment[index % SIM_SEGMENT_MAX];
}

static const struct sim_segment *seen(const struct sim_timeline *timeline, uint64_t index) {
    return &timeline->segment[index % SIM_SEGMENT_MAX];
}

static uint64_t oldest(const struct sim_timeline *timeline) {
    return timeline->head > SIM_SEGMENT_MAX ? timeline->head - SIM_SEGMENT_MAX : 0;
}

static int64_t excess_nj(const struct sim_profile *profile, const struct sim_segment *segment, int64_t until_ns) {
    int64_t end = until_ns < segment->end_ns ? until_ns : segment->end_ns;
    return end > segment->start_ns ? sim_energy_of(segment->power_mw - profile->context_mw, end - segment->start_ns)
                                   : 0;
}

/* Index of the first segment that ends after t; head if there is none. */
static uint64_t first_after(const struct sim_timeline *timeline, int64_t t_ns) {
    uint64_t low = oldest(timeline), high = timeline->head;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (seen(timeline, middle)->end_ns > t_ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct sim_active *milestone_slot(struct sim_timeline *timeline, uint64_t index) {
    return &timeline->milestone[index / SIM_MILESTONE_EVERY % (SIM_SEGMENT_MAX / SIM_MILESTONE_EVERY)];
}

/* Adds what a segment has done before t, or takes it away again. */
static void count(struct sim_active *active, const struct sim_segment *segment, int64_t t_ns, int sign) {
    int64_t ns = t_ns - segment->start_ns;
    active->ns[segment->activity] += sign * ns;
    active->work_ns[segment->activity] += sign * (int64_t)((__int128)ns * segment->pace_ppm / FULL_PACE_PPM);
}

/* What was done before segment `index` (oldest <= index <= head): from the nearest milestone, by adding or
 * subtracting at most SIM_MILESTONE_EVERY segments. A milestone is written with the segment of its own index, so that
 * of head does not exist yet, and that of a block whose first segment is forgotten is forgotten too. */
static void active_before(const struct sim_timeline *timeline, uint64_t index, struct sim_active *active) {
    uint64_t i = index - index % SIM_MILESTONE_EVERY;
    memset(active, 0, sizeof *active);
    if (timeline->head == 0)
        return;
    if (i == timeline->head)
        i -= SIM_MILESTONE_EVERY;
    else if (i < oldest(timeline))
        i += SIM_MILESTONE_EVERY;
    *active = *milestone_slot((struct sim_timeline *)timeline, i);
    for (; i < index; i++)
        count(active, seen(timeline, i), seen(timeline, i)->end_ns, 1);
    for (; i > index; i--)
        count(active, seen(timeline, i - 1), seen(timeline, i - 1)->end_ns, -1);
}

static void push(struct sim_timeline *timeline, const struct sim_profile *profile, struct sim_segment segment) {
    uint64_t index = timeline->head;
    const struct sim_segment *previous = index ? at(timeline, index - 1) : NULL;
    segment.excess_before_nj =
        previous ? previous->excess_before_nj + excess_nj(profile, previous, previous->end_ns) : 0;
    if (index % SIM_MILESTONE_EVERY == 0) {
        struct sim_active next;
        active_before(timeline, index, &next);
        *milestone_slot(timeline, index) = next;
    }
    *at(timeline, index) = segment;
    /* last, so that a writer that is killed here leaves a timeline that is consistent without this segment */
    __atomic_store_n(&timeline->head, index + 1, __ATOMIC_RELEASE);
}

void sim_timeline_init(struct sim_timeline *timeline, int64_t epoch_ns) {
    timeline->epoch_ns = epoch_ns;
    timeline->head = timeline->presence_head = 0;
    timeline->controller = (struct sim_controller){0};
}

void sim_timeline_arrive(struct sim_timeline *timeline, int64_t t_ns) {
    struct sim_presence next = {t_ns, INT64_MAX, 0};
    if (timeline->presence_head) {
        const struct sim_presence *last = &timeline->presence[(timeline->presence_head - 1) % SIM_PRESENCE_MAX];
        next.present_before_ns = last->present_before_ns + last->end_ns - last->start_ns;
    }
    timeline->presence[timeline->presence_head % SIM_PRESENCE_MAX] = next;
    __atomic_store_n(&timeline->presence_head, timeline->presence_head + 1, __ATOMIC_RELEASE);
}

void sim_timeline_leave(struct sim_timeline *timeline, int64_t t_ns) {
    if (timeline->presence_head)
        timeline->presence[(timeline->presence_head - 1) % SIM_PRESENCE_MAX].end_ns = t_ns;
}

static int64_t present_ns(const struct sim_timeline *timeline, int64_t t_ns) {
    uint64_t low = timeline->presence_head > SIM_PRESENCE_MAX ? timeline->presence_head - SIM_PRESENCE_MAX : 0;
    for (uint64_t i = timeline->presence_head; i > low; i--) {
        const struct sim_presence *presence = &timeline->presence[(i - 1) % SIM_PRESENCE_MAX];
        if (presence->start_ns < t_ns)
            return presence->present_before_ns + (t_ns < presence->end_ns ? t_ns : presence->end_ns) -
                   presence->start_ns;
        if (i - 1 == low)
            return presence->present_before_ns;
    }
    return 0;
}

int sim_timeline_append(struct sim_timeline *timeline, const struct sim_profile *profile,
                        const struct sim_limits *limits, pid_t pid, enum sim_activity activity, int64_t start_ns,
                        int64_t duration_ns, struct sim_piece pieces[2]) {
    if (timeline->head && at(timeline, timeline->head - 1)->end_ns > start_ns)
        start_ns = at(timeline, timeline->head - 1)->end_ns;
    int placed =
        sim_power_split(profile, limits, &timeline->controller, activity, start_ns, start_ns + duration_ns, pieces);
    for (int i = 0; i < placed; i++) {
        double pace = sim_pace(profile, limits, activity, pieces[i].held);
        push(timeline, profile,
             (struct sim_segment){pieces[i].start_ns, pieces[i].end_ns, 0, pieces[i].over_ns, pieces[i].power_mw, pid,
                                  (int16_t)activity, pieces[i].held, (int32_t)(pace * FULL_PACE_PPM + 0.5)});
    }
    return placed;
}

int sim_timeline_extend(struct sim_timeline *timeline, const struct sim_profile *profile,
                        const struct sim_limits *limits, pid_t pid, enum sim_activity activity, int64_t start_ns,
                        int64_t duration_ns, struct sim_piece pieces[2]) {
    struct sim_segment *last = timeline->head ? at(timeline, timeline->head - 1) : NULL;
    /* a burst above the cap has a length of its own: only what is held or below the cap can be lengthened */
    bool can =
        last && last->pid == pid && (last->held || last->over_ns == 0) && start_ns <= last->end_ns + SIM_EXTEND_GAP_NS;
    int32_t wanted = sim_wanted_mw(profile, limits, activity);
    bool over = wanted > limits->cap_mw;
    bool same = can && last->activity == (int16_t)activity && (last->held || !over) &&
                last->power_mw == (over ? sim_held_power_mw(profile, limits->cap_mw) : wanted);
    bool brief = can && duration_ns < SIM_EXTEND_SHORT_NS && last->end_ns - last->start_ns < SIM_EXTEND_LONG_NS;
    if (!same && !brief)
        return sim_timeline_append(timeline, profile, limits, pid, activity, start_ns, duration_ns, pieces);
    int64_t from = last->end_ns;
    int64_t end = (start_ns > from ? start_ns : from) + duration_ns;
    __atomic_store_n(&last->end_ns, end, __ATOMIC_RELEASE);
    if (last->over_ns > 0)
        timeline->controller.end_ns = end;
    pieces[0] = (struct sim_piece){from, end, last->over_ns, last->power_mw, last->held};
    return 1;
}

void sim_timeline_cut(struct sim_timeline *timeline, const struct sim_profile *profile, pid_t pid, int64_t t_ns) {
    uint64_t end = timeline->head, first = first_after(timeline, t_ns);
    /* the prefix sums of the first one rest on the one before it, which must still be held */
    if (first == oldest(timeline) && first > 0)
        first++;
    if (first >= end)
        return;
    timeline->head = first;
    for (uint64_t i = first; i < end; i++) {
        struct sim_segment segment = *at(timeline, i);
        if (segment.pid == pid && segment.end_ns > t_ns)
            segment.end_ns = t_ns;
        if (segment.end_ns > segment.start_ns)
            push(timeline, profile, segment);
    }
    timeline->controller = (struct sim_controller){0};
    for (uint64_t i = timeline->head, low = oldest(timeline); i > low; i--) {
        const struct sim_segment *segment = at(timeline, i - 1);
        if (segment->over_ns > 0) {
            timeline->controller = (struct sim_controller){segment->end_ns, segment->over_ns};
            break;
        }
    }
}

int64_t sim_timeline_excess_nj(const struct sim_timeline *timeline, const struct sim_profile *profile, int64_t t_ns) {
    if (timeline->head == 0 || t_ns <= timeline->epoch_ns)
        return 0;
    uint64_t index = first_after(timeline, t_ns);
    if (index == timeline->head)
        index--;
    return seen(timeline, index)->excess_before_nj + excess_nj(profile, seen(timeline, index), t_ns);
}

int64_t sim_timeline_energy_nj(const struct sim_timeline *timeline, const struct sim_profile *profile, int64_t t_ns) {
    if (t_ns <= timeline->epoch_ns)
        return sim_energy_of(profile->idle_mw, t_ns - timeline->epoch_ns);
    int64_t present = present_ns(timeline, t_ns);
    int64_t base = sim_energy_of(profile->context_mw, present) +
                   sim_energy_of(profile->idle_mw, t_ns - timeline->epoch_ns - present);
    return base + sim_timeline_excess_nj(timeline, profile, t_ns);
}

void sim_timeline_active(const struct sim_timeline *timeline, int64_t t_ns, struct sim_active *active) {
    uint64_t index = first_after(timeline, t_ns);
    active_before(timeline, index, active);
    if (index < timeline->head && seen(timeline, index)->start_ns < t_ns)
        count(active, seen(timeline, index), t_ns, 1);
    int64_t present = t_ns > timeline->epoch_ns ? present_ns(timeline, t_ns) : 0;
    int64_t segments = 0;
    for (int a = SIM_CONTEXT + 1; a < SIM_ACTIVITY_COUNT; a++)
        segments += active->ns[a];
    active->ns[SIM_CONTEXT] = active->work_ns[SIM_CONTEXT] = present - segments;
    active->ns[SIM_IDLE] = active->work_ns[SIM_IDLE] =
        (t_ns > timeline->epoch_ns ? t_ns - timeline->epoch_ns : 0) - present;
}

struct sim_instant sim_timeline_at(const struct sim_timeline *timeline, const struct sim_profile *profile,
                                   int64_t t_ns) {
    uint64_t last = timeline->presence_head;
    struct sim_instant instant = {SIM_IDLE, profile->idle_mw, false, false};
    for (uint64_t i = last, low = last > SIM_PRESENCE_MAX ? last - SIM_PRESENCE_MAX : 0; i > low; i--) {
        const struct sim_presence *presence = &timeline->presence[(i - 1) % SIM_PRESENCE_MAX];
        if (presence->start_ns <= t_ns) {
            if (t_ns < presence->end_ns)
                instant = (struct sim_instant){SIM_CONTEXT, profile->context_mw, false, true};
            break;
        }
    }
    uint64_t index = first_after(timeline, t_ns);
    if (index < timeline->head && seen(timeline, index)->start_ns <= t_ns) {
        const struct sim_segment *segment = seen(timeline, index);
        instant.activity = (enum sim_activity)segment->activity;
        instant.power_mw = segment->power_mw;
        instant.held = segment->held;
    }
    return instant;
}

int64_t sim_timeline_busy_ns(const struct sim_timeline *timeline, pid_t pid, int64_t t0_ns, int64_t t1_ns) {
    int64_t busy = 0;
    for (uint64_t i = first_after(timeline, t0_ns); i < timeline->head; i++) {
        const struct sim_segment *segment = seen(timeline, i);
        if (segment->start_ns >= t1_ns)
            break;
        if (segment->pid != pid || sim_activity_info((enum sim_activity)segment->activity)->counters.util <= 0)
            continue;
        int64_t start = segment->start_ns > t0_ns ? segment->start_ns : t0_ns;
        int64_t end = segment->end_ns < t1_ns ? segment->end_ns : t1_ns;
        busy += end - start;
    }
    return busy;
}
