/* Why a trial's command failed: out of memory is a result (the setting is too large), the rest is a fault. Pure. */
#ifndef HEC_ACT_FAILURE_H
#define HEC_ACT_FAILURE_H

enum hec_failure {
    HEC_FAILURE_NONE,
    HEC_FAILURE_DEVICE_MEMORY,
    HEC_FAILURE_HOST_MEMORY, /* or SIGKILL, which is how the kernel ends what takes too much */
    HEC_FAILURE_HUNG,        /* it did not end within its limit */
    HEC_FAILURE_OTHER
};

/* Of a command that nobody asked to end: its exit status, as a shell gives it, and the last of what it printed. */
enum hec_failure hec_failure_of(int exit_status, const char *output);

#endif
