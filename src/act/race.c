#include "act/race.h"

#include "base/clock.h"
#include "prove/sequential.h"

#include <stdlib.h>

struct run {
    struct hec_trials *trials;
    struct hec_race *race;
    const struct hec_race_watch *watch;
    struct hec_race_outcome *out;
    int64_t begin_ns, longest_ns;
};

static int measure(void *context, const struct hec_session *session, const struct hec_session_result *result,
                   struct hec_why *why) {
    struct run *run = context;
    if (result->exit_status && !result->stopped)
        return HEC_OK; /* it failed */
    return run->watch->measure(run->watch->context, run->out, session, result, why);
}

static int64_t patience(const struct run *run) {
    int64_t by_others = run->longest_ns * HEC_RACE_PATIENCE;
    if (run->race->patience_ns)
        return run->race->patience_ns;
    if (!run->longest_ns)
        return HEC_RACE_PATIENCE_FIRST_NS;
    return by_others > HEC_RACE_PATIENCE_LEAST_NS ? by_others : HEC_RACE_PATIENCE_LEAST_NS;
}

/* By the session that all trials share, which is left as it was. */
static int try_arm(struct run *run, const struct hec_race_arm *arm, struct hec_why *why) {
    struct hec_session_options *session = hec_trials_session(run->trials), before = *session;
    struct hec_trial_end *end = &run->out->end;
    int64_t limit_ns = patience(run);
    bool limited = !before.stop.after_ns || limit_ns < before.stop.after_ns;
    session->stop.after_ns = limited ? limit_ns : before.stop.after_ns;
    session->knobs = arm->knobs ? arm->knobs : before.knobs;
    int err = hec_trials_run(run->trials, arm->command, arm->levers, measure, run, end, why);
    session->stop = before.stop;
    session->knobs = before.knobs;
    if (err >= 0 && limited && end->stopped == HEC_STOPPED_TIME)
        end->failure = HEC_FAILURE_HUNG;
    return err;
}

/* False: the race ends here. */
static bool one(struct run *run, int index, int *err, struct hec_why *why) {
    struct hec_race_outcome *out = run->out;
    struct hec_race *race = run->race;
    if (race->budget_ns && hec_clock_mono_ns() - run->begin_ns >= race->budget_ns) {
        out->state = HEC_RACE_SPENT;
        return false;
    }
    out->arm = index;
    run->watch->begin(run->watch->context, out);
    *err = try_arm(run, &race->arms[index], why);
    if (*err < 0)
        return false;
    if (out->end.asked) {
        out->state = HEC_RACE_INTERRUPTED;
        return false;
    }
    int64_t took_ns = (int64_t)(out->end.seconds * HEC_NS_PER_S);
    if (out->end.failure)
        race->out[index] = true;
    else if (took_ns > run->longest_ns)
        run->longest_ns = took_ns;
    out->trials++;
    *err = run->watch->after(run->watch->context, out, why);
    return *err >= 0;
}

static bool round_of(struct run *run, int place, int *order, int *err, struct hec_why *why) {
    bool going = true, any = false;
    hec_sequential_order(run->race->seed, place, run->race->count, order);
    for (int i = 0; i < run->race->count && going; i++)
        if (!run->race->out[order[i]]) {
            any = true;
            going = one(run, order[i], err, why);
        }
    return going && any;
}

int hec_race_run(struct hec_trials *trials, struct hec_race *race, const struct hec_race_watch *watch,
                 struct hec_race_outcome *out, struct hec_why *why) {
    struct run run = {trials, race, watch, out, hec_clock_mono_ns(), 0};
    int err = HEC_OK, *order = calloc((size_t)race->count + 1, sizeof *order);
    bool going = order != NULL;
    *out = (struct hec_race_outcome){.round = -1};
    if (!order)
        err = hec_fail(why, HEC_ERR_NOMEM, "no memory for the order of trials");
    for (int place = 0; place < race->warm_up + race->rounds && going; place++) {
        out->round = place < race->warm_up ? -1 : place - race->warm_up;
        going = round_of(&run, place, order, &err, why);
        if (going && out->round >= 0) {
            out->rounds++;
            going = (err = watch->rounded(watch->context, out, why)) >= 0;
        }
    }
    free(order);
    return err;
}
