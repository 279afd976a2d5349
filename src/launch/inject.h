/* What is let into the observed command: the tracer (through CUDA_INJECTION64_PATH) and the Python hooks
 * (through PYTHONPATH). Whatever is missing here, the command runs all the same, and the run says why. */
#pragma once

#include "base/trace.h"
#include "launch/environ.h"
#include "model/run.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hec_inject {
    enum hec_trace_mode mode;
    double memory_mb; /* that tracing may take in each process */
    bool hooks;       /* let the Python hooks in */
    bool traced;      /* the command was given the tracer */
    char why[512];    /* why it was not */
};

/* Let the tracer in; it hands its ring over at `socket`. Nothing is set when inject->mode is off or when another tool
 * has CUDA_INJECTION64_PATH: then inject->why says so. */
void hec_inject_tracer(struct hec_inject *inject, const char *socket, struct hec_environ *env);

/* Instruct the tracer to leave CUPTI out, and why; "": let it use CUPTI, even if an outer `hec run` forbade it. */
void hec_inject_no_cupti(const char *why, struct hec_environ *env);

/* Let the Python hooks in, where inject->hooks. */
void hec_inject_hooks(const struct hec_inject *inject, struct hec_environ *env);

/* The environment of a job that reports to the agent of this node, which listens at `socket`: tracer, marks and hooks hand their
 * rings over there. Whatever is missing is left out. tag: what belongs together, 0: nothing is said. */
void hec_inject_for_agent(struct hec_inject *inject, const char *socket, uint32_t tag, struct hec_environ *env);

/* A command that was not given the tracer: the run says why. */
void hec_inject_record(const struct hec_inject *inject, pid_t root, int64_t start_ns, const struct hec_sink *sink);

/* The variable that the CUDA driver reads, and the name of the library that we put into it. */
#define HEC_INJECT_VARIABLE "CUDA_INJECTION64_PATH"
#define HEC_INJECT_LIBRARY "libhectrace.so"
/* Whether a value of the variable is a library of ours, perhaps of another installation (an outer `hec run`). */
bool hec_inject_is_ours(const char *value);
/* Where the Python hooks lie: a folder for PYTHONPATH. */
int hec_inject_hooks_folder(char path[PATH_MAX], struct hec_why *why);
