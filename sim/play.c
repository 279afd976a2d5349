#include "sim/play.h"

#include "base/clock.h"
#include "sim/ids.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Segments are appended this far ahead: a player that is not scheduled for as long still leaves no hole. */
#define LOOKAHEAD_NS (400 * HEC_NS_PER_MS)
/* Wake at least this often to see a stop request that came between the check and the sleep. */
#define NAP_NS (50 * HEC_NS_PER_MS)
/* After so long the sensors are where they were: the power history has five samples, the energy counter one value (but
 * for 60 us). */
#define RHYTHM_NS (100 * HEC_NS_PER_MS)
#define STEPS_PENDING_MAX 1024

static volatile sig_atomic_t signalled;

static void on_signal(int number) {
    (void)number;
    signalled = 1;
}

/* What was appended and has not happened yet: needed because an early end takes it back. */
struct pending {
    enum sim_activity activity;
    struct sim_piece piece;
    bool segment_end, step_end;
};

struct player {
    struct sim_world *world;
    const struct sim_case *workload;
    const struct sim_play_options *options;
    struct sim_cursor cursor;
    int device;
    pid_t pid;
    int64_t next_ns, end_ns, done_ns; /* schedule; end of the play; up to where the truth is counted */
    struct pending *queue;
    size_t head, tail;
    struct sim_truth truth;
    struct sim_show *show;
    struct sim_piece going[2]; /* pieces of the segment that is going on, as far as they have happened */
    int going_count;
};

static bool stopped(const struct player *player) {
    return player->options->stop ? *player->options->stop : signalled;
}

/* A piece has happened: add it to its segment, and show the segment when it is complete. */
static void show(struct player *player, enum sim_activity activity, struct sim_piece piece, bool segment_end) {
    const char *phase = activity == SIM_WAIT_DATA ? "data" : activity == SIM_WAIT_CHECKPOINT ? "checkpoint" : NULL;
    player->going[player->going_count++] = piece;
    if (phase && player->options->on_phase)
        player->options->on_phase(player->options->context, phase, piece.start_ns, piece.end_ns);
    if (segment_end || player->going_count == 2) {
        sim_show_segment(player->show, activity, player->going, player->going_count);
        player->going_count = 0;
    }
}

static void fall_idle(struct player *player, int64_t until_ns) {
    if (until_ns > player->done_ns) {
        struct sim_piece idle = {player->done_ns, until_ns, 0, sim_world_profile(player->world)->context_mw, false};
        sim_truth_add(&player->truth, SIM_CONTEXT, &idle);
        sim_show_segment(player->show, SIM_CONTEXT, &idle, 1);
        player->done_ns = until_ns;
    }
}

/* Count what has happened by now. */
static void retire(struct player *player, int64_t now_ns) {
    while (player->tail < player->head) {
        struct pending *p = &player->queue[player->tail % STEPS_PENDING_MAX];
        if (p->piece.end_ns > now_ns)
            break;
        fall_idle(player, p->piece.start_ns);
        sim_truth_add(&player->truth, p->activity, &p->piece);
        show(player, p->activity, p->piece, p->segment_end);
        player->done_ns = p->piece.end_ns;
        player->tail++;
        if (p->step_end) {
            player->truth.steps++;
            player->truth.units += player->workload->units;
            if (player->options->on_step)
                player->options->on_step(player->options->context, player->workload->units);
        }
    }
}

/* The startup is counted but not appended: a wait adds nothing to the power of a context, and its planned end stays the
 * start of the schedule however long opening the context took. */
static void start_up(struct player *player, int64_t start_ns, int64_t planned_ns) {
    struct sim_span span = sim_cursor_next(&player->cursor);
    int64_t end = planned_ns + span.duration_ns < player->end_ns ? planned_ns + span.duration_ns : player->end_ns;
    player->queue[player->head++] = (struct pending){
        span.activity, {start_ns, end, 0, sim_world_profile(player->world)->context_mw, false}, true, false};
    player->next_ns = end;
}

/* Append up to the horizon. */
static int feed(struct player *player, int64_t now_ns) {
    while (player->next_ns < player->end_ns && player->next_ns < now_ns + LOOKAHEAD_NS &&
           player->head - player->tail + 2 <= STEPS_PENDING_MAX) {
        struct sim_span span = sim_cursor_next(&player->cursor);
        int64_t lasts =
            sim_segment_lasts_ns(player->world, player->device, span.activity, player->next_ns, span.duration_ns);
        bool whole = player->next_ns + lasts <= player->end_ns;
        int64_t duration = whole ? lasts : player->end_ns - player->next_ns;
        struct sim_piece pieces[2];
        int count = sim_segment_append(player->world, player->device, player->pid, span.activity, player->next_ns,
                                       duration, pieces);
        if (count <= 0)
            return count < 0 ? count : HEC_ERR_FAILED;
        player->truth.late_seconds += (double)(pieces[0].start_ns - player->next_ns) * 1e-9;
        for (int i = 0; i < count; i++)
            player->queue[player->head++ % STEPS_PENDING_MAX] =
                (struct pending){span.activity, pieces[i], i == count - 1, span.step_end && whole && i == count - 1};
        /* a device that was busy, or a player that was late, shifts the rest of the schedule */
        player->next_ns = pieces[count - 1].end_ns;
    }
    return HEC_OK;
}

static void sleep_until(const struct player *player, int64_t now_ns) {
    int64_t until = now_ns + NAP_NS;
    if (player->tail < player->head && player->queue[player->tail % STEPS_PENDING_MAX].piece.end_ns < until)
        until = player->queue[player->tail % STEPS_PENDING_MAX].piece.end_ns;
    if (sim_world_spec(player->world)->virtual_time)
        until = now_ns + 200 * HEC_NS_PER_US; /* whoever moves the clock decides; look again soon */
    int64_t wait = until - now_ns;
    struct timespec ts = {wait / HEC_NS_PER_S, wait % HEC_NS_PER_S};
    if (wait > 0)
        nanosleep(&ts, NULL); /* a signal ends it, which is the point */
}

static int loop(struct player *player) {
    for (;;) {
        int64_t now = sim_world_now_ns(player->world);
        retire(player, now);
        if (stopped(player) || (player->tail == player->head && now >= player->end_ns))
            return HEC_OK;
        int err = feed(player, now);
        if (err)
            return err;
        sleep_until(player, now);
    }
}

/* The context was closed at end_ns: what would have come later is taken back, what was going on is cut. */
static void settle(struct player *player, int64_t end_ns) {
    retire(player, end_ns);
    enum sim_activity cut =
        player->going_count ? player->queue[player->tail % STEPS_PENDING_MAX].activity : SIM_CONTEXT;
    while (player->tail < player->head) {
        struct pending *p = &player->queue[player->tail++ % STEPS_PENDING_MAX];
        if (p->piece.start_ns >= end_ns)
            continue;
        fall_idle(player, p->piece.start_ns);
        p->piece.end_ns = end_ns;
        sim_truth_add(&player->truth, p->activity, &p->piece);
        show(player, p->activity, p->piece, true);
        player->done_ns = end_ns;
    }
    sim_show_segment(player->show, cut, player->going, player->going_count);
    fall_idle(player, end_ns);
}

/* Until the sensors are where this seed wants them: the instant from which the schedule counts. */
static int64_t wait_for_phase(const struct player *player) {
    int64_t now = sim_world_now_ns(player->world);
    if (sim_world_spec(player->world)->virtual_time)
        return now;
    int64_t phase = (int64_t)(sim_hash_unit(player->options->seed, 0, 1) * RHYTHM_NS);
    int64_t since = now - sim_world_epoch_ns(player->world) + RHYTHM_NS - phase;
    int64_t wait = RHYTHM_NS - since % RHYTHM_NS;
    sim_world_spend(player->world, wait);
    return now + wait;
}

static int play(struct player *player, int instance, struct hec_why *why) {
    const struct sim_case *workload = player->workload;
    struct sim_world *world = player->world;
    int64_t start, end, planned = wait_for_phase(player);
    sim_world_set_own_mw(world, player->device, sim_case_cap_mw(workload, sim_world_profile(world)));
    sim_show_begin(player->show, workload->memory_mib << 20, sim_world_now_ns(world));
    int err = sim_context_open(world, player->device, instance, player->pid, workload->memory_mib << 20, &start);
    if (err == HEC_OK) {
        player->done_ns = start;
        while (planned + SIM_STARTUP_NS / 2 < start) /* a host that was busy: later, but not elsewhere */
            planned += RHYTHM_NS;
        player->end_ns = planned + (int64_t)(player->options->seconds * 1e9 + 0.5);
        if (player->end_ns < start)
            player->end_ns = start;
        sim_cursor_init(&player->cursor, workload, player->options->seed);
        start_up(player, start, planned);
        err = loop(player);
        sim_context_close(world, player->device, player->pid, &end);
        settle(player, end);
    }
    sim_world_set_own_mw(world, player->device, 0);
    if (err)
        return hec_fail(why, err, "device %d of the simulated machine: %s", player->device,
                        err == HEC_ERR_FULL ? "too many contexts" : "the context was closed from outside");
    return HEC_OK;
}

int sim_play(const char *case_name, const struct sim_play_options *options, struct sim_truth *truth,
             struct hec_why *why) {
    struct sim_case_written written;
    struct player player = {.workload = sim_case_find(case_name), .options = options, .pid = getpid()};
    if (strchr(case_name, ':')) {
        int err = sim_case_read(case_name, &written, why);
        if (err)
            return err;
        player.workload = &written.workload;
    }
    if (!player.workload)
        return hec_fail(why, HEC_ERR_USAGE, "there is no case '%.60s'; `hec sim --list` shows them", case_name);
    if (!(options->seconds > 0 && options->seconds <= 1e7))
        return hec_fail(why, HEC_ERR_USAGE, "a case is played for more than 0 and at most 1e7 seconds");
    int err = sim_world_attach(options->world_path, &player.world, why);
    if (err)
        return err;
    int instance;
    err = sim_visible_device(sim_world_spec(player.world), getenv("CUDA_VISIBLE_DEVICES"), options->device,
                             &player.device, &instance, why);
    player.queue = calloc(STEPS_PENDING_MAX, sizeof *player.queue);
    if (!err && !options->world_path)
        err = sim_show_open(options->device, &player.show);
    if (!err && !player.queue)
        err = hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    if (!err) {
        struct sigaction action = {.sa_handler = on_signal}, terminate, interrupt;
        signalled = 0;
        if (!options->stop) {
            sigaction(SIGTERM, &action, &terminate);
            sigaction(SIGINT, &action, &interrupt);
        }
        err = play(&player, instance, why);
        if (!options->stop) {
            sigaction(SIGTERM, &terminate, NULL);
            sigaction(SIGINT, &interrupt, NULL);
        }
    }
    if (truth)
        *truth = player.truth;
    if (options->shown)
        sim_show_truth(player.show, options->shown);
    sim_show_close(player.show);
    free(player.queue);
    sim_world_detach(player.world);
    return err;
}

json_t *sim_cases_json(void) {
    json_t *list = json_array();
    for (int i = 0; list && i < sim_case_count(); i++) {
        const struct sim_case *c = sim_case_at(i);
        json_t *segments = json_array();
        double seconds = 0;
        for (int s = 0; s < c->segment_count; s++) {
            const struct sim_case_segment *segment = &c->segments[s];
            seconds += (double)(segment->duration_us * segment->times) * 1e-6;
            json_array_append_new(segments,
                                  json_pack("{s:s, s:f, s:i}", "activity", sim_activity_info(segment->activity)->name,
                                            "seconds", (double)segment->duration_us * 1e-6, "times", segment->times));
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:s, s:o}", "name", c->name,
                                              "planted", c->cause, "untraced", c->untraced, "unit", c->unit,
                                              "units_per_step", c->units, "step_seconds", seconds, "power_limit_w",
                                              c->cap_mw / 1000.0, "meaning", c->meaning, "segments", segments));
    }
    return json_pack("{s:o}", "cases", list);
}

static json_t *states_json(const struct sim_show_truth *shown) {
    json_t *states = json_object();
    for (int s = 0; s < SIM_STATE_COUNT; s++)
        if (shown->state[s].seconds > 0)
            json_object_set_new(
                states, sim_state_name((enum sim_state)s),
                json_pack("{s:f, s:f}", "seconds", shown->state[s].seconds, "joules", shown->state[s].joules));
    return states;
}

json_t *sim_ledger_json(const struct sim_show_truth *shown) {
    json_t *states = json_object();
    for (int s = 0; s < SIM_STATE_COUNT; s++) {
        const char *name = sim_state_of_ledger((enum sim_state)s);
        json_t *before = json_object_get(states, name);
        double seconds = shown->state[s].seconds + json_number_value(json_object_get(before, "seconds"));
        double joules = shown->state[s].joules + json_number_value(json_object_get(before, "joules"));
        if (seconds > 0)
            json_object_set_new(states, name, json_pack("{s:f, s:f}", "seconds", seconds, "joules", joules));
    }
    return states;
}

static json_t *timeline_json(const struct sim_show_truth *shown) {
    return json_pack("{s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:f, s:f, s:f, s:f, s:f}", "kernels",
                     (json_int_t)shown->kernels, "copies", (json_int_t)shown->copies, "memsets",
                     (json_int_t)shown->memsets, "bytes", "pinned", (json_int_t)shown->bytes_pinned, "pageable",
                     (json_int_t)shown->bytes_pageable, "to_host", (json_int_t)shown->bytes_to_host, "window_seconds",
                     shown->window_seconds, "busy_seconds", shown->busy_seconds, "compute_seconds",
                     shown->compute_seconds, "copy_seconds", shown->copy_seconds, "kernel_sum_seconds",
                     shown->kernel_sum_seconds);
}

json_t *sim_truth_json(const struct sim_truth *truth, const struct sim_show_truth *shown) {
    json_t *activities = json_object();
    for (int a = 0; a < SIM_ACTIVITY_COUNT; a++)
        if (truth->activity[a].seconds > 0)
            json_object_set_new(
                activities, sim_activity_info((enum sim_activity)a)->name,
                json_pack("{s:f, s:f}", "seconds", truth->activity[a].seconds, "joules", truth->activity[a].joules));
    json_t *root = json_pack("{s:f, s:f, s:{s:f, s:f}, s:{s:f, s:f}, s:f, s:I, s:f, s:f, s:o}", "seconds",
                             truth->seconds, "joules", truth->joules, "work", "seconds", truth->work_seconds, "joules",
                             truth->work_joules, "idle", "seconds", truth->idle_seconds, "joules", truth->idle_joules,
                             "capped_seconds", truth->capped_seconds, "steps", (json_int_t)truth->steps, "units",
                             truth->units, "late_seconds", truth->late_seconds, "activities", activities);
    if (root && shown && shown->shown) {
        json_object_set_new(root, "timeline", timeline_json(shown));
        json_object_set_new(root, "states", states_json(shown));
    }
    return root;
}
