#include "report/words/findings.h"

#include "diagnose/physics.h"
#include "report/words/facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DOLLARS_SHOWN 0.01
#define SPEED_SHOWN 1.05
#define SPEED_MOST 100 /* an end of an interval beyond it is no figure */

typedef char text[HEC_FORMAT_SIZE];

/* What findings rest on where none was: ", from calls", ", without a trace"; "" where some was. */
static const char *rests_on(const struct hec_summary *summary) {
    if (hec_summary_traced(summary))
        return "";
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].ledger && summary->devices[i].ledger->basis == HEC_LEDGER_CALLS)
            return ", from calls";
    return ", without a trace";
}

/* A device of one vendor lies in another's block only where its own was full. */
void hec_count_devices(const struct hec_summary *s) {
    bool by_vendor = true;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device *d = &s->devices[i].readings.device;
        const struct hec_vendor_info *block = hec_vendor_of_device(d->index);
        by_vendor = by_vendor && (d->index < HEC_VENDOR_DEVICES_MAX || !block || strcmp(block->name, d->vendor) == 0);
    }
    hec_format_count_devices(by_vendor);
}

const char *hec_device_word(char out[HEC_FORMAT_SIZE], const struct hec_summary *s, int device) {
    const struct hec_device_diagnosis *d = hec_summary_device(s, device);
    int used = 0;
    for (int i = 0; i < s->device_count; i++)
        used += s->devices[i].readings.used;
    const char *name = d ? hec_vendor_short(d->readings.device.name) : "";
    if (used > 1 || !name[0])
        hec_format_gpu(out, device);
    else
        snprintf(out, HEC_FORMAT_SIZE, "the %.60s", name);
    return out;
}

const char *hec_devices_word(char out[HEC_FORMAT_SIZE], uint64_t devices) {
    int length = snprintf(out, HEC_FORMAT_SIZE, "%s", devices ? "" : "GPU"), named = -1;
    for (int i = 0, to; i < HEC_DEVICE_MAX && length < HEC_FORMAT_SIZE; i = to + 1) {
        int last = i | (hec_format_device_block() - 1); /* of the vendor */
        for (to = i; devices >> i & 1 && to < last && devices >> (to + 1) & 1;)
            to++;
        to = to > i + 1 ? to : i; /* "0 to 3", but "0 and 1" */
        if (!(devices >> i & 1))
            continue;
        const char *joint = named < 0 ? "" : to == HEC_DEVICE_MAX - 1 || !(devices >> (to + 1)) ? " and " : ", ";
        char range[16] = "", name[HEC_FORMAT_SIZE];
        if (to > i)
            snprintf(range, sizeof range, " to %d", to % hec_format_device_block());
        if (last != named)
            hec_format_gpu(name, i);
        else
            snprintf(name, sizeof name, "%d", i % hec_format_device_block());
        length += snprintf(out + length, HEC_FORMAT_SIZE - (size_t)length, "%s%s%s", joint, name, range);
        named = last;
    }
    return out;
}

const struct hec_finding *hec_findings_top(const struct hec_findings *findings) {
    const struct hec_finding *top = findings->count ? &findings->list[0] : NULL;
    return top && top->actionable ? top : NULL;
}

const struct hec_finding *hec_findings_hint(const struct hec_findings *findings) {
    for (int i = 0; i < findings->count; i++)
        if (findings->list[i].hint)
            return &findings->list[i];
    return NULL;
}

char *hec_saving_words(char out[HEC_FORMAT_SIZE], const struct hec_finding *f) {
    bool time =
        f->seconds.best >= HEC_FINDING_WORTH && !(f->joules.best >= HEC_FINDING_WORTH); /* what it is worth by */
    bool joules = isfinite(f->joules.best) && !time;
    const struct hec_saving *s = joules ? &f->joules : &f->seconds;
    out[0] = '\0';
    if (isfinite(s->best))
        snprintf(out, HEC_FORMAT_SIZE, "%.0f %% of the %s (%.0f to %.0f%s)", 100 * s->best, joules ? "joules" : "time",
                 100 * s->low, 100 * s->high, joules && f->estimated ? ", estimated" : "");
    return out;
}

char *hec_speed_words(char out[HEC_FORMAT_SIZE], const struct hec_summary *s, const struct hec_finding *f) {
    struct hec_speed speed = hec_finding_speed(s, f);
    text range = "";
    out[0] = '\0';
    if (!(speed.best >= SPEED_SHOWN) || speed.best > SPEED_MOST)
        return out;
    if (speed.high <= SPEED_MOST)
        snprintf(range, sizeof range, " (%.2g to %.2g)", speed.low, speed.high);
    snprintf(out, HEC_FORMAT_SIZE, "%s about %.2g times as fast%.40s", speed.of_step ? "steps" : "the run", speed.best,
             range);
    return out;
}

char *hec_saves_words(char out[HEC_SAVES_WORDS], const struct hec_summary *s, const struct hec_finding *f) {
    text saving, part;
    out[0] = '\0';
    if (!hec_saving_words(saving, f)[0] || f->cause == HEC_CAUSE_NONE)
        return out;
    int length = snprintf(out, HEC_SAVES_WORDS, "%s", saving);
    if (f->saved_j > 0)
        length += snprintf(out + length, (size_t)(HEC_SAVES_WORDS - length), ", about %s",
                           hec_format_si(part, f->saved_j, 2, "J"));
    double hours = f->saved_s / 3600 * s->price.dollars_per_gpu_hour;
    double dollars = f->saved_j / HEC_JOULES_PER_KWH * s->price.dollars_per_kwh + (isfinite(hours) ? hours : 0);
    if (dollars >= DOLLARS_SHOWN)
        length += snprintf(out + length, (size_t)(HEC_SAVES_WORDS - length), ", %s", hec_format_dollars(part, dollars));
    if (hec_speed_words(part, s, f)[0])
        snprintf(out + length, (size_t)(HEC_SAVES_WORDS - length), "; %s", part);
    return out;
}

/* "41 % of its time (33 to 48)"; "": unknown. */
static const char *part_of_step(text out, const struct hec_saving *s, const char *what) {
    out[0] = '\0';
    if (isfinite(s->best))
        snprintf(out, HEC_FORMAT_SIZE, "%.0f %% of its %s (%.0f to %.0f)", 100 * s->best, what, 100 * s->low,
                 100 * s->high);
    return out;
}

char *hec_step_saving_words(char out[HEC_SAVES_WORDS], const struct hec_finding *f) {
    text time, joules;
    out[0] = '\0';
    if (!f->replayed || !part_of_step(time, &f->step_seconds, "time")[0])
        return out;
    part_of_step(joules, &(struct hec_saving){NAN, NAN, NAN}, "joules");
    if (!f->joules_ruled)
        part_of_step(joules, &f->step_joules, "joules");
    snprintf(out, HEC_SAVES_WORDS, "%s%s%s, by replay", time, joules[0] ? ", " : "", joules);
    return out;
}

char *hec_rest_words(char out[HEC_SAVES_WORDS], double seconds, double joules) {
    int length = 0;
    out[0] = '\0';
    if (isfinite(seconds))
        length = snprintf(out, HEC_SAVES_WORDS, "%.0f %% of a step's time", 100 * seconds);
    if (length > 0 && isfinite(joules))
        snprintf(out + length, (size_t)(HEC_SAVES_WORDS - length), ", %.0f %% of its joules", 100 * joules);
    return out;
}

/* ---- the headline ---- */

static bool only_idle(uint32_t states) {
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        if (states & (1u << i) && !hec_state_idle((enum hec_state)i))
            return false;
    return states != 0;
}

/* "the H200 idled 41 % of the loop's 58 s", "... 41 % of 62 s, 1.9 kJ of 4.6 kJ" where the loop is all of it or not known;
 * false: the ledger does not say. */
static bool idled(char *out, size_t size, const struct hec_summary *s, const struct hec_finding *f) {
    const struct hec_device_diagnosis *device = hec_summary_device(s, f->device);
    const struct hec_ledger_device *d = device ? device->ledger : NULL;
    text name, share, whole, part, all;
    double seconds = 0, joules = 0;
    if (!d || !d->window_ns || !only_idle(f->states))
        return false;
    const struct hec_ledger_device *steady = device->steady;
    bool loop = steady && steady->window_ns && steady->window_ns < d->window_ns;
    d = loop ? steady : d;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        if (!(f->states & (1u << i)) || !d->rows[i].ns)
            continue;
        seconds += d->rows[i].seconds;
        joules += d->rows[i].joules;
    }
    double window = (double)d->window_ns / 1e9;
    bool shared = device->readings.others == HEC_OTHERS_BUSY; /* it may have worked for them, and took joules for it */
    int length = snprintf(out, size, "%s %s %s of %s%s", hec_device_word(name, s, f->device),
                          shared ? "had no work from the command" : "idled", hec_format_share(share, seconds / window),
                          loop ? "the loop's " : "", hec_format_seconds(whole, window));
    if (!shared && !loop && isfinite(joules) && isfinite(d->joules))
        snprintf(out + length, size - (size_t)length, ", %s of %s", hec_format_si(part, joules, 2, "J"),
                 hec_format_si(all, d->joules, 3, "J"));
    return true;
}

static void found_of(char *out, size_t size, const struct hec_summary *s, const struct hec_finding *f) {
    char what[256], sure[64] = "", title[HEC_FACT_SIZE];
    if (!hec_summary_traced(s))
        snprintf(sure, sizeof sure, " (%s, confidence %.2f)", rests_on(s) + 2, f->confidence);
    bool other = f->cause == HEC_CAUSE_STRAGGLER ||
                 f->cause == HEC_CAUSE_IDLE; /* other devices wait; a hold is not of the loop */
    if (!other && idled(what, sizeof what, s, f))
        snprintf(out, size, "%s: %s%s", hec_cause_title(f->cause), what, sure);
    else
        snprintf(out, size, "%s%s", hec_title_words(title, f), sure);
}

static void found_nothing(char *out, size_t size, const struct hec_summary *s) {
    int at = 0;
    while (at < s->device_count && !s->devices[at].readings.used)
        at++;
    if (at == s->device_count) {
        if (s->imported[0])
            snprintf(out, size, "nothing to judge: the trace holds no activity of a device");
        return;
    }
    if (hec_findings_unseen(&s->job.findings)) {
        char what[HEC_FACT_SIZE];
        snprintf(out, size, "no cause stands out: %s",
                 hec_evidence_words(what, &(struct hec_finding){0}, &s->job.findings.unseen));
        return;
    }
    const struct hec_device_summary *d = &s->devices[at].readings;
    const struct hec_ledger_device *ledger = s->devices[at].ledger;
    text name, busy, whole;
    if (!ledger || !ledger->window_ns) {
        hec_device_word(name, s, d->device.index);
        if (isfinite(d->activity.engine) && d->others == HEC_OTHERS_IDLE)
            snprintf(out, size,
                     "no cause stands out: the engine of %s was active %s of the time in use, without a trace", name,
                     hec_format_share(busy, d->activity.engine));
        else
            snprintf(out, size, "no cause stands out: nothing says what %s did", name);
        return;
    }
    double window = (double)ledger->window_ns / 1e9, idle = 0;
    bool shared = d->others != HEC_OTHERS_IDLE;
    int most = 0;
    char mostly[96] = "";
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        idle += hec_state_idle((enum hec_state)i) ? ledger->rows[i].seconds : 0;
        most = ledger->rows[i].seconds > ledger->rows[most].seconds ? i : most;
    }
    if (hec_state_idle((enum hec_state)most))
        snprintf(mostly, sizeof mostly, "; %s took %.16s", hec_state_name((enum hec_state)most),
                 hec_format_share(busy, ledger->rows[most].seconds / window));
    snprintf(out, size, "no cause stands out: %s was busy%s %s of %s%s", hec_device_word(name, s, d->device.index),
             shared ? " with the command's work" : "", hec_format_share(busy, 1 - idle / window),
             hec_format_seconds(whole, window), mostly);
}

bool hec_unsteady_words(char out[160], const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (!d->readings.used || !d->ledger || !d->steady || d->steady->window_ns < d->ledger->window_ns)
            continue;
        bool few = d->steps.count < hec_steady_least(d->steps.source);
        if (d->steps.count && !few && hec_steps_of_window(d->steps.source))
            continue; /* the loop is all there is */
        if (d->steps.count && few)
            snprintf(out, 160, "only %lld step%s: set-up and loop are not separated, and all of the run is judged",
                     (long long)d->steps.count, d->steps.count == 1 ? "" : "s");
        else
            snprintf(out, 160,
                     "the program reports no steps: set-up and loop are not separated, and all of the run is judged");
        return true;
    }
    return false;
}

/* The driver's utilisation is all that shows what a device did. */
static bool without_counters(const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *d = &s->devices[i].readings;
        if (d->used && d->activity.readings && !d->activity.has_gpm && !s->devices[i].ledger)
            return true;
    }
    return false;
}

static const struct hec_device_summary *shared_one(const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].readings.used && s->devices[i].readings.others != HEC_OTHERS_IDLE)
            return &s->devices[i].readings;
    return NULL;
}

/* The hooks report a loss every 100 ms: where steps are faster, the one before it tells how far back it may go. */
bool hec_loss_words(char out[160], const struct hec_summary *s) {
    const struct hec_step_summary *steps = &s->steps;
    const char *what = isnan(steps->nonfinite_last) ? "nan" : "infinite";
    char where[64], before[64] = "";
    text when;
    if (!steps->nonfinite)
        return false;
    if (steps->nonfinite_step)
        snprintf(where, sizeof where, "step %lld of %lld", (long long)steps->nonfinite_step, (long long)steps->count);
    else
        snprintf(where, sizeof where, "%s after the start",
                 hec_format_seconds(when, (double)steps->nonfinite_ns / 1e9));
    if (steps->finite_step && steps->finite_step < steps->nonfinite_step - 1)
        snprintf(before, sizeof before, " (finite at step %lld)", (long long)steps->finite_step);
    if (isfinite(steps->nonfinite_last))
        snprintf(out, 160, "the loss was nan or infinite %lld time%s, the latest from %.44s on%.36s",
                 (long long)steps->nonfinite, steps->nonfinite == 1 ? "" : "s", where, before);
    else
        snprintf(out, 160, "the loss is %s since %.44s%.36s: what follows may train nothing", what, where, before);
    return true;
}

int hec_caveats(const struct hec_summary *s, char out[HEC_CAVEATS_MAX][160]) {
    int count = hec_loss_words(out[0], s);
    if (hec_summary_failed(s))
        snprintf(out[count++], 160, "the command failed (exit code %d): the run may be only part of what it should be",
                 s->exit_code);
    if (hec_summary_attached(s))
        snprintf(out[count++], 160,
                 "attached from outside: kernels, calls, steps and units of work are what hec run -- COMMAND tells");
    if (hec_summary_unhooked(s))
        snprintf(
            out[count++], 160,
            "a Python reads another PYTHONPATH, or none: without HEC's hooks loaders, steps and lines are unknown, "
            "and host may be data");
    else if (s->hooks_late)
        snprintf(
            out[count++], 160,
            "a Python reads another PYTHONPATH, or none: HEC's hooks came when CUDA started, and saw nothing before");
    count += hec_unsteady_words(out[count], s);
    if (without_counters(s))
        snprintf(out[count++], 160, "without hardware counters driver utilisation and power alone show few causes");
    const struct hec_device_summary *shared = shared_one(s);
    text name;
    if (shared)
        snprintf(out[count++], 160, "others %s on %.64s: its joules, watts and counters are of all of them",
                 shared->others == HEC_OTHERS_BUSY ? "were at work" : "may have been at work",
                 hec_device_word(name, s, shared->device.index));
    if (s->imported[0])
        snprintf(out[count++], 160,
                 "a profiler slows the host: without it the device waits less for launches and for the "
                 "program's own code");
    return count;
}

void hec_found_words(char *out, size_t size, const struct hec_summary *s) {
    const struct hec_finding *first = s->job.findings.count ? &s->job.findings.list[0] : NULL;
    char why[HEC_FACT_SIZE];
    out[0] = '\0';
    if (hec_findings_top(&s->job.findings))
        found_of(out, size, s, first);
    else if (hec_summary_failed(s))
        snprintf(out, size, "the command failed: exit code %d", s->exit_code);
    else if (first && first->cause == HEC_CAUSE_NONE)
        snprintf(out, size, "healthy: %s; HEC %s nothing that would save %.0f %% of the %s or more%s",
                 hec_evidence_words(why, first, &first->evidence[0]),
                 hec_findings_hint(&s->job.findings) ? "is sure of" : "found", 100 * HEC_FINDING_WORTH,
                 isfinite(s->joules) ? "joules" : "time", rests_on(s));
    else if (first && hec_finding_tells(first))
        found_of(out, size, s, first);
    else
        found_nothing(out, size, s);
}

void hec_headline(char *out, size_t size, const struct hec_summary *s) {
    hec_count_devices(s);
    const struct hec_finding *top = hec_findings_top(&s->job.findings);
    text saving, speed;
    hec_found_words(out, size, s);
    size_t length = strlen(out);
    if (top && hec_saving_words(saving, top)[0])
        snprintf(out + length, size - length, "; fixing it would save about %s%s%s", saving,
                 hec_speed_words(speed, s, top)[0] ? ", " : "", speed);
}

/* ---- lines and advice ---- */

char *hec_place_words(char *out, size_t size, const char *from, int line, const char *function_from, int room) {
    char file[256], function[128], tail[160], number[16] = "";
    hec_format_clean(file, sizeof file, from[0] ? from : "?", false);
    hec_format_clean(function, sizeof function, function_from, false);
    for (char *c; (c = strstr(function, "<locals>."));) /* Python's word for a function within a function */
        memmove(c, c + 9, strlen(c + 9) + 1);
    if (line > 0)
        snprintf(number, sizeof number, ":%d", line);
    int half = room / 2, spare = room - 1 - (int)strlen(file); /* a short file leaves the function more */
    snprintf(tail, sizeof tail, "%s%s%.*s", number, function[0] ? " " : "",
             (spare > half ? spare : half) - (int)strlen(number), function);
    int left = room - (int)strlen(tail);
    const char *shown = file;
    if ((int)strlen(file) > left) {
        left -= 4; /* for the dots */
        while ((int)strlen(shown) > left && strchr(shown, '/'))
            shown = strchr(shown, '/') + 1;
        if ((int)strlen(shown) > left)
            shown += (int)strlen(shown) - (left > 0 ? left : 0);
    }
    snprintf(out, size, "%s%s%s", shown == file ? "" : ".../", shown, tail);
    return out;
}

/* Steps are of an optimizer, or calls of a module; where the program itself marked them, kernels of an optimizer tell. */
static bool fits_work(const struct hec_summary *s, const struct hec_advice *a) {
    bool trains = s->steps.source == HEC_STEP_OPTIMIZER;
    for (int i = 0; i < s->kernel_count; i++)
        trains |= s->kernels[i].kernel_class == HEC_KERNEL_CLASS_OPTIMIZER;
    return (!a->training || trains) && (!a->inference || (s->steps.source == HEC_STEP_MODULE && !trains));
}

const char *hec_finding_code(const struct hec_summary *s, const struct hec_finding *f) {
    const char *framework = hec_framework_name(hec_framework_of(s));
    for (const struct hec_advice *a = NULL; (a = hec_advice_next(f->cause, a));)
        if (a->levers >> f->lever.id & 1 && fits_work(s, a) &&
            (strcmp(a->framework, framework) == 0 || strcmp(a->framework, "any") == 0))
            return a->code;
    return NULL;
}

const struct hec_finding *hec_finding_stands_for(const struct hec_findings *all, const struct hec_finding *f,
                                                 uint64_t chapters) {
    for (int i = 0; i < all->count && !(f->devices & chapters); i++)
        if (all->list[i].cause == f->cause && all->list[i].devices & chapters)
            return &all->list[i];
    return NULL;
}

char *hec_finding_devices_words(char out[HEC_DEVICES_WORDS], const struct hec_summary *s, const struct hec_finding *f,
                                uint64_t chapters) {
    const struct hec_findings *all = &s->job.findings;
    uint64_t like = 0;
    text own, others;
    out[0] = '\0';
    if (hec_summary_traced(s) <= 1)
        return out;
    for (int i = 0; i < all->count; i++)
        if (hec_finding_stands_for(all, &all->list[i], chapters) == f)
            like |= all->list[i].devices;
    snprintf(out, HEC_DEVICES_WORDS, "%s%s%s%s: ", hec_devices_word(own, f->devices), like ? " (and alike " : "",
             like ? hec_devices_word(others, like) : "", like ? ")" : "");
    return out;
}
