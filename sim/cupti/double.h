/* What the files of the doubles of libcupti share. SIM_CUPTI is the version: 118, 128 or 130.
 *
 * Threads: records of calls are written in the thread that makes the call, those of the device by a thread of the library
 * when the simulated device has reached their end. No lock is held while a function of the client runs. */
#pragma once

#include "sim/cuda/hook.h"
#include "sim/cupti/exports.h"
#include "sim/world.h"

#include <pthread.h>

#define SIM_EXPORT __attribute__((visibility("default")))

enum sim_cupti_code {
#define SIM_CUPTI_RESULT(code, name) SIM_##name = code,
#include "sim/cupti/results.def"
#undef SIM_CUPTI_RESULT
};

enum sim_record_size {
#define SIM_RECORD(record, s118, s128, s130)                                                                           \
    SIM_SIZE_##record = SIM_CUPTI >= 130 ? s130 : SIM_CUPTI >= 128 ? s128 : s118,
#define SIM_FIELD(record, field, offset, bytes)
#include "sim/cupti/records.def"
#undef SIM_RECORD
#undef SIM_FIELD
};
#define SIM_SIZE_MAX 216
#define SIM_SIZE_UNKNOWN 64          /* of a record of a kind that nobody knows */
#define SIM_KIND_UNKNOWN_BAD 0x7f01u /* that kind */
#define SIM_CBID_MAX 1024

/* What is traced from t_ns on. Changes are kept: an operation is traced when its launch was. */
struct sim_choice {
    int64_t t_ns;
    uint64_t kinds;                     /* bit by kind */
    uint64_t driver[SIM_CBID_MAX / 64]; /* single calls */
};
#define SIM_CHOICE_MAX 512

struct sim_buffer {
    uint8_t *memory;
    size_t size, used, records, record_max; /* record_max 0: no limit */
    int64_t ready_ns;                       /* handed back not before */
    struct sim_buffer *next;
};

struct sim_pending {
    struct sim_op op;
    uint32_t kernel_kind; /* 3 or 10 */
};

struct sim_cupti_state {
    pthread_mutex_t lock;
    pthread_cond_t wake, settled;
    int moving; /* threads that have taken records or buffers out and not yet passed them on */
    struct sim_world *world;
    int64_t wall_offset_ns; /* monotonic to wall clock */

    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    CUpti_TimestampCallbackFunc timestamp;
    int64_t timestamp_offset_ns;
    bool latency, running;
    int thread_id_type;
    uint32_t flush_period_ms;

    struct sim_choice choices[SIM_CHOICE_MAX];
    uint64_t choice_head; /* choices ever made */

    struct sim_pending *pending; /* of the device, not finished */
    size_t pending_count, pending_room;
    struct sim_buffer *current[2]; /* 0: calls, 1: device */
    struct sim_buffer *done, *spare;
    size_t dropped;
    uint64_t written; /* records of the device: counts for planted faults */
    uint64_t delivered;
};
extern struct sim_cupti_state sim_cupti;

/* library.c: find the simulated machine and libcuda; NOT_INITIALIZED where that fails or the driver is too old. */
CUptiResult sim_cupti_ready(void);
const struct sim_trace_spec *sim_cupti_spec(void);
/* Another tool has CUPTI, by the specification. */
bool sim_cupti_held(void);
int64_t sim_cupti_now(void); /* monotonic */
/* CUPTI's clock of a monotonic time. */
uint64_t sim_cupti_time(int64_t t_ns);
const char *sim_cupti_driver_name(uint32_t cbid);

/* activity.c: listener of the device. */
void sim_cupti_op(void *context, const struct sim_op *op);
bool sim_cupti_graph_level(void *context);
/* subscribe.c */
void sim_cupti_call(void *context, int site, uint32_t cbid, const char *name, uint32_t correlation, void *cu_context,
                    uint32_t context_id, int result);
void sim_cupti_forget_subscriber(void);

/* records.c: the bytes of a record; 0: there is none. kind: of a kernel, 3 or 10. */
size_t sim_cupti_record(const struct sim_op *op, uint32_t kind, uint8_t record[SIM_SIZE_MAX]);
/* Spoil a record as the specification says; returns the size, 0 when it is to be dropped. */
size_t sim_cupti_spoil(uint8_t *record, size_t size, uint64_t number);

/* buffers.c. */
/* In the thread that launches, as CUPTI does: what is launched has a buffer to go to. */
void sim_cupti_prepare(void);
void sim_cupti_write(int which, const uint8_t *record, size_t size);
void sim_cupti_write_finished(void); /* operations of the device that are over by now */
void sim_cupti_deliver(bool all);    /* also buffers that are not full */
void sim_cupti_start_worker(void);
