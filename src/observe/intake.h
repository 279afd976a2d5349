/* Where the rings of observed processes arrive (base/ring.h): a socket that a collector, or an agent, listens on. Takes what
 * comes from this user only, waits for nobody, and is bounded for any peer. */
#pragma once

#include "base/error.h"
#include "base/ring.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HEC_INTAKE_WAITING_MAX 32 /* connected and silent; one more, and one of the process that has most goes */

struct hec_intake {
    const char *path;
    int listener;
    uint64_t inode; /* of the socket at the path */
    enum hec_ring_role role;
    uint32_t records_max; /* the largest ring that is taken */
    struct {
        int fd;
        pid_t pid;
        int64_t deadline_ns;
    } waiting[HEC_INTAKE_WAITING_MAX]; /* oldest first */
    int waiting_count;
    uint64_t refused;   /* rings that were not acceptable */
    uint64_t silent;    /* connections that were given up before they brought one */
    uint64_t strangers; /* connections of another user */
    bool full;          /* so many connected at once that the kernel may have turned some away */
};

/* A ring that arrived. pid 0: a process of another pid namespace, not visible from here; pid_fd -1: the kernel gave
 * none. Ring and pid_fd are the receiver's. */
struct hec_intake_ring {
    struct hec_ring_reader ring;
    pid_t pid;
    int pid_fd;
};

/* path must outlive the intake. The errors of hec_ring_listen, with a sentence ("cannot listen on ..."). */
int hec_intake_open(struct hec_intake *intake, const char *path, enum hec_ring_role role, uint32_t records_max,
                    struct hec_why *why);
/* Call `take` for every ring that has arrived. false: the receiver has no room; it must have
 * closed the ring, and it is counted as refused. */
void hec_intake_poll(struct hec_intake *intake, int64_t now_ns,
                     bool (*take)(void *context, const struct hec_intake_ring *arrived, int64_t now_ns), void *context);
/* The same at the end; who connected and has said nothing by now is given up. */
void hec_intake_finish(struct hec_intake *intake, int64_t now_ns,
                       bool (*take)(void *context, const struct hec_intake_ring *arrived, int64_t now_ns),
                       void *context);
void hec_intake_close(struct hec_intake *intake);

/* A pidfd, or -1. */
int hec_intake_process(pid_t pid);
/* Whether a process has ended; a pid that is not visible from here never does. */
bool hec_intake_process_ended(pid_t pid, int pid_fd);
