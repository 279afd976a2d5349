/* Who reports to the agent comes in by a process of its own, the door: it accepts, knows users by the kernel's credentials, bounds
 * what each of them brings, and lets one short-lived process a user receive. What a stranger's descriptor does when it is read or
 * closed (a socket that lingers, a file of FUSE, a queue with more of them in it) holds up that process alone: it ends at once by its
 * exit, which waits for no socket, or is killed and left, and meanwhile its user waits. The agent gets memory that can hold up nobody,
 * and sockets, which it gives back here to be closed. */
#pragma once

#include "jobs/request.h"
#include "jobs/subuid.h"
#include "observe/intake.h"

/* Came in, with a descriptor: a ring that can be mapped, or the socket of a request. */
struct hec_door_arrival {
    uint32_t role, tag;
    pid_t pid; /* 0: of another pid namespace */
    uid_t uid;
    struct hec_request request; /* of a request: what is asked */
};

struct hec_door_counts {
    uint64_t refused; /* rings that were none, or over what a user may bring */
    uint64_t silent;  /* connections that brought nothing in time */
    int64_t cpu_ns;   /* of the process, and of those that received and ended */
};

#define HEC_DOOR_RATE 128.0   /* arrivals a second of one user, in the long run */
#define HEC_DOOR_BURST 1024.0 /* at once */
#define HEC_DOOR_USERS 256    /* who have a connection just now */
#define HEC_DOOR_BACK_MAX 64  /* sockets that wait to be closed */

struct hec_door {
    struct hec_intake place; /* the listener, and its path */
    uint32_t records_max;
    int inside, outside; /* what comes in: the agent's end of it, and the door's */
    pid_t pid;           /* 0: it does not run */
    int64_t begun_ns;
    struct hec_door_shared *shared;
    struct hec_subuid subuid; /* as it was at the start */
    int back[HEC_DOOR_BACK_MAX], back_count;
};

/* Listens for everybody at path, which must outlive it. The errors of hec_intake_open. */
int hec_door_open(struct hec_door *door, const char *path, uint32_t records_max, struct hec_why *why);
/* Readable when something has come in. */
static inline int hec_door_fd(const struct hec_door *door) {
    return door->inside;
}
/* Starts the process where none runs, or where it answers no more. Now and then. */
void hec_door_keep(struct hec_door *door);
/* What has come in, and its descriptor; false: nothing more just now. Never waits. */
bool hec_door_take(struct hec_door *door, struct hec_door_arrival *arrival, int *fd);
/* Closes the socket of a request where that holds up nobody. Never waits. */
void hec_door_give_back(struct hec_door *door, int fd);
void hec_door_counts(const struct hec_door *door, struct hec_door_counts *counts);
void hec_door_close(struct hec_door *door);

/* Inside: what the process does (door_process.c). It is a fork of the agent, so it calls nothing that takes a lock. */
struct hec_door_shared {
    struct hec_door_counts counts;
    int64_t turned_ns;        /* its last turn */
    int done[HEC_DOOR_USERS]; /* how many of those whom the receiver of a user received it is done with */
};
_Noreturn void hec_door_process(const struct hec_door *door);
