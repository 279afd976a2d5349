/* One part of the analysis alone, fed by a pass of its own. */
#ifndef TESTS_UNIT_FAKE_PASS_H
#define TESTS_UNIT_FAKE_PASS_H

#include "diagnose/states/ledger.h"
#include "diagnose/timeline/pass.h"

#include <string.h>

static inline int fake_pass_timeline(const struct hec_timeline_input *input, struct hec_timeline *out,
                                     struct hec_why *why) {
    struct hec_pass pass;
    struct hec_timeline_builder *builder;
    struct hec_pass_consumer consumer;
    memset(out, 0, sizeof *out);
    int err = hec_pass_open(input, &pass, why);
    if (err)
        return err;
    err = hec_timeline_begin(&pass, &builder, &consumer);
    if (!err && (err = hec_pass_run(&pass, &consumer, 1, why)) == 0)
        err = hec_timeline_end(builder, NULL, out);
    else
        hec_timeline_abandon(builder);
    hec_pass_close(&pass);
    return err;
}

/* beside: gets what the states are made of, before them; NULL: nobody does. */
static inline int fake_pass_states_of(const struct hec_pass *pass, const struct hec_state_limits *limits,
                                      const struct hec_state_visitor *visitor, const struct hec_pass_consumer *beside,
                                      struct hec_why *why) {
    struct hec_states *states;
    struct hec_pass_consumer consumers[2] = {{0}};
    if (beside)
        consumers[0] = *beside;
    int err = hec_states_begin(pass, limits, visitor, &states, &consumers[1]);
    if (!err && (err = hec_pass_run(pass, consumers, 2, why)) == 0)
        return hec_states_end(states);
    hec_states_abandon(states);
    return err;
}

static inline int fake_pass_states(const struct hec_timeline_input *input, const struct hec_state_limits *limits,
                                   const struct hec_state_visitor *visitor, struct hec_why *why) {
    struct hec_pass pass;
    int err = hec_pass_open(input, &pass, why);
    if (err)
        return err;
    err = fake_pass_states_of(&pass, limits, visitor, NULL, why);
    hec_pass_close(&pass);
    return err;
}

static inline int fake_pass_take_piece(void *context, int device, const struct hec_state_piece *piece) {
    return hec_ledger_piece(context, device, piece);
}

static inline int fake_pass_ledger_of(const struct hec_pass *pass, const struct hec_state_limits *limits,
                                      struct hec_ledger *out) {
    struct hec_device_steps steps;
    struct hec_ledger_builder *builder = hec_ledger_begin();
    const struct hec_state_visitor visitor = {.context = builder, .piece = fake_pass_take_piece};
    int err = hec_device_steps_choose(&pass->survey, &pass->tables, &steps);
    hec_ledger_steps(builder, &steps);
    if (!err)
        err = fake_pass_states_of(pass, limits, &visitor, NULL, NULL);
    if (!err)
        return hec_ledger_end(builder, out);
    hec_ledger_abandon(builder);
    return err;
}

static inline int fake_pass_ledger(const struct hec_timeline_input *input, const struct hec_state_limits *limits,
                                   struct hec_ledger *out) {
    struct hec_pass pass;
    int err = hec_pass_open(input, &pass, NULL);
    if (err)
        return err;
    err = fake_pass_ledger_of(&pass, limits, out);
    hec_pass_close(&pass);
    return err;
}

#endif
