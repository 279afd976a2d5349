#include "diagnose/parallelism.h"

#include "base/clock.h"
#include "base/names.h"
#include "diagnose/limits.h"
#include "diagnose/physics.h"

#include <math.h>
#include <string.h>

enum split { SAMPLES, MATRICES, LAYERS, EXPERTS };
enum part { ALL, SHARE };
enum hidden { NOTHING, GRADIENTS, COMPUTE };

static const struct strategy {
    const char *name;
    enum split split;
    enum part parameters, gradients, states;
    double gathers, passes, reduces;
    enum hidden hidden;
} strategies[] = {
#define HEC_STRATEGY(id, name, split, parameters, gradients, states, gathers, passes, reduces, hidden)                 \
    {name, split, parameters, gradients, states, gathers, passes, reduces, hidden},
#include "diagnose/parallelism.def"
};

const char *hec_strategy_name(enum hec_strategy strategy) {
    return (unsigned)strategy < HEC_STRATEGIES ? strategies[strategy].name : "?";
}

const char *hec_lack_name(enum hec_lack lack) {
    static const char *const names[] = {
#define HEC_LACK(id, name) name,
#include "diagnose/parallelism.def"
    };
    return (unsigned)lack < HEC_LACKS ? names[lack] : "?";
}

HEC_NAME_OF(hec_bus_name, enum hec_bus, "unknown", "measured", "nvlink", "pcie")
HEC_NAME_OF(hec_fits_name, enum hec_fits, "unknown", "yes", "hardly", "no")

#define LACK(id) (UINT32_C(1) << HEC_LACK_##id)

/* ---- memory ---- */

static double layers_bytes(const struct hec_sizes *z) {
    return z->layers ? fmin(z->layers * z->layer_bytes, z->bytes) : 0;
}

/* A layer, or all that is in none. */
static double unit_bytes(const struct hec_sizes *z) {
    return z->layers ? fmax(z->layer_bytes, z->bytes - layers_bytes(z)) : z->bytes;
}

/* The part of parameters, gradients and states that the fullest of n devices has of those that are divided. */
static double share_of(const struct hec_sizes *z, enum split split, int n) {
    double layers = layers_bytes(z), divided;
    switch (split) {
    case SAMPLES:
        return 1.0 / n;
    case LAYERS:
        return (ceil((double)z->layers / n) * z->layer_bytes + z->bytes - layers) / z->bytes;
    case MATRICES:
        divided = z->layers * z->layer_matrix_bytes;
        break;
    default:
        divided = z->expert_bytes;
    }
    return (z->bytes - divided + divided / n) / z->bytes;
}

/* What the run has in memory for a backward pass; where that was not seen, all that is neither parameters nor states. */
static double activations_of(const struct hec_sizes *z) {
    return isfinite(z->activations) ? z->activations : fmax(0, z->allocated - z->held_bytes - z->held_state_bytes);
}

/* What a device holds all the time. strategy NULL: one device has everything. */
static void hold(const struct hec_sizes *z, const struct strategy *strategy, int n, struct hec_strategy_row *row) {
    double share = strategy ? share_of(z, strategy->split, n) : 1;
    row->parameter_bytes = z->bytes * (strategy && strategy->parameters == SHARE ? share : 1);
    row->gradient_bytes = z->gradient_bytes * (strategy && strategy->gradients == SHARE ? share : 1);
    row->state_bytes = z->state_bytes * (strategy && strategy->states == SHARE ? share : 1);
}

/* All whose size is known. */
static double sum_of(const struct hec_sizes *z, const struct strategy *strategy, int n) {
    struct hec_strategy_row row;
    hold(z, strategy, n, &row);
    double sum = row.parameter_bytes + row.gradient_bytes + row.state_bytes, activations = activations_of(z);
    double unit = unit_bytes(z), gathered = 1 - 1.0 / n;
    bool samples = strategy && strategy->split == SAMPLES;
    if (samples && strategy->parameters == SHARE)
        sum += fmin(2 * unit, z->bytes) * gathered;
    if (samples && strategy->gradients == SHARE)
        sum += fmin(unit, z->gradient_bytes) * gathered;
    if (strategy && strategy->reduces > 1 && !z->bucket_view) /* buckets */
        sum += row.gradient_bytes;
    if (strategy && strategy->split == MATRICES)
        activations *= 1 + (n - 1) * HEC_PARALLELISM_REPLICATED;
    return sum + activations;
}

static const struct strategy *strategy_of(enum hec_strategy strategy) {
    return strategy < HEC_STRATEGIES ? &strategies[strategy] : NULL;
}

static enum hec_fits fits(const struct hec_strategy_row *row, double card_bytes) {
    if (!(card_bytes > 0))
        return HEC_FITS_UNKNOWN;
    if (row->parameter_bytes + row->gradient_bytes + row->state_bytes > card_bytes || row->memory_bytes > card_bytes)
        return HEC_FITS_NO;
    if (!isfinite(row->memory_bytes))
        return HEC_FITS_UNKNOWN;
    return row->memory_bytes <= HEC_PARALLELISM_MARGIN * card_bytes ? HEC_FITS_YES : HEC_FITS_HARDLY;
}

static void find_memory(const struct hec_sizes *z, const struct hec_parallelism *p, const struct strategy *strategy,
                        struct hec_strategy_row *row) {
    hold(z, strategy, p->devices, row);
    if (!isfinite(z->state_bytes))
        row->lacks |= LACK(STATES);
    if (!isfinite(z->allocated))
        row->lacks |= LACK(PEAK);
    if (!(p->card_bytes > 0))
        row->lacks |= LACK(CARD);
    if (isfinite(z->allocated)) {
        double beside = z->allocated - sum_of(z, strategy_of(p->now), p->devices);
        row->memory_bytes = sum_of(z, strategy, p->devices) + fmax(0, beside) + p->outside_bytes;
    }
    row->fits = fits(row, p->card_bytes);
}

/* ---- bytes that a device sends in a step ---- */

struct sent {
    double hidden, open; /* bytes: what compute may hide, and what it cannot */
    double hidden_pieces,
        pieces; /* collectives, of which each has its latency: those that may be hidden; all of them */
};

static double buckets_of(const struct hec_summary *s, double bytes) {
    double each = s->job.gradients.bucket_bytes > 0 ? s->job.gradients.bucket_bytes : HEC_PARALLELISM_BUCKET_BYTES;
    return fmax(1, ceil(bytes / each));
}

/* Of parameters and gradients that are gathered and reduced. */
static struct sent sent_of_samples(const struct hec_summary *s, const struct hec_parallelism *p,
                                   const struct strategy *strategy, double gradient_bytes) {
    const struct hec_sizes *z = &s->sizes;
    double others = 1 - 1.0 / p->devices, gathers = strategy->gathers + p->passes * strategy->passes;
    double gathered = others * z->bytes * gathers, reduced = others * gradient_bytes * strategy->reduces * p->syncs;
    double units = z->layers + 1, reductions = p->syncs * buckets_of(s, gradient_bytes);
    if (strategy->hidden == COMPUTE)
        return (struct sent){gathered + reduced, 0, units * (gathers + p->syncs), units * (gathers + p->syncs)};
    return (struct sent){reduced, gathered, reductions, reductions + (gathers > 0 ? gathers * units : 0)};
}

/* Of what layers are given, in N micro-batches a pass or N times the samples. */
static struct sent sent_of_layers(const struct hec_sizes *z, const struct hec_parallelism *p, enum split split) {
    double others = 1 - 1.0 / p->devices, input = p->passes * z->layer_input_bytes;
    double each = split == MATRICES && z->layer_matrices >= 4 ? 4 : 2; /* reductions of a layer */
    if (split == LAYERS) {
        double times = 2.0 * p->devices * p->passes;
        return (struct sent){2 * p->devices * input, 0, times, times};
    }
    double top = z->expert_top ? z->expert_top : NAN;
    if (split == EXPERTS)
        return (struct sent){0, 4 * others * z->layers * top * input, 0, 4.0 * z->layers * p->passes};
    return (struct sent){0, 2 * others * z->layers * each * p->devices * input, 0, z->layers * each * p->passes};
}

static struct sent sent_of(const struct hec_summary *s, const struct hec_parallelism *p,
                           const struct strategy *strategy) {
    const struct hec_sizes *z = &s->sizes;
    if (strategy->split == SAMPLES)
        return sent_of_samples(s, p, strategy, z->gradient_bytes);
    struct sent sent = sent_of_layers(z, p, strategy->split);
    if (strategy->split == EXPERTS) { /* what is no expert is of all devices */
        struct sent rest = sent_of_samples(s, p, strategy, z->gradient_bytes * (1 - z->expert_bytes / z->bytes));
        sent.hidden += rest.hidden;
        sent.hidden_pieces += rest.hidden_pieces;
        sent.pieces += rest.pieces;
    }
    return sent;
}

/* ---- seconds and joules ---- */

static double drawn_j(double seconds, double watts) {
    return seconds == 0 ? 0 : seconds * watts;
}

/* A step with so much communication that nothing hides, and idle for so long besides. */
static double joules_of(const struct hec_parallelism *p, double open_s, double idle_s) {
    double other_j = p->step_j - drawn_j(p->comm_s, p->comm_w) - drawn_j(p->sharding_s, p->idle_w);
    return other_j + drawn_j(open_s, p->comm_w) + drawn_j(idle_s, p->idle_w);
}

static void find_time(const struct hec_summary *s, const struct hec_parallelism *p, const struct strategy *strategy,
                      struct hec_strategy_row *row) {
    struct sent sent = sent_of(s, p, strategy);
    double latency_s = (double)HEC_COLLECTIVE_LATENCY_NS / HEC_NS_PER_S;
    double hidden_s = sent.hidden / p->bus_bytes_per_s + sent.hidden_pieces * latency_s;
    double open_s = sent.open / p->bus_bytes_per_s + (sent.pieces - sent.hidden_pieces) * latency_s;
    double pieces = fmax(1, sent.hidden_pieces),
           behind_s = strategy->hidden == GRADIENTS ? p->backward_s : p->compute_s;
    double last_s = hidden_s / pieces, best_s = fmax(last_s, hidden_s - behind_s * (1 - 1 / pieces));
    double code_s = strategy == &strategies[HEC_STRATEGY_FSDP] ? p->sharding_s : 0;
    double alone_s = p->step_s - p->comm_s - p->sharding_s;
    row->sent_bytes = sent.hidden + sent.open;
    if (strategy->split == LAYERS)
        row->bubble_s = p->compute_s * (p->devices - 1) / (p->devices * p->passes);
    double idle_s = code_s + row->bubble_s;
    row->open_s = open_s + best_s;
    row->comm_s = open_s + hidden_s;
    row->low_s = alone_s + idle_s + open_s + last_s;
    row->step_s = alone_s + idle_s + row->open_s;
    row->high_s = alone_s + idle_s + open_s + hidden_s;
    row->low_j = joules_of(p, open_s + last_s, idle_s);
    row->step_j = joules_of(p, row->open_s, idle_s);
    row->high_j = joules_of(p, open_s + hidden_s, idle_s);
    row->lacks |= (isfinite(p->step_s) ? 0 : LACK(STEP)) | (isfinite(p->comm_s) ? 0 : LACK(COMM)) |
                  (isfinite(p->bus_bytes_per_s) ? 0 : LACK(BUS)) |
                  (isfinite(row->step_j) || !isfinite(row->step_s) ? 0 : LACK(JOULES));
    if (strategy->split != SAMPLES && !isfinite(s->sizes.layer_input_bytes))
        row->lacks |= LACK(INPUT);
    if (strategy->split == EXPERTS && !s->sizes.expert_top)
        row->lacks |= LACK(TOP);
}

/* ---- the run ---- */

static bool applies(const struct hec_sizes *z, enum split split, int n) {
    bool layers = z->layers >= 2 && layers_bytes(z) >= HEC_PARALLELISM_LAYERS * z->bytes;
    switch (split) {
    case SAMPLES:
        return true;
    case MATRICES:
        return layers && z->layer_matrices >= 2 && z->layer_matrix_bytes >= HEC_PARALLELISM_LAYERS * z->layer_bytes;
    case LAYERS:
        return layers && z->layers >= n;
    default:
        return z->experts >= n && z->expert_bytes > 0 && z->expert_bytes <= z->bytes && z->layers;
    }
}

/* Devices like the first one used, that the command may use; of a job its ranks. Returns the first. */
static const struct hec_device_diagnosis *find_devices(const struct hec_summary *s, struct hec_parallelism *p) {
    const struct hec_device_diagnosis *first = NULL;
    int used = 0, visible = 0;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        first = first || !d->readings.used ? first : d;
        used += d->readings.used;
    }
    for (int i = 0; i < s->device_count && first; i++)
        visible += s->devices[i].readings.device.visible > 0 &&
                   strcmp(s->devices[i].readings.device.name, first->readings.device.name) == 0;
    p->devices = s->job.size > 1 ? s->job.size : visible;
    if (s->job.size <= 1 && used > 1) /* one process has several: how it shares is not known */
        p->lacks |= LACK(SHARING);
    return first;
}

/* Whether the ranks are of one host, as far as the run says. */
static bool of_one_host(const struct hec_summary *s) {
    for (int i = 1; i < s->job.rank_count; i++)
        if (strcmp(s->job.ranks[i].host, s->job.ranks[0].host) != 0)
            return false;
    return s->job.size <= s->device_count;
}

static void find_sharing(const struct hec_summary *s, struct hec_parallelism *p) {
    p->now = s->sizes.sharing == HEC_SHARING_DDP && s->job.size > 1    ? HEC_STRATEGY_DDP
             : s->sizes.sharing == HEC_SHARING_FSDP && s->job.size > 1 ? HEC_STRATEGY_FSDP
                                                                       : HEC_STRATEGIES;
    if (s->sizes.known && s->sizes.alike && s->job.size > 1 && p->now == HEC_STRATEGIES)
        p->lacks |= LACK(SHARING);
    const struct hec_gradient_syncs *g = &s->job.gradients;
    double forward = (double)s->step_part[HEC_STEP_FORWARD].count,
           updates = (double)s->step_part[HEC_STEP_UPDATE].count;
    p->passes = g->steps && g->passes        ? (double)g->passes / (double)g->steps
                : forward > 0 && updates > 0 ? fmax(1, round(forward / updates))
                                             : 1;
    p->syncs = g->steps && g->syncs ? (double)g->syncs / (double)g->steps : 1;
}

struct mean {
    double sum;
    int count;
};
static void add(struct mean *mean, double value) {
    if (!isfinite(value))
        return;
    mean->sum += value;
    mean->count++;
}
static double of(const struct mean *mean) {
    return mean->count ? mean->sum / mean->count : NAN;
}

static double host_s(const struct hec_device_diagnosis *d) {
    double seconds = 0;
    for (int state = 0; state < HEC_STATE_COUNT; state++)
        seconds += hec_state_sharded((enum hec_state)state) ? d->steady->rows[state].seconds : 0;
    return seconds;
}

double hec_sharded_code_s(const struct hec_device_diagnosis *d) {
    return d->sharding_share * host_s(d);
}

double hec_loop_idle_s(const struct hec_device_diagnosis *d) {
    double seconds = 0;
    for (int state = 0; state < HEC_STATE_COUNT; state++)
        if (hec_state_idle((enum hec_state)state) && state != HEC_STATE_STARTUP && state != HEC_STATE_TAIL)
            seconds += d->steady->rows[state].seconds;
    return seconds;
}

/* A step, as the mean over the devices of which each part of it is known. */
static void find_step(const struct hec_summary *s, struct hec_parallelism *p) {
    struct mean comm = {0}, compute = {0}, backward = {0}, joules = {0}, comm_w = {0}, idle_w = {0}, sharding = {0},
                launching = {0};
    const struct hec_loop *loop = &s->loop;
    double steps = (double)loop->steps;
    p->step_s = loop->known && steps > 0 && loop->seconds[HEC_RUN_LOOP] > 0 ? loop->seconds[HEC_RUN_LOOP] / steps : NAN;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        int index = d->readings.device.index;
        if (!d->readings.used)
            continue;
        if (d->readings.energy.valid && steps > 0 && hec_device_bit(index) && loop->device_joules[index] > 0)
            add(&joules, loop->device_joules[index] / steps);
        add(&idle_w, hec_device_idle_watts(d));
        if (!d->steady || (s->job.size > 1 && d->steady->basis > HEC_LEDGER_GLIMPSE))
            continue; /* kernels that communicate were not separated from others */
        double comm_s = d->steady->rows[HEC_STATE_COMM].seconds, all_s = hec_ledger_work(d->steady) + comm_s;
        if (p->now == HEC_STRATEGY_FSDP) {
            add(&sharding, p->step_s * hec_sharded_code_s(d) / all_s);
            add(&launching, p->step_s * (host_s(d) - hec_sharded_code_s(d)) / all_s);
        }
        add(&comm, p->step_s * comm_s / all_s);
        add(&compute, p->step_s * d->steady->rows[HEC_STATE_COMPUTE].seconds / all_s);
        if (d->parts.steps > 0)
            add(&backward, d->parts.part[HEC_STEP_BACKWARD].seconds / d->parts.steps);
        if (d->ledger && comm_s > 0)
            add(&comm_w, d->ledger->rows[HEC_STATE_COMM].watts);
    }
    p->comm_s = s->job.size > 1 ? of(&comm) : 0;
    p->compute_s = of(&compute);
    p->sharding_s = sharding.count ? of(&sharding) : 0;
    p->launching_s = launching.count ? of(&launching) : 0;
    p->backward_assumed = !(of(&backward) > 0);
    p->backward_s = p->backward_assumed ? HEC_PARALLELISM_BACKWARD * p->compute_s : of(&backward);
    p->step_j = of(&joules);
    p->idle_w = of(&idle_w);
    if (p->idle_w > p->step_j / p->step_s)
        p->idle_w = p->step_j / p->step_s;
    p->comm_assumed = !comm_w.count;
    p->comm_w = p->comm_assumed ? (p->idle_w + p->step_j / p->step_s) / 2 : of(&comm_w);
}

/* Of the collectives of the run, where they were matched; else of the devices' links. */
static void find_bus(const struct hec_summary *s, const struct hec_device_diagnosis *first, struct hec_parallelism *p) {
    const struct hec_collectives *c = &s->job.collectives;
    p->bus_bytes_per_s = NAN;
    if (p->now < HEC_STRATEGIES && c->matched && c->a_step > 0 && c->transfer_s > 0) {
        struct sent sent = sent_of(s, p, &strategies[p->now]);
        p->bus_bytes_per_s = (sent.hidden + sent.open) / (c->a_step * c->transfer_s);
        p->bus = isfinite(p->bus_bytes_per_s) ? HEC_BUS_MEASURED : HEC_BUS_UNKNOWN;
    }
    if (p->bus || !first || !of_one_host(s))
        return;
    double link = hec_part_link_bytes_per_s(hec_part_find(first->readings.device.name));
    double pcie = (double)first->readings.device.pcie_kib_per_s * 1024;
    if (link > 0 || pcie > 0) {
        p->bus = link > 0 ? HEC_BUS_NVLINK : HEC_BUS_PCIE;
        p->bus_bytes_per_s = link > 0 ? link : pcie;
    }
}

/* The memory of the smallest device, and what is in one outside of PyTorch's allocator, at most. */
static void find_card(const struct hec_summary *s, const struct hec_device_diagnosis *first,
                      struct hec_parallelism *p) {
    if (!first)
        return;
    memcpy(p->card, first->readings.device.name, sizeof p->card);
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *r = &s->devices[i].readings;
        if (!r->used)
            continue;
        p->card_bytes = fmin(p->card_bytes, r->device.memory_kib > 0 ? (double)r->device.memory_kib * 1024 : NAN);
        p->outside_bytes = fmax(p->outside_bytes, r->memory_peak_bytes - s->sizes.reserved);
    }
}

/* What of the devices' idling is for FSDP's own code, by stacks; 0: no FSDP, or no stacks. */
static double sharded_part(const struct hec_summary *s, const struct hec_parallelism *p) {
    double code_s = 0, idle_s = 0;
    for (int i = 0; i < s->device_count && p->now == HEC_STRATEGY_FSDP; i++)
        if (s->devices[i].readings.used && s->devices[i].steady) {
            code_s += hec_sharded_code_s(&s->devices[i]);
            idle_s += hec_loop_idle_s(&s->devices[i]);
        }
    return code_s > 0 ? fmin(1, code_s / idle_s) : 0;
}

/* Of what is run seconds and joules are measured. What is predicted of it may be less: ranks wait for each other, links are slower than
 * stated. Of another way all of that may stay or go; at best guess it stays, but for as much as is FSDP's own. Where it is more, the other
 * ways have as much less, down to no communication at all. Nor do stacks say for what a launch is: all that the device waits for its host
 * may be for shards, and other launches may take the place of FSDP's code. */
static void set_measured(const struct hec_summary *s, struct hec_parallelism *p) {
    if (p->now == HEC_STRATEGIES || !p->row[p->now].applies || !isfinite(p->step_s))
        return;
    struct hec_strategy_row *run = &p->row[p->now];
    double more_s = p->step_s - run->step_s, stays_s = more_s * (more_s > 0 ? 1 - sharded_part(s, p) : 1);
    for (int i = 0; i < HEC_STRATEGIES && isfinite(more_s); i++) {
        struct hec_strategy_row *r = &p->row[i], was = *r;
        double least_s = r->step_s - r->open_s, longer_s = (1 - HEC_SHARDING_CODE_LOW) * p->sharding_s;
        r->step_s = fmax(least_s, r->step_s + stays_s);
        r->low_s = fmax(least_s, r->low_s + fmin(0, more_s));
        r->high_s = fmax(r->step_s, r->high_s + fmax(0, more_s));
        r->step_j += (r->step_s - was.step_s) * p->comm_w;
        r->low_j += (r->low_s - was.low_s) * p->comm_w - drawn_j(p->launching_s, p->idle_w);
        r->high_j += (r->high_s - was.high_s) * p->comm_w + drawn_j(longer_s, p->idle_w);
        r->low_s -= p->launching_s;
        r->high_s += longer_s;
    }
    run->low_s = run->step_s = run->high_s = p->step_s;
    run->low_j = run->step_j = run->high_j = p->step_j;
    run->lacks &= ~(LACK(COMM) | LACK(BUS) | LACK(JOULES));
    run->lacks |= isfinite(p->step_j) ? 0 : LACK(JOULES);
    p->unexplained_s = more_s;
}

static bool is_known(const struct hec_strategy_row *row) {
    return row->fits == HEC_FITS_YES && isfinite(row->step_s);
}

/* What is as good as another is no reason to change, nor to divide more. */
static void find_best(struct hec_parallelism *p) {
    for (int i = 0; i < HEC_STRATEGIES && p->now < HEC_STRATEGIES && is_known(&p->row[p->now]); i++)
        if (i != (int)p->now && is_known(&p->row[i]))
            p->best = p->now;
    for (int i = 0; i < HEC_STRATEGIES; i++)
        if (is_known(&p->row[i]) && i != (int)p->now &&
            (p->best == HEC_STRATEGIES || p->row[i].step_s < (1 - HEC_PARALLELISM_BETTER) * p->row[p->best].step_s))
            p->best = (enum hec_strategy)i;
}

void hec_parallelism_find(const struct hec_summary *s, struct hec_parallelism *p) {
    *p = (struct hec_parallelism){
        .now = HEC_STRATEGIES, .best = HEC_STRATEGIES, .card_bytes = NAN, .unexplained_s = NAN};
    const struct hec_device_diagnosis *first = find_devices(s, p);
    const struct hec_strategy_row unknown = {.parameter_bytes = NAN,
                                             .gradient_bytes = NAN,
                                             .state_bytes = NAN,
                                             .memory_bytes = NAN,
                                             .sent_bytes = NAN,
                                             .low_s = NAN,
                                             .step_s = NAN,
                                             .open_s = NAN,
                                             .comm_s = NAN,
                                             .high_s = NAN,
                                             .low_j = NAN,
                                             .step_j = NAN,
                                             .high_j = NAN};
    p->allocated = s->sizes.allocated;
    p->lacks |= s->sizes.known ? 0 : LACK(MODEL);
    p->lacks |= s->sizes.alike ? 0 : LACK(ALIKE);
    p->lacks |= p->devices >= 2 ? 0 : LACK(DEVICES);
    find_sharing(s, p);
    find_card(s, first, p);
    find_step(s, p);
    find_bus(s, first, p);
    for (int i = 0; i < HEC_STRATEGIES; i++) {
        p->row[i] = unknown;
        p->row[i].applies = !p->lacks && applies(&s->sizes, strategies[i].split, p->devices);
        if (p->row[i].applies) {
            find_memory(&s->sizes, p, &strategies[i], &p->row[i]);
            find_time(s, p, &strategies[i], &p->row[i]);
        }
    }
    set_measured(s, p);
    find_best(p);
}
