/* Inside src/diagnose: what one diagnosis works with, and those of its stages (stages.def) that have files of their own. */
#pragma once

#include "diagnose/meter/meter.h"
#include "diagnose/replay/schedule.h"
#include "diagnose/result.h"
#include "diagnose/timeline/timeline.h"

#include <stdio.h>

static inline void hec_copy_text(char *to, size_t size, const char *from) { /* NULL: "" */
    snprintf(to, size, "%s", from ? from : "");
}

struct hec_build {
    const struct hec_summary_input *input;
    const struct hec_price *price;
    struct hec_summary *out;
    struct hec_meter meter; /* which knows the end of the run */
    /* of the run's events */
    int64_t lost_ns[HEC_DEVICE_MAX];
    char sensor_failed[HEC_DEVICE_MAX][160];
    char no_answer[160];                   /* the driver was given up at the end of the run */
    bool knob_read[HEC_SUMMARY_KNOBS_MAX]; /* its value is known */
    /* the pass, and who is fed by it */
    struct hec_timeline_input trace;
    struct hec_device *devices; /* of trace */
    struct hec_pass pass;
    struct hec_pass_consumer consumers[HEC_STAGE_COUNT];
    struct hec_timeline_builder *timeline;
    struct hec_phases *phases;
    struct hec_step_parts_builder *parts;
    struct hec_diagnosis_builder *diagnosis;
    struct hec_schedule_builder *recorder;
    struct hec_step_list found;      /* steps in the sequence of kernels, where there are no others */
    struct hec_schedule schedule;    /* until it is the predictor's or the caller's */
    struct hec_predictor *predictor; /* NULL: nothing to replay */
};

/* What a stage does before the pass and after it. NULL: nothing. */
struct hec_stage_functions {
    int (*begin)(struct hec_build *build, struct hec_why *why);
    int (*end)(struct hec_build *build, struct hec_why *why);
};

/* ---- run.c ---- */

/* Fill out->host (but processes) and out->self; out->seconds and out->events are set. 0 or a negative error. */
int hec_host_fill(struct hec_meter *meter, struct hec_summary *out, struct hec_why *why);
/* What the run says of itself: labels, devices, events, units, phases and its end. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_run_read(struct hec_build *build, struct hec_why *why);
/* After all was read: what had to be left out of it, as an event at its end. */
void hec_run_left_out(struct hec_build *build);

/* Joules, money and CO2 of the run and of its units of work: devices, who used them, and steps are there. carbon: as in the input. */
void hec_totals_find(struct hec_summary *out, const struct hec_price *price, const char *carbon);

/* ---- knobs.c ---- */

/* An event of the run; others than those of knobs are passed over. */
void hec_knob_take(struct hec_build *build, enum hec_event_kind kind, const char *text);

/* ---- printed.c ---- */

/* Work that the program printed, and its joules, once the loop and the devices' energy are known. */
int hec_printed_find(struct hec_build *build, struct hec_why *why);

/* ---- diagnosis.c: where the time and the energy of each device went: states, ledger, source lines and watts put together ---- */

/* Source lines kept of a state and device. */
#define HEC_DIAGNOSIS_LINES 10
/* Modules kept of a device. */
#define HEC_DIAGNOSIS_MODULES 10

/* One pass (pass.h) feeds the ledger, the source lines and the watts. Seconds are always given; joules where the
 * device's energy is valid and its power readings span enough, and then the rows add up to that energy. A device's
 * watts by state come from its power history and the windows between the values of its energy counter (unmix.h), and
 * where those do not separate them from what is known of states beforehand (pricing.h), with bounds that are as wide;
 * of time that was not traced they count as those of the state that it is counted for.
 *
 * Of a trace in brief (timeline.h) there are ledgers, lines and watts. The pass is to stay until the end. watts: devices
 * have telemetry, which is to be read. Pure; linear in time; memory grows with what ledger.h, calls.h, source_lines.h,
 * inferred.h and watts.h say, and 64 bytes a reading of at most 2.8 hours: of longer runs every nth minute counts. 0 or
 * HEC_ERR_NOMEM.
 *
 * view: gets the pieces that the ledger is made of, unless it is NULL. */
int hec_diagnosis_begin(const struct hec_pass *pass, bool watts, struct hec_view *view,
                        struct hec_diagnosis_builder **out,
                        struct hec_pass_consumer *consumers); /* by stage: those of inferred, modules, calls, states */
/* Fills the dossiers of `out`: their readings, energies and timelines are there. Frees the builder in any case: 0,
 * HEC_ERR_NOMEM or what the input returned. */
int hec_diagnosis_end(struct hec_diagnosis_builder *builder, struct hec_meter *meter, struct hec_summary *out,
                      struct hec_why *why);
void hec_diagnosis_abandon(struct hec_diagnosis_builder *builder); /* NULL is fine */

/* ---- phases.c ----
 *
 * Energy by phase: what the used devices drew while any thread of the command was in it.
 *
 * The intervals of a phase are united over threads and processes; what the meter says of such a part, and its bound, is in
 * meter/joules.h. Phases that nest or overlap each have all of it: they do not add up. Beyond half of the value there is no
 * figure, but the reason. */

#define HEC_PHASE_BOUND_MAX 0.50

/* Fed by a pass (pass.h), with the phases of out, which stay in place until the end. *phases NULL: there are none. 0 or
 * HEC_ERR_NOMEM. */
int hec_phases_begin(const struct hec_timeline_tables *tables, int64_t end_ns, struct hec_summary *out,
                     struct hec_phases **phases, struct hec_pass_consumer *consumer);
/* Fills joules, bound_joules and why of its phases, once devices, their energy and the totals stand. HEC_ERR_NOMEM or what
 * the input returned. */
int hec_phases_end(struct hec_phases *phases, struct hec_meter *meter, struct hec_why *why);
void hec_phases_free(struct hec_phases *phases); /* NULL is fine */

/* ---- step_parts.c ----
 *
 * Device time of the parts of a step: a kernel belongs to the part in which its process was when it launched it, by the hooks'
 * intervals (of time that CUPTI recorded). Kernels that communicate are left out: they wait. Sums are of durations; joules are
 * of their union. */

/* *builder NULL: the hooks told none. 0 or HEC_ERR_NOMEM. */
int hec_step_parts_begin(struct hec_pass *pass, struct hec_step_parts_builder **builder,
                         struct hec_pass_consumer *consumer);
/* Fills `parts` of the devices, once timelines and ledgers stand. Frees the builder, which may be NULL. 0 or HEC_ERR_NOMEM. */
int hec_step_parts_end(struct hec_step_parts_builder *builder, struct hec_summary *out);
void hec_step_parts_free(struct hec_step_parts_builder *builder); /* NULL is fine */

/* ---- mfu.c ---- */

/* "6 0.0012 fp16=1.2e12 tf32=3e9": nothing of it is taken where something is no such thing. NULL: none. */
void hec_model_flops_read(const char *text, const char *why, struct hec_model_flops *out);
void hec_model_products_read(const char *text,
                             struct hec_model_flops *out); /* where FLOPs were counted; text NULL: nothing */
/* mfu of the devices, once the loop and the ranks stand: FLOPs of the loop's steps over what the data sheet's dense peaks of their
 * precisions would do in its time. */
void hec_mfu_find(struct hec_summary *out);

/* ---- sizes.c ---- */

/* Of what all processes reported. 0 or what the input returned. */
int hec_sizes_read(const struct hec_summary_input *input, struct hec_sizes *out);

/* ---- job.c: which processes and devices of a run belong together, and what waiting for each other costs them: found once, asked by rules
 * and words ---- */

/* The ranks, by the tracks of their devices' streams and by what the processes themselves say. 0 or HEC_ERR_NOMEM. */
int hec_job_ranks(const struct hec_summary_input *input, const struct hec_timeline_tables *tables,
                  struct hec_job_diagnosis *job);
/* What belongs together, and the collectives, by the dossiers, which are complete, and by the schedule, which may be empty. job.size is
 * set. */
int hec_job_find(const struct hec_summary *summary, const struct hec_schedule *schedule,
                 struct hec_job_diagnosis *job); /* 0 or HEC_ERR_NOMEM */

/* What devices wait for other ranks, by matched collectives or as inferred, becomes a row of their ledgers. */
void hec_job_split(struct hec_summary *summary);

/* job_alike.c: which ranks are like most, and which a short table has a row for. 0 or HEC_ERR_NOMEM. */
int hec_job_alike(const struct hec_summary *summary, struct hec_job_diagnosis *job);

/* job_inferred.c: where kernels of some ranks alone were recorded, whom the ones that communicate wait for. True, with what it means in
 * ranks and in *out, where it is known; *out is what the ledgers alone say. */
/* What the slowest's process does alone: own_s and own_code_s. */
void hec_job_own(const struct hec_summary *summary, struct hec_collectives *out);
bool hec_job_infer(const struct hec_summary *summary, struct hec_job_diagnosis *job, struct hec_collectives *out);

/* ---- others.c ----
 *
 * Whether anybody else was at work on a device. What telemetry reads is of all processes on it.
 *
 * Where CUPTI saw the device, the engine's activity (GPM) is compared with what it saw: what is more is somebody else's. A
 * process that only holds a context (a forgotten notebook) does not count, and one that the driver does not list (of another
 * container) does. */

/* Fills others, others_engine and others_seen of a device, whose telemetry and shared_with are set. timeline: its own;
 * NULL: nothing of it was traced. 0 or what the input returned. */
int hec_others_find(struct hec_meter *meter, struct hec_device_timeline *timeline, struct hec_device_summary *device,
                    struct hec_why *why);
