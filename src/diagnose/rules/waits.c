#include "diagnose/rules/waits.h"

#include "diagnose/rules/compute.h"
#include "diagnose/rules/sharding.h"
#include "diagnose/rules/straggler.h"

#include <math.h>
#include <string.h>

/* ---- watts ---- */

/* An idle device draws the same no matter what the host does: the longest idle state says it best. Launch does not
 * count, it is mixed with kernels too finely to be separated. */
static void find_watts(const struct hec_facts *f, struct hec_waits *w) {
    static const enum hec_state idle[] = {HEC_STATE_DATA,  HEC_STATE_CHECKPOINT, HEC_STATE_HOST, HEC_STATE_SYNC,
                                          HEC_STATE_ALLOC, HEC_STATE_REQUESTS,   HEC_STATE_PEERS};
    const struct hec_ledger_row *best = NULL;
    for (size_t i = 0; f->device->ledger && i < sizeof idle / sizeof idle[0]; i++) {
        const struct hec_ledger_row *row = &f->device->ledger->rows[idle[i]];
        if (isfinite(row->watts) && row->watts > 0 && row->ns > 0 && (!best || row->ns > best->ns))
            best = row;
    }
    w->watts = w->watts_low = w->watts_high = NAN;
    if (best) {
        w->watts = best->watts;
        w->watts_low = isfinite(best->watts_low) ? best->watts_low : best->watts;
        w->watts_high = isfinite(best->watts_high) ? best->watts_high : best->watts;
    } else if (f->mean_w > 0) {
        w->estimated = true;
        w->watts = w->watts_low = hec_compute_idle_watts(f);
        w->watts_high = f->mean_w;
    }
}

double hec_waits_watts(const struct hec_facts *f) {
    struct hec_waits w;
    find_watts(f, &w);
    return w.watts;
}

/* ---- who owns what ---- */

static void count_calls(const struct hec_facts *f, struct hec_waits *w) {
    const struct hec_call_facts *c = f->device->calls;
    const struct hec_device_timeline *t = f->device->timeline;
    bool stepwise = c && c->steps > 0;
    double by = stepwise ? c->steps : c ? c->traced_s : t ? t->traced_s : 0;
    w->per = stepwise ? HEC_PER_STEP : HEC_PER_SECOND;
    w->rate_bytes_per_s = w->link_bytes_per_s = NAN;
    if (f->device->readings.device.pcie_kib_per_s > 0)
        w->link_bytes_per_s = 1024.0 * (double)f->device->readings.device.pcie_kib_per_s;
    if (!(by > 0))
        return;
    if (!c) {
        w->launches = t ? (double)(t->kernels + t->graphs) / by : 0;
        return;
    }
    const struct hec_call_total *api = c->api;
    double launches = (double)(api[HEC_API_LAUNCH].count + api[HEC_API_GRAPH].count);
    w->launches = launches / by;
    w->launch_us = launches > 0 ? 1e6 * (api[HEC_API_LAUNCH].seconds + api[HEC_API_GRAPH].seconds) / launches : 0;
    w->syncs = (double)api[HEC_API_SYNC].count / by;
    w->allocs = (double)(api[HEC_API_ALLOC].count + api[HEC_API_FREE].count) / by;
    w->alloc_s = w->allocs > 0 ? (api[HEC_API_ALLOC].seconds + api[HEC_API_FREE].seconds) / (w->allocs * by) : 0;
    w->round_trips = (double)c->round_trips / by;
    w->reads = (double)c->reads / by;
    w->small_copies = (double)c->small_copies / by;
    if (c->pageable_s > 0)
        w->rate_bytes_per_s = c->pageable_bytes / c->pageable_s;
}

static enum hec_waits_copies kind_of_copies(const struct hec_facts *f, const struct hec_waits *w) {
    const struct hec_call_facts *c = f->device->calls;
    const struct hec_gap_facts *g = f->device->gaps;
    double copies = 0;
    for (int s = 0; g && s < HEC_STATE_COUNT; s++)
        copies += g->owned_s[s][HEC_CAUSE_COPY];
    if (g && w->small_copies >= HEC_WAITS_CHATTY_LEAST && g->small_s >= HEC_WAITS_CHATTY_SHARE * copies)
        return HEC_WAITS_CHATTY;
    if (c && c->round_trips > 0 && w->round_trips >= HEC_WAITS_ROUND_SHARE * w->syncs)
        return HEC_WAITS_ROUND_TRIPS;
    return c && c->pageable_s > c->pinned_s ? HEC_WAITS_PAGEABLE : HEC_WAITS_BULK;
}

static void divide(const struct hec_facts *f, const struct hec_ledger_device *d, struct hec_waits *w) {
    double by_state[HEC_CAUSE_COUNT][HEC_STATE_COUNT], sharding = hec_sharding_share(f);
    for (int s = 0; s < HEC_STATE_COUNT; s++) {
        const struct hec_ledger_row *row = &d->rows[s];
        double scale = row->traced_ns > 0 ? row->seconds * 1e9 / (double)row->traced_ns : 0;
        scale *= hec_state_sharded((enum hec_state)s) ? 1 - sharding : 1;
        w->idle_s += hec_state_idle(s) && s != HEC_STATE_STARTUP && s != HEC_STATE_TAIL ? row->seconds : 0;
        for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++) {
            by_state[cause][s] = f->device->gaps ? f->device->gaps->owned_s[s][cause] * scale : 0;
            w->owned_s[cause] += by_state[cause][s];
        }
    }
    const struct hec_ledger_row *host = &d->rows[HEC_STATE_HOST];
    if (f->device->gaps && host->traced_ns > 0) {
        double scale = host->seconds * 1e9 / (double)host->traced_ns, compute_s = d->rows[HEC_STATE_COMPUTE].seconds;
        w->beside_s = fmin(compute_s, f->device->gaps->beside_s * scale);
        w->awaited_s = fmin(w->idle_s, f->device->gaps->awaited_s * scale);
        w->covered_s = fmin(compute_s, f->device->gaps->covered_s * scale);
    }
    const struct hec_ledger_row *launch = &d->rows[HEC_STATE_LAUNCH];
    if (f->device->gaps && launch->traced_ns > 0)
        w->late_s = fmin(launch->seconds, f->device->gaps->late_s * launch->seconds * 1e9 / (double)launch->traced_ns);
    for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++)
        for (int s = 0; s < HEC_STATE_COUNT; s++)
            if (by_state[cause][s] > HEC_WAITS_STATE_SHARE * w->owned_s[cause])
                w->states[cause] |= 1u << s;
}

/* Where busy time was inferred, the bounds of the states that a cause owns. */
static void find_bounds(const struct hec_ledger_device *d, struct hec_waits *w) {
    for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++) {
        double low = 0, best = 0, high = 0;
        for (int s = 0; d->basis != HEC_LEDGER_MEASURED && s < HEC_STATE_COUNT; s++)
            if (w->states[cause] & (1u << s)) {
                low += d->rows[s].seconds_low;
                best += d->rows[s].seconds;
                high += d->rows[s].seconds_high;
            }
        w->least[cause] = best > 0 ? low / best : 1;
        w->most[cause] = best > 0 ? high / best : 1;
    }
}

void hec_waits_gather(const struct hec_facts *f, struct hec_waits *w) {
    const struct hec_ledger_device *d = f->device->steady ? f->device->steady : f->device->ledger;
    memset(w, 0, sizeof *w);
    w->rate_bytes_per_s = w->link_bytes_per_s = w->data_s = NAN;
    w->run_s = f->run_s;
    w->known = d && d->window_ns > 0 && f->run_s > 0;
    find_watts(f, w);
    if (!d || !w->known)
        return;
    w->whole_s = (double)d->window_ns / 1e9;
    w->steady = f->device->ledger && d->window_ns < f->device->ledger->window_ns
                    ? (f->device->steps.count ? HEC_WAITS_STEPS : HEC_WAITS_LOOP)
                    : HEC_WAITS_WHOLE;
    w->coverage = (double)d->traced_ns / (double)d->window_ns;
    count_calls(f, w);
    /* Calls are of the traced part, as these seconds are. */
    double traced =
        f->device->calls && f->device->calls->traced_s > 0 ? f->device->calls->traced_s : w->coverage * w->whole_s;
    double steps = f->device->calls && f->device->calls->steps > 0 ? f->device->calls->steps : traced;
    w->work = traced > 0 ? steps * w->whole_s / traced : 0;
    w->compute_s = w->work > 0 ? d->rows[HEC_STATE_COMPUTE].seconds / w->work : 0;
    w->data_s = w->work > 0 ? d->rows[HEC_STATE_DATA].seconds / w->work : NAN;
    w->copies = kind_of_copies(f, w);
    divide(f, d, w);
    find_bounds(d, w);
}

double hec_waits_share(const struct hec_waits *w, enum hec_cause cause) {
    return w->known && w->whole_s > 0 ? w->owned_s[cause] / w->whole_s : 0;
}

/* ---- what a finding says ---- */

static void save(const struct hec_facts *f, const struct hec_waits *w, double seconds[3], struct hec_finding *out) {
    double run_j = f->run_j;
    out->seconds = (struct hec_saving){hec_as_share(seconds[0] / w->run_s), hec_as_share(seconds[1] / w->run_s),
                                       hec_as_share(seconds[2] / w->run_s)};
    out->joules = (struct hec_saving){hec_as_share(seconds[0] * w->watts_low / run_j),
                                      hec_as_share(seconds[1] * w->watts / run_j),
                                      hec_as_share(seconds[2] * w->watts_high / run_j)};
    out->estimated = w->estimated;
}

void hec_waits_save(const struct hec_facts *f, const struct hec_waits *w, enum hec_cause cause, double low, double best,
                    double high, struct hec_finding *out) {
    /* Between the windows of a thin trace time is only known by proportion. */
    double spread = w->coverage < HEC_WAITS_THIN_COVERAGE ? HEC_WAITS_THIN_SPREAD : 0;
    double s = w->owned_s[cause], seconds[3] = {s * low * (1 - spread), s * best, s * high * (1 + spread)};
    seconds[0] *= w->least[cause];
    seconds[2] = fmin(w->run_s, seconds[2] * w->most[cause]);
    save(f, w, seconds, out);
    out->states = w->states[cause];
    out->per = w->per;
}

void hec_waits_save_more(const struct hec_facts *f, const struct hec_waits *w, enum hec_cause cause, double low,
                         double best, double high, struct hec_finding *out) {
    struct hec_finding more = {.cause = cause};
    hec_waits_save(f, w, cause, low, best, high, &more);
    hec_saving_add(&out->seconds, more.seconds);
    hec_saving_add(&out->joules, more.joules);
}

double hec_waits_confidence(const struct hec_waits *w, enum hec_cause cause, double most) {
    double largest = 0;
    for (int c = 0; c < HEC_CAUSE_COUNT; c++)
        largest = fmax(largest, w->owned_s[c]);
    double certainty = HEC_WAITS_INFERRED + (1 - HEC_WAITS_INFERRED) * w->least[cause];
    return most * certainty * (w->owned_s[cause] < largest ? HEC_WAITS_DOMINATED : 1) *
           (w->steady ? 1 : HEC_WAITS_UNSTEADY);
}

bool hec_waits_claim(const struct hec_facts *f, double least, struct hec_waits *w, struct hec_finding *out) {
    const struct hec_goes *goes = hec_goes_of(out->cause);
    double owned_s;
    hec_waits_gather(f, w);
    if (out->cause == HEC_CAUSE_HOST)
        w->owned_s[HEC_CAUSE_HOST] = fmax(0, w->owned_s[HEC_CAUSE_HOST] - hec_straggler_code_s(f));
    if (!w->known || !(hec_waits_share(w, out->cause) >= least))
        return false;
    owned_s = w->owned_s[out->cause];
    out->title = HEC_FACT(WAIT_SHARE, hec_waits_share(w, out->cause), w->steady);
    out->confidence = hec_waits_confidence(w, out->cause, goes->confidence);
    hec_waits_save(f, w, out->cause, goes->part.low, goes->part.best, goes->part.high, out);
    if (w->work > 0)
        hec_finding_add(out, HEC_FACT(WAIT, owned_s / w->work, w->whole_s / w->work));
    if (isfinite(w->watts) && f->run_j > 0)
        hec_finding_add(out, HEC_FACT(WAIT_POWER, w->watts, w->watts * owned_s, f->run_j, w->estimated));
    if (!w->steady)
        hec_finding_add(out, HEC_FACT(NO_STEPS, HEC_GAP_LONG_S));
    return true;
}

double hec_waits_report_cores(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_host_summary *host = &f->summary->host;
    if (!(host->cores_usable > 0 && isfinite(host->tree_cores)))
        return NAN;
    hec_finding_add(out, HEC_FACT(HOST_CORES, host->tree_cores, host->cores_usable));
    return host->cores_usable - host->tree_cores;
}

void hec_waits_report_use(const struct hec_facts *f, bool transfers, struct hec_finding *out) {
    const struct hec_use *a = &f->device->readings.activity;
    double limit = f->device->readings.power_limit_w, bus = fmax(a->pcie_rx, a->pcie_tx);
    double link =
        f->device->readings.device.pcie_kib_per_s > 0 ? 1024 * (double)f->device->readings.device.pcie_kib_per_s : NAN;
    if (isfinite(a->sm))
        hec_finding_add(out, HEC_FACT(SM_ACTIVE, a->sm));
    if (isfinite(a->engine))
        hec_finding_add(out, HEC_FACT(ENGINE_ACTIVE, a->engine, !a->has_gpm));
    if (limit > 0 && isfinite(a->power_w))
        hec_finding_add(out, HEC_FACT(POWER_OF_LIMIT, a->power_w, a->power_w / limit, limit));
    if (transfers && isfinite(bus))
        hec_finding_add(out, HEC_FACT(TRANSFERS, bus, bus / link, a->pcie_tx > a->pcie_rx));
    if (!transfers && isfinite(a->occupancy))
        hec_finding_add(out, HEC_FACT(OCCUPANCY, a->occupancy));
    if (!transfers && isfinite(a->tensor) && isfinite(a->dram))
        hec_finding_add(out, HEC_FACT(TENSOR_AND_MEMORY, a->tensor, a->dram));
}

void hec_waits_save_seconds(const struct hec_facts *f, double seconds, double low, double best, double high,
                            struct hec_finding *out) {
    struct hec_waits w = {.run_s = f->run_s};
    find_watts(f, &w);
    save(f, &w, (double[3]){low * seconds, best * seconds, high * seconds}, out);
}

void hec_waits_save_telemetry(const struct hec_facts *f, double busy, double best, struct hec_finding *out) {
    hec_waits_save_seconds(f, hec_use_seconds(&f->device->readings) * (1 - busy), 0, best, 1, out);
    out->estimated = true;
}
