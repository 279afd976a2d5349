/* What to simulate: the argument of `hec run --sim`.
 *
 *   PROFILE[xN][,key[=value]...]         h200   h200x8   h200,lost@2   a100x2,slow=nvmlDeviceGetPowerUsage:200@5
 *
 * docs/simulated-gpu.md describes the keys. Times are seconds since the world was created. */
#pragma once

#include "base/error.h"
#include "sim/model.h"

#define SIM_DEVICE_MAX 16
#define SIM_FAULT_MAX 16
#define SIM_MIG_MAX 7
#define SIM_MIG_SLICES 7
#define SIM_SPEC_LENGTH_MAX 512

/* Functions that a fault can name: those of nvml/calls.def. */
enum sim_call {
#define SIM_CALL(name, since, cost_ns) SIM_CALL_##name,
#include "sim/nvml/calls.def"
#undef SIM_CALL
    SIM_CALL_COUNT
};

int64_t sim_call_cost_ns(enum sim_call call);

enum sim_fault_kind {
    SIM_FAULT_LOST,
    SIM_FAULT_RESET,
    SIM_FAULT_NOMIG,
    SIM_FAULT_XID,
    SIM_FAULT_SLOW,
    SIM_FAULT_HANG,
    SIM_FAULT_FAIL
};

struct sim_fault {
    enum sim_fault_kind kind;
    enum sim_call call; /* SLOW, HANG, FAIL */
    int device;         /* LOST, RESET, XID; NOMIG: the MIG device */
    int xid;            /* XID */
    int64_t at_ns;      /* from then on; 0: from the start */
    int64_t until_ns;   /* INT64_MAX: for ever */
    int64_t delay_ns;   /* SLOW */
};

/* What can be wrong with a record of CUPTI. */
enum sim_bad_record {
    SIM_BAD_START,     /* starts at 0 */
    SIM_BAD_ORDER,     /* ends before it starts */
    SIM_BAD_KIND,      /* of a kind that nobody knows */
    SIM_BAD_DEVICE,    /* on a device that does not exist */
    SIM_BAD_NAME,      /* of a kernel: no name */
    SIM_BAD_TRUNCATED, /* the buffer ends in the middle of its last record */
    SIM_BAD_COUNT
};

#define SIM_HOLDER_MAX 54
/* What a traced launch costs the program: +12 % of 9 us, measured on an H200 with a plain CUPTI client. */
#define SIM_TRACE_COST_NS 1000

/* Which CUPTI there is and what it does wrong. */
struct sim_trace_spec {
    int cupti;                   /* 118, 128, 130; 0: none */
    int bad[SIM_BAD_COUNT];      /* one in so many records of the device (TRUNCATED: of buffers) is so; 0: none */
    int no_buffer;               /* for one in so many records there is no room; 0: always room */
    int64_t slow_flush_ns;       /* before a completed buffer is handed back, and in a flush */
    int64_t skew_ppm;            /* CUPTI's clock runs faster by */
    int64_t offset_ns;           /* and is ahead of the wall clock by */
    int64_t cost_ns;             /* of a traced launch or copy, for the program */
    char holder[SIM_HOLDER_MAX]; /* another tool that has CUPTI; "": none */
    int64_t holder_until_ns;     /* since the world was created; 0: for ever */
};

struct sim_spec {
    char profile[16];
    int count;
    int driver; /* 580 or 450 */
    int mig;    /* device 0 is divided into so many; 0: not */
    int mig_slices[SIM_MIG_MAX];
    bool virtual_time;  /* the clock stands still until it is set */
    bool no_power;      /* no power history */
    int32_t noise_mw;   /* standard deviation added to power readings, never to the counter */
    int32_t cap_mw;     /* 0: the profile's default limit */
    int32_t outside_mw; /* a limit from outside the driver, which holds where it is lower; 0: none */
    bool no_rights;     /* limits and clocks cannot be set */
    char state[256];    /* path of the file that keeps the machine's limits; "": they go with the run */
    /* Of the power history: a sample is a mean of so much, and so late; 0: its own 20 ms. */
    int64_t sensor_window_ns, sensor_lag_ns;
    int lose; /* one in so many samples is not there; 0: all are */
    int fault_count;
    struct sim_fault faults[SIM_FAULT_MAX];
    struct sim_trace_spec trace;
};

/* HEC_ERR_USAGE with a sentence that names what is wrong and what would be right. */
int sim_spec_parse(const char *text, struct sim_spec *spec, struct hec_why *why);

/* The double to load, relative to lib/hec: "sim/libnvidia-ml.so.1", or the older one. */
const char *sim_spec_library(const struct sim_spec *spec);

/* A part of a divided device by its slices (mig.def); NULL: there is no such part. */
struct sim_mig_part {
    int slices, memory_eighths, sms;
};
#define SIM_MIG_SMS 132 /* of the whole device */
const struct sim_mig_part *sim_mig_part(int slices);

/* The folder of the libcupti to load, relative to lib/hec: "sim/cupti-13"; NULL: there is none. */
const char *sim_spec_cupti_folder(const struct sim_spec *spec);

/* One key of the specification that concerns tracing (spec_trace.c). *known: whether it is one. */
int sim_spec_parse_trace(const char *key, char *value, struct sim_trace_spec *trace, bool *known, struct hec_why *why);

/* A decimal number that is the whole of text, from 0 to maximum, without sign or exponent. */
bool sim_spec_number(const char *text, double maximum, double *value);
