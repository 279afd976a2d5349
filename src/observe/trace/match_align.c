/* The alignment of a lane's activities with its calls.
 *
 * Scores are logarithms of likelihood, in tenths. A window of activities is aligned by dynamic programming over the pairs
 * that are possible; the pass forward and the pass backward together give, for each activity, the best alignment with
 * each call and the best without any: it gets the call that is ahead of all else by LEAD_MIN. Where nothing fits any more
 * (a buffer was lost), the place to go on is searched for. What goes on exactly as learned is matched without all that. */
#include "observe/trace/match_inside.h"

#define CALLS_AHEAD 128u    /* of a window of activities: a third may be lost */
#define BEHIND 8u           /* calls before and after the one that is next in turn: */
#define AHEAD 24u           /* */
#define BACK 4u             /* activities between two that are matched */
#define LEAD_MIN 25         /* 1 wrong in 12 at worst, and most leads are far larger */
#define LEAD_ALIKE_MIN 65   /* where nearly all calls are the same */
#define PROMPT_NS 20000     /* from a call to its start on a device that waits */
#define BREAK_NS 2000       /* a device that starts later than this after the last activity has waited */
#define SEARCH_CALLS 4096u  /* of them, back from the latest that is possible */
#define SEARCH_GROUPS 1024u /* compared with each */
#define RUN_MAX 256u        /* pairs looked at in a row */
#define RUN_ENOUGH 32u      /* pairs that are matched in a row */
#define EVEN_MIN 16u        /* equal ones in a row of which none was lost, if as many are on either side */
#define EVEN_MAX 2048u      /* so many are waited for, to see where a row of equal ones ends */
#define STREAK_MIN 6u
#define REPEATS_MAX 16u
#define IDS_MANY 64u    /* a jump of ids: a loss or something else unusual */
#define TIMED_MIN 8     /* starts that fit the time of their calls, or one end */
#define LOST_BEFORE 3u  /* the first of them may have lost their calls */
#define SEARCH_STEP 16u /* activities left out when nothing fits */
#define MISSES_MAX 32u  /* unmatched in a row: out of step */

static const struct hec_match_group *queued(const struct hec_trace_match *match, const struct hec_match_row *queue,
                                            uint32_t i) {
    return hec_match_group_at(match, hec_match_row_get(queue, i));
}

static struct hec_match_call *laned(const struct hec_trace_match *match, const struct hec_match_lane *lane,
                                    uint32_t i) {
    return hec_match_call_at(match, hec_match_row_get(&lane->calls, i));
}

/* ---- evidence ---- */

/* 2: the call waited for its copy and ended with it; 1: the device waited for a call, and this was then; -1: not so. */
static int score_times(const struct hec_trace_match_call *call, const struct hec_match_group *group,
                       int64_t idle_since_ns) {
    if (call->match_class == HEC_TRACE_MATCH_COPY && call->end_ns >= group->end_ns - HEC_MATCH_SLACK_NS &&
        call->end_ns < group->end_ns + 50000)
        return 2;
    int64_t delay_ns = group->start_ns - call->end_ns;
    if (group->start_ns <= idle_since_ns + BREAK_NS || (delay_ns >= PROMPT_NS && delay_ns < 10 * PROMPT_NS))
        return 0;
    return delay_ns < PROMPT_NS ? 1 : -1;
}

static int score_pair(const struct hec_trace_match *match, const struct hec_match_call *call,
                      const struct hec_match_group *group, int64_t idle_since_ns, enum hec_match_says *says) {
    const struct hec_trace_match_call *reported = &call->reported;
    *says = HEC_MATCH_UNKNOWN;
    if (reported->match_class != group->match_class || call->taken ||
        reported->start_ns > group->start_ns + HEC_MATCH_SLACK_NS ||
        (reported->device != HEC_TRACE_MATCH_NO_DEVICE && reported->device != group->device))
        return HEC_MATCH_BAD;
    int score = 0;
    if (reported->match_class == HEC_TRACE_MATCH_KERNEL) {
        *says = hec_match_name_says(match->learned, reported->func, group->name);
        if (*says == HEC_MATCH_CONFLICT)
            return HEC_MATCH_BAD;
        score += *says == HEC_MATCH_AGREE ? 15 : 0;
    } else {
        if (reported->bytes && group->bytes && reported->match_class != HEC_TRACE_MATCH_GRAPH) {
            if (reported->bytes != group->bytes)
                return HEC_MATCH_BAD;
            score += 15;
        }
    }
    int times = score_times(reported, group, idle_since_ns);
    return score + (times > 0 ? 20 : 10 * times);
}

static uint64_t identity(const struct hec_trace_match_call *call) {
    return call->match_class == HEC_TRACE_MATCH_KERNEL ? call->func : call->match_class;
}

/* The step between two calls of a lane with so many other calls between them. */
static uint64_t step_key(const struct hec_match_call *from, const struct hec_match_call *to) {
    uint64_t key = identity(&from->reported) * UINT64_C(0x9e3779b97f4a7c15) ^ identity(&to->reported);
    key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + (to->seq - from->seq) * UINT64_C(0x94d049bb133111eb);
    return (key ^ key >> 32 ^ (uint64_t)(from->reported.track != to->reported.track)) | 1;
}

/* Ids that the calls of the lane are expected to take, up to calls[end). */
static void expect(const struct hec_trace_match *match, struct hec_match_lane *lane, uint32_t end) {
    for (; lane->learned < end; lane->learned++) {
        struct hec_match_call *call = laned(match, lane, lane->learned);
        if (lane->learned == 0) {
            call->expect = call->blind = 0;
            continue;
        }
        const struct hec_match_call *before = laned(match, lane, lane->learned - 1);
        uint32_t ids = 0;
        bool known = hec_match_step_get(match->learned, step_key(before, call), &ids);
        call->expect = before->expect + ids;
        call->blind = before->blind + !known;
    }
}

/* How well the ids from one matched pair to the next fit; expect() has been there. */
static int score_step(uint32_t ids_per_call, const struct hec_match_call *from, const struct hec_match_call *to,
                      uint32_t ids) {
    uint32_t calls = to->seq - from->seq, spare = from->reported.track != to->reported.track ? 2 : 0;
    if (ids + spare < calls) /* each call takes one */
        return -40;
    if (from->blind != to->blind) { /* about as many as a call takes on average */
        uint32_t expected = (uint32_t)((uint64_t)calls * ids_per_call / 256), allowed = 3 + expected / 3;
        uint32_t off = ids > expected ? ids - expected : expected - ids;
        return ids_per_call == 0 || off <= allowed ? 0 : off <= 2 * allowed ? -15 : -40;
    }
    return to->expect - from->expect == ids ? 12 : -25;
}

static int score_skip(uint32_t count) {
    return count <= 3   ? -45 * (int)count
           : count <= 8 ? -(int)(117 + 6 * count)
                        : -400; /* e^-4.5: one in a hundred; more at once is searched for */
}

/* Calls of two threads at once, of one function: nobody knows which was first. */
static bool is_twin(const struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t i) {
    const struct hec_trace_match_call *call = &laned(match, lane, i)->reported;
    for (int side = -1; side <= 1; side += 2) {
        if ((side < 0 && i == 0) || (side > 0 && i + 1 >= lane->calls.count))
            continue;
        const struct hec_trace_match_call *other = &laned(match, lane, side < 0 ? i - 1 : i + 1)->reported;
        if (other->track != call->track && other->start_ns < call->end_ns && call->start_ns < other->end_ns &&
            identity(other) == identity(call) && other->bytes == call->bytes)
            return true;
    }
    return false;
}

/* ---- matching ---- */

/* The queue's first is calls[at]. learn: names too. What follows a loss could be wrong again and again if it were. */
static void accept(struct hec_trace_match *match, struct hec_match_lane *lane, uint32_t at, bool learn) {
    const struct hec_match_group *group = queued(match, &lane->queue, 0);
    const struct hec_match_call *call = laned(match, lane, at);
    uint32_t id = group->correlation;
    int times = score_times(&call->reported, group, lane->last_end_ns);
    lane->prompt = times == 1 ? lane->prompt + 1 : times == 2 ? TIMED_MIN : 0;
    lane->sure = lane->sure || lane->prompt >= TIMED_MIN;
    if (learn && lane->sure && call->reported.match_class == HEC_TRACE_MATCH_KERNEL)
        hec_match_name_seen(match->learned, call->reported.func, group->name);
    if (lane->has_last && at == lane->cursor && at > 0)
        hec_match_step_seen(match->learned, step_key(laned(match, lane, at - 1), call), id - lane->last_id);
    if (lane->has_last && lane->cursor > 0) {
        uint32_t calls = call->seq - laned(match, lane, lane->cursor - 1)->seq, per_call = 0;
        if (calls > 0 && (per_call = (id - lane->last_id) / calls) < IDS_MANY)
            lane->ids_per_call = lane->ids_per_call
                                     ? (lane->ids_per_call * 63 + (id - lane->last_id) * 256 / calls) / 64
                                     : per_call * 256;
    }
    hec_match_decide(match, lane, at);
    lane->cursor = at + 1;
    lane->last_id = id;
    lane->has_last = true;
    lane->misses = 0;
    lane->fresh = false;
}

/* Equal calls in a row, from the next on, are as many as equal activities: none of them was lost. */
static bool has_repeats(const struct hec_trace_match *match, const struct hec_match_lane *lane) {
    const struct hec_match_group *group = queued(match, &lane->queue, 0);
    const struct hec_match_call *call = laned(match, lane, lane->cursor);
    for (uint32_t i = 1; i < REPEATS_MAX && i < lane->queue.count && lane->cursor + i < lane->calls.count; i++) {
        const struct hec_match_group *other = queued(match, &lane->queue, i);
        bool more_groups = other->match_class == group->match_class && other->name == group->name;
        bool more_calls = identity(&laned(match, lane, lane->cursor + i)->reported) == identity(&call->reported);
        if (!more_groups || !more_calls)
            return more_groups == more_calls;
    }
    return false;
}

/* The next activity is that of the next call, as always. */
static bool goes_on(struct hec_trace_match *match, struct hec_match_lane *lane) {
    if (!lane->has_last || lane->cursor == 0 || lane->cursor >= lane->calls.count)
        return false;
    const struct hec_match_group *group = queued(match, &lane->queue, 0);
    const struct hec_match_call *call = laned(match, lane, lane->cursor);
    const struct hec_match_call *last = laned(match, lane, lane->cursor - 1);
    uint32_t ids;
    enum hec_match_says says;
    int score = score_pair(match, call, group, lane->last_end_ns, &says);
    if (score < 0 || (call->reported.match_class == HEC_TRACE_MATCH_KERNEL && says != HEC_MATCH_AGREE) ||
        !hec_match_step_get(match->learned, step_key(last, call), &ids) || ids != group->correlation - lane->last_id ||
        is_twin(match, lane, lane->cursor) || !has_repeats(match, lane))
        return false;
    accept(match, lane, lane->cursor, false);
    return true;
}

/* What a pair shows beside being possible. */
static bool is_anchor(const struct hec_match_call *call, const struct hec_match_group *group,
                      enum hec_match_says says) {
    return call->reported.match_class == HEC_TRACE_MATCH_KERNEL
               ? says == HEC_MATCH_AGREE
               : call->reported.match_class == HEC_TRACE_MATCH_GRAPH || (call->reported.bytes && group->bytes);
}

/* What functions are called as far as this alignment goes. */
static enum hec_match_says guess(struct hec_trace_match *match, uint64_t func, uint32_t name) {
    if (func == 0 || name == 0)
        return HEC_MATCH_UNKNOWN;
    struct hec_match_guess *slot = &match->guesses[(func * UINT64_C(11400714819323198485)) >> 54];
    if (slot->trial == match->trial && slot->func == func)
        return slot->name == name ? HEC_MATCH_AGREE : HEC_MATCH_CONFLICT;
    *slot = (struct hec_match_guess){func, name, match->trial};
    return HEC_MATCH_UNKNOWN;
}

/* How many of the next activities are those of the next calls, one by one: as many as lie before something that fits
 * and that would not if any were lost on the way: bytes, or STREAK_MIN known names that change; or half of a long run
 * that does not contradict itself. */
static uint32_t plain_run(struct hec_trace_match *match, struct hec_match_lane *lane) {
    uint32_t anchored = 0, agreed = 0, at = 0, streak = 0, changes = 0, varied = 0;
    match->trial++;
    for (; at < RUN_MAX && at < lane->queue.count && lane->cursor + at < lane->calls.count; at++) {
        const struct hec_match_group *group = queued(match, &lane->queue, at);
        const struct hec_match_call *call = laned(match, lane, lane->cursor + at);
        enum hec_match_says says;
        if (score_pair(match, call, group, INT64_MAX - BREAK_NS, &says) == HEC_MATCH_BAD ||
            is_twin(match, lane, lane->cursor + at))
            break;
        if (at > 0 || lane->has_last) {
            const struct hec_match_call *before =
                lane->cursor + at > 0 ? laned(match, lane, lane->cursor + at - 1) : call;
            uint32_t id = at ? queued(match, &lane->queue, at - 1)->correlation : lane->last_id, ids;
            ids = group->correlation - id;
            if (ids + (before->reported.track != call->reported.track ? 2 : 0) < call->seq - before->seq ||
                ids > IDS_MANY + 8 * (call->seq - before->seq))
                break;
            changes += identity(&before->reported) != identity(&call->reported);
            varied += changes > 0;
        }
        if (!is_anchor(call, group, says))
            streak = changes = 0;
        else if (call->reported.match_class != HEC_TRACE_MATCH_KERNEL && call->reported.bytes)
            anchored = at + 1;
        else if (++streak >= 2 * STREAK_MIN && changes > STREAK_MIN / 2 && at + 1 - STREAK_MIN > anchored)
            anchored = at + 1 - STREAK_MIN; /* the last may fit by chance */
        if (call->reported.match_class == HEC_TRACE_MATCH_KERNEL) {
            says = guess(match, call->reported.func, group->name);
            if (says == HEC_MATCH_CONFLICT)
                break;
            agreed += says == HEC_MATCH_AGREE;
        }
        if (anchored > RUN_ENOUGH)
            break;
    }
    return at == RUN_MAX && agreed > RUN_MAX / 4 && varied > RUN_MAX / 4 && anchored < RUN_MAX / 2 ? RUN_MAX / 2
                                                                                                   : anchored;
}

/* Equal calls of a function that nothing is known of, and equal activities. No window sees an anchor among more of them
 * than it holds, but a row of them is proof by itself: ids that never advance twice as far as elsewhere in it have lost
 * no activity, and a row that ends on either side after as many has lost no call. Where it does not end, its half is
 * taken: what follows could only be wrong by what was lost at its begin. *wait: its end may still arrive. */
static uint32_t even_run(const struct hec_trace_match *match, const struct hec_match_lane *lane, bool due, bool *wait) {
    uint32_t n = 0, least = UINT32_MAX, most = 0;
    bool calls_end = false, groups_end = false;
    for (; n < EVEN_MAX && n < lane->queue.count && lane->cursor + n < lane->calls.count; n++) {
        const struct hec_match_group *first = queued(match, &lane->queue, 0), *group = queued(match, &lane->queue, n);
        const struct hec_match_call *call = laned(match, lane, lane->cursor + n);
        calls_end = identity(&call->reported) != identity(&laned(match, lane, lane->cursor)->reported);
        groups_end = group->match_class != first->match_class || group->name != first->name;
        if (calls_end || groups_end)
            break;
        enum hec_match_says says;
        if (call->reported.match_class != HEC_TRACE_MATCH_KERNEL ||
            score_pair(match, call, group, INT64_MAX - BREAK_NS, &says) == HEC_MATCH_BAD || says != HEC_MATCH_UNKNOWN ||
            is_twin(match, lane, lane->cursor + n))
            return 0;
        if (n == 0 && !lane->has_last)
            continue;
        uint32_t ids = group->correlation - (n ? queued(match, &lane->queue, n - 1)->correlation : lane->last_id);
        uint32_t at = lane->cursor + n, seqs = at ? call->seq - laned(match, lane, at - 1)->seq : 1;
        if (ids < seqs || ids > IDS_MANY + 8 * seqs)
            return 0;
        if (n > 0) {
            least = ids < least ? ids : least;
            most = ids > most ? ids : most;
        }
    }
    if (n < 2 || most >= 2 * least || calls_end != groups_end)
        return 0;
    if (calls_end)
        return n >= EVEN_MIN ? n : 0;
    *wait = !due && n < EVEN_MAX;
    return !*wait && n >= RUN_MAX ? n / 2 : 0;
}

static bool row_is_due(const struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t row) {
    return match->final || queued(match, &lane->queue, row)->arrived_ns <= match->now_ns - HEC_TRACE_MATCH_DUE_NS;
}

static bool run_on(struct hec_trace_match *match, struct hec_match_lane *lane, bool *wait) {
    if (lane->misses > 0 || lane->cursor >= lane->calls.count)
        return false;
    uint32_t count = plain_run(match, lane);
    if (count == 0)
        count = even_run(match, lane, row_is_due(match, lane, 0), wait);
    for (uint32_t i = 0; i < count; i++)
        accept(match, lane, lane->cursor, true);
    return count > 0;
}

/* ---- a window ---- */

static void find_cells(struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t row, uint32_t calls,
                       uint32_t center) {
    const struct hec_match_group *group = queued(match, &lane->queue, row);
    int64_t idle_since_ns = row ? queued(match, &lane->queue, row - 1)->end_ns : lane->last_end_ns;
    uint32_t count = 0;
    for (uint32_t d = 0; d <= 2 * AHEAD && count < HEC_MATCH_CANDIDATES; d++) {
        uint32_t away = (d + 1) / 2, at = d & 1 ? center - away : center + away;
        enum hec_match_says says;
        if (at >= calls || ((d & 1) && away > BEHIND)) /* a call before the first wraps and is left out */
            continue;
        int pair = score_pair(match, laned(match, lane, lane->cursor + at), group, idle_since_ns, &says);
        if (pair != HEC_MATCH_BAD)
            match->cells[row][count++] = (struct hec_match_cell){
                .call = at, .pair = pair, .anchor = is_anchor(laned(match, lane, lane->cursor + at), group, says)};
    }
    match->cell_counts[row] = count;
}

/* From one pair to the next, without either's own score. */
static int score_move(const struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t row,
                      const struct hec_match_cell *cell, uint32_t to_row, const struct hec_match_cell *to) {
    if (to->call <= cell->call)
        return HEC_MATCH_BAD;
    uint32_t ids = queued(match, &lane->queue, to_row)->correlation - queued(match, &lane->queue, row)->correlation;
    return score_skip(to->call - cell->call - 1) + score_skip(to_row - row - 1) +
           score_step(lane->ids_per_call, laned(match, lane, lane->cursor + cell->call),
                      laned(match, lane, lane->cursor + to->call), ids);
}

/* To the first pair, from what was matched last. */
static int score_first(const struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t row,
                       const struct hec_match_cell *cell) {
    /* what was left out since then had calls, it may be */
    uint32_t spare = cell->call < lane->misses ? cell->call : lane->misses;
    int score = score_skip(cell->call - spare) + score_skip(row);
    if (lane->has_last && lane->cursor > 0)
        score += score_step(lane->ids_per_call, laned(match, lane, lane->cursor - 1),
                            laned(match, lane, lane->cursor + cell->call),
                            queued(match, &lane->queue, row)->correlation - lane->last_id);
    return score;
}

static void forward(struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t rows, uint32_t calls) {
    /* the best pair so far, or the corner: candidates of the next row lie about it */
    uint32_t center = lane->misses < calls ? lane->misses : 0, left_out = 0;
    int best = 0;
    for (uint32_t row = 0; row < rows; row++) {
        left_out++;
        find_cells(match, lane, row, calls, center);
        for (uint32_t i = 0; i < match->cell_counts[row]; i++) {
            struct hec_match_cell *cell = &match->cells[row][i];
            cell->before = score_first(match, lane, row, cell);
            for (uint32_t back = 0, from = row; from-- > 0 && back < BACK;) {
                back += match->cell_counts[from] > 0;
                for (uint32_t k = 0; k < match->cell_counts[from]; k++) {
                    int move = score_move(match, lane, from, &match->cells[from][k], row, cell);
                    if (move != HEC_MATCH_BAD && match->cells[from][k].before + move > cell->before)
                        cell->before = match->cells[from][k].before + move;
                }
            }
            cell->before += cell->pair;
            if (cell->before > best + score_skip(left_out)) {
                best = cell->before;
                center = cell->call + 1;
                left_out = 0;
            }
        }
    }
}

/* And skip[row]: the best alignment without that activity. */
static void backward(struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t rows) {
    for (uint32_t row = 0; row < rows; row++)
        match->skip[row] = score_skip(rows);
    for (uint32_t row = rows; row-- > 0;)
        for (uint32_t i = 0; i < match->cell_counts[row]; i++) {
            struct hec_match_cell *cell = &match->cells[row][i];
            cell->after = score_skip(rows - 1 - row);
            for (uint32_t r = row + 1; r < rows; r++)
                if (cell->before + cell->after > match->skip[r])
                    match->skip[r] = cell->before + cell->after;
            for (uint32_t back = 0, to = row + 1; to < rows && back < BACK; to++) {
                back += match->cell_counts[to] > 0;
                for (uint32_t k = 0; k < match->cell_counts[to]; k++) {
                    const struct hec_match_cell *next = &match->cells[to][k];
                    int move = score_move(match, lane, row, cell, to, next);
                    if (move == HEC_MATCH_BAD)
                        continue;
                    int after = move + next->pair + next->after;
                    if (after > cell->after)
                        cell->after = after;
                    for (uint32_t r = row + 1; r < to; r++)
                        if (cell->before + after > match->skip[r])
                            match->skip[r] = cell->before + after;
                }
            }
            int first = score_first(match, lane, row, cell) + cell->pair + cell->after;
            for (uint32_t r = 0; r < row; r++)
                if (first > match->skip[r])
                    match->skip[r] = first;
        }
}

/* The call of a row by all evidence; HEC_MATCH_NONE: none, or it is not sure. What was never seen before needs something
 * known after it: without, nobody sees what is lost on the way. */
static uint32_t verdict(const struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t row,
                        int lead_min, uint32_t *anchored) {
    bool anchor = false;
    int best = HEC_MATCH_BAD, next = match->skip[row];
    uint32_t call = HEC_MATCH_NONE;
    for (uint32_t i = 0; i < match->cell_counts[row]; i++) {
        const struct hec_match_cell *cell = &match->cells[row][i];
        int whole = cell->before + cell->after;
        if (whole > best) {
            next = best > next ? best : next;
            best = whole;
            call = cell->call;
            anchor = cell->anchor;
        } else if (whole > next) {
            next = whole;
        }
    }
    if (call == HEC_MATCH_NONE || best - next < lead_min || is_twin(match, lane, lane->cursor + call))
        return HEC_MATCH_NONE;
    *anchored += anchor;
    return anchor || *anchored >= STREAK_MIN ? call : HEC_MATCH_NONE;
}

/* false: nothing can be decided yet. */
static bool align_window(struct hec_trace_match *match, struct hec_match_lane *lane) {
    uint32_t rows = lane->queue.count, calls = lane->calls.count - lane->cursor, ready = 0;
    if (rows > HEC_MATCH_WINDOW)
        rows = HEC_MATCH_WINDOW;
    if (calls > CALLS_AHEAD)
        calls = CALLS_AHEAD;
    if (rows == HEC_MATCH_WINDOW)
        ready = HEC_MATCH_WINDOW * 2 / 3;
    else
        while (ready < rows && row_is_due(match, lane, ready))
            ready++;
    if (ready == 0)
        return false;
    if (lane->learned > lane->cursor) /* with what is known by now */
        lane->learned = lane->cursor;
    expect(match, lane, lane->cursor + calls);
    forward(match, lane, rows, calls);
    backward(match, lane, rows);
    uint32_t verdicts[HEC_MATCH_WINDOW], last = 0, base = lane->cursor;
    uint32_t anchored = 0;
    uint32_t changes = 0;
    for (uint32_t i = 1; i < calls; i++)
        changes +=
            identity(&laned(match, lane, base + i - 1)->reported) != identity(&laned(match, lane, base + i)->reported);
    for (uint32_t row = rows; row-- > 0;) {
        verdicts[row] = verdict(match, lane, row, changes < calls / 8 ? LEAD_ALIKE_MIN : LEAD_MIN, &anchored);
        if (last == 0 && row < ready && verdicts[row] != HEC_MATCH_NONE)
            last = row + 1;
    }
    if (last == 0 && ready > MISSES_MAX / 2) {
        if (lane->queue.count < RUN_MAX && !row_is_due(match, lane, 0))
            return false; /* a run that decides may still arrive */
        lane->synced = false;
        for (uint32_t i = 0; lane->fresh && i < SEARCH_STEP; i++) /* the search would lead here again */
            hec_match_decide(match, lane, HEC_MATCH_NONE);
        return true;
    }
    for (uint32_t row = 0; row < ready; row++) {
        /* the rest is looked at again with what follows it */
        if (row >= last && !row_is_due(match, lane, 0))
            return true;
        if (verdicts[row] == HEC_MATCH_NONE) {
            hec_match_decide(match, lane, HEC_MATCH_NONE);
            lane->synced = ++lane->misses < MISSES_MAX;
        } else {
            accept(match, lane, base + verdicts[row], false);
        }
    }
    return true;
}

/* ---- out of step ---- */

/* Evidence that the queue from `from` on are the calls from `at` on, up to where it contradicts itself. */
static int score_run(struct hec_trace_match *match, const struct hec_match_lane *lane,
                     const struct hec_match_row *queue, uint32_t from, uint32_t at, uint64_t *credit, int *timed) {
    int score = 0, best = 0;
    *timed = 0;
    match->trial++;
    for (uint32_t i = 0; i < SEARCH_GROUPS && from + i < queue->count && at + i < lane->calls.count; i++) {
        const struct hec_match_group *group = queued(match, queue, from + i);
        const struct hec_match_call *call = laned(match, lane, at + i);
        enum hec_match_says says;
        *credit -= *credit > 0;
        int pair = score_pair(match, call, group, from + i ? queued(match, queue, from + i - 1)->end_ns : 0, &says);
        if (pair == HEC_MATCH_BAD)
            break;
        if (call->reported.match_class == HEC_TRACE_MATCH_KERNEL && says == HEC_MATCH_UNKNOWN) {
            says = guess(match, call->reported.func, group->name);
            if (says == HEC_MATCH_CONFLICT)
                break;
            pair += says == HEC_MATCH_AGREE ? 8 : 0;
        }
        int times = i > 0 ? score_times(&call->reported, group, queued(match, queue, from + i - 1)->end_ns) : 0;
        *timed += times == 2 ? TIMED_MIN : times == 1;
        if (i > 0)
            pair += score_step(lane->ids_per_call, laned(match, lane, at + i - 1), call,
                               group->correlation - queued(match, queue, from + i - 1)->correlation);
        score += pair;
        if (score > best)
            best = score;
        if (score < best - 100)
            break;
    }
    return best;
}

/* The first call since the device is recorded, of those before `high`; HEC_MATCH_NONE: not known, or it is gone. */
static uint32_t first_call(const struct hec_trace_match *match, const struct hec_match_lane *lane, uint32_t high) {
    if (match->since_ns == 0)
        return HEC_MATCH_NONE;
    uint32_t at = 0;
    for (uint32_t size = high; size > 0;) {
        uint32_t half = size / 2;
        if (laned(match, lane, at + half)->reported.start_ns < match->since_ns) {
            at += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    return at < high && at >= lane->cursor && !lane->first_gone ? at : HEC_MATCH_NONE;
}

struct hec_match_place hec_match_search(struct hec_trace_match *match, struct hec_match_lane *lane,
                                        const struct hec_match_row *queue, uint64_t *credit) {
    struct hec_match_place place = {HEC_MATCH_NONE, 0, 0, 0, false};
    const struct hec_match_group *group =
        queued(match, queue, queue->count > LOST_BEFORE ? LOST_BEFORE : queue->count - 1);
    uint32_t low = lane->cursor, high = lane->calls.count;
    for (uint32_t size = high - low; size > 0;) { /* the last call that it may belong to */
        uint32_t half = size / 2;
        if (laned(match, lane, low + half)->reported.start_ns <= group->start_ns + HEC_MATCH_SLACK_NS) {
            low += half + 1;
            size -= half + 1;
        } else {
            size = half;
        }
    }
    high = low;
    low = high - lane->cursor > SEARCH_CALLS ? high - SEARCH_CALLS : lane->cursor;
    expect(match, lane, high + SEARCH_GROUPS < lane->calls.count ? high + SEARCH_GROUPS : lane->calls.count);
    const struct hec_match_call *last =
        lane->has_last && lane->cursor > 0 ? laned(match, lane, lane->cursor - 1) : NULL;
    uint32_t first = last ? HEC_MATCH_NONE : first_call(match, lane, high);
    if (first != HEC_MATCH_NONE && first >= low)
        low = first;
    int second = 0;
    bool sure = false;
    /* the first of all is looked at before the others: it may lie far back, and credit ends */
    for (uint32_t i = first == HEC_MATCH_NONE; i <= high - low && *credit > 0; i++) {
        uint32_t at = i == 0 ? first : high - i;
        if (i > 0 && at == first)
            continue;
        const struct hec_match_call *call = laned(match, lane, at);
        if (call->reported.start_ns < match->since_ns)
            break;
        for (uint32_t from = 0; from <= LOST_BEFORE && from < queue->count; from++) {
            int timed, score = score_run(match, lane, queue, from, at, credit, &timed);
            /* equal steps look alike: time says which it is, where what came before is not known */
            bool known = timed >= TIMED_MIN || last;
            if (score <= 0)
                continue;
            if (last && queue == &lane->queue) {
                int step =
                    score_step(lane->ids_per_call, last, call, queued(match, queue, from)->correlation - lane->last_id);
                if (step <= -40 && timed < TIMED_MIN)
                    continue;
                /* as many calls as activities were left out, or something was lost */
                uint32_t expected = lane->cursor + lane->misses + from;
                score += (step > 0 ? 40 : step) + score_skip(at > expected ? at - expected : expected - at);
            }
            /* the first of all is the first of all, if anything speaks for it */
            if (from == 0 && at == first)
                score += 30, known = true;
            score += score_skip(from);
            bool same = place.call != HEC_MATCH_NONE && at - from == place.call - place.from;
            if (score > place.score) {
                second = same ? second : place.score;
                place = (struct hec_match_place){at, from, score, 0, timed >= TIMED_MIN};
                sure = known;
            } else if (score > second && !same) {
                second = score;
            }
        }
    }
    place.lead = sure ? place.score - second : 0;
    return place;
}

/* false: wait for more. */
static bool resync(struct hec_trace_match *match, struct hec_match_lane *lane) {
    bool due = row_is_due(match, lane, 0);
    if (!due && lane->queue.count < lane->tried + HEC_MATCH_WINDOW)
        return false;
    struct hec_match_place place = hec_match_search(match, lane, &lane->queue, &lane->credit);
    lane->tried = lane->queue.count;
    if (place.call != HEC_MATCH_NONE && place.score >= HEC_MATCH_ENOUGH && place.lead >= HEC_MATCH_LEAD) {
        for (uint32_t i = 0; i < place.from; i++)
            hec_match_decide(match, lane, HEC_MATCH_NONE);
        lane->has_last = lane->has_last && lane->cursor == place.call;
        lane->cursor = place.call;
        lane->sure = place.timed; /* else what is found is kept back until time confirms it */
        lane->prompt = 0;
        lane->synced = lane->fresh = true;
        lane->misses = lane->tried = 0;
        return true;
    }
    if (!due)
        return false;
    for (uint32_t i = 0; i < SEARCH_STEP && lane->queue.count > 0 && row_is_due(match, lane, 0); i++)
        hec_match_decide(match, lane, HEC_MATCH_NONE), lane->misses++;
    lane->tried = 0;
    return true;
}

void hec_match_align(struct hec_trace_match *match, struct hec_match_lane *lane) {
    while (lane->queue.count > 0) {
        bool wait = false;
        if (lane->synced && (goes_on(match, lane) || run_on(match, lane, &wait)))
            continue;
        if (wait)
            return;
        if (!(lane->synced ? align_window(match, lane) : resync(match, lane)))
            return;
    }
}
