/* What is inferred from calls against what the device did: programs that are simulated call by call, reported once as
 * CUPTI reports them and once as calls alone do. The truth lies within the bounds of every state, and what most of the
 * idle time is due to is the same, with the engine's counter, with a glimpse of the device and with neither. */
#include "diagnose/meter/meter.h"
#include "inferred_world.h"
#include "unit.h"

/* ---- what comes of it ---- */

static const struct hec_ledger_device *infer(struct inferred_world *w, struct hec_ledger *out,
                                             enum hec_ledger_basis *basis) {
    struct fake_inferred world;
    struct hec_meter meter;
    memset(out, 0, sizeof *out);
    hec_meter_open(&meter, &w->run.input, w->run.input.end_ns);
    assert_true(fake_inferred_begin(&world, &meter, &w->view.input));
    hec_meter_close(&meter);
    for (int v = 0; v < HEC_INFERRED_VARIANT_COUNT; v++) {
        const struct hec_pass *pass;
        struct hec_ledger ledger;
        assert_int_equal(hec_inferred_pass(world.inferred, v, &pass, NULL), 0);
        assert_int_equal(fake_pass_ledger_of(pass, NULL, &ledger), 0);
        if (v == HEC_INFERRED_GUESS) {
            *out = ledger;
            continue;
        }
        hec_ledger_widen(out, &ledger);
        hec_ledger_free(&ledger);
    }
    *basis = hec_inferred_basis(world.inferred, 0);
    fake_inferred_free(&world);
    assert_int_equal(out->device_count, 1);
    return &out->devices[0];
}

static enum hec_state most_of(const struct hec_ledger_device *d) {
    enum hec_state most = HEC_STATE_COMPUTE;
    double least = 0.1 * (double)d->window_ns / 1e9;
    for (int s = HEC_STATE_COPY; s < HEC_STATE_STARTUP; s++)
        if (d->rows[s].seconds > least && (most == HEC_STATE_COMPUTE || d->rows[s].seconds > d->rows[most].seconds))
            most = s;
    return most;
}

static void check(const struct program *p, enum how how, uint64_t seed) {
    static struct inferred_world w;
    struct hec_ledger truth, reported;
    enum hec_ledger_basis basis;
    simulate(&w, p, how, seed);
    assert_int_equal(fake_pass_ledger(&w.truth.input, NULL, &truth), 0);
    const struct hec_ledger_device *is = &truth.devices[0], *by = infer(&w, &reported, &basis);
    assert_int_equal(basis, how == GLIMPSE ? HEC_LEDGER_GLIMPSE : HEC_LEDGER_CALLS);
    assert_int_equal(is->window_ns, by->window_ns);
    enum hec_state truly = most_of(is), most = most_of(by);
    if (truly != p->most || ((how == ENGINE || p->certain) && most != truly))
        print_message("%s, %s: most is %s, told %s\n", p->name, how_names[how], hec_state_name(truly),
                      hec_state_name(most));
    assert_int_equal(truly, p->most);
    if (how == ENGINE || p->certain)
        assert_int_equal(most, truly);
    assert_int_equal(out_of_bounds(p->name, how, is, by), 0);
    hec_ledger_free(&truth);
    hec_ledger_free(&reported);
    inferred_free(&w);
}

TEST(test_programs) {
    for (enum how how = ENGINE; how <= NEITHER; how++)
        for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
            for (uint64_t seed = 1; seed <= 2; seed++)
                check(&programs[i], how, seed);
}
