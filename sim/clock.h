/* The common virtual clock of a simulated machine and of what runs on it: a part of the memory of the world, which every
 * process that takes part maps. It is of tests alone: who serves it is a library that a test loads before all others
 * (tests/clock), and without it no world has one. hec itself only asks for it when it makes a simulated machine, so no run on
 * a real device can have it. How it works: tests/clock/clock.c. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#define SIM_CLOCK_OFFSET 24 /* in that memory */
#define SIM_CLOCK_SLOTS 512
#define SIM_CLOCK_BIRTHS 4096

enum sim_clock_state { SIM_CLOCK_FREE, SIM_CLOCK_RUNS, SIM_CLOCK_WAITS };

/* A thread that takes part. Under the lock, but for what says atomic. */
struct sim_clock_slot {
    pid_t pid, tid;     /* tid 0: it is being born */
    int state;          /* enum sim_clock_state */
    int entering;       /* atomic: it wants the lock, and is not idle however long it waits for that */
    int look;           /* atomic: it may have been woken by other means: see whether it sleeps */
    int by_signal;      /* it waits in the kernel, where a signal of the clock reaches it */
    uint32_t woken;     /* futex, atomic */
    int signalled;      /* what it waited for was signalled */
    int sent;           /* atomic: a signal that was sent to its process, of which it is the first thread; 0: none */
    const void *object; /* condition variable of that process that it waits for; NULL: only for the time */
    int64_t until_ns;   /* INT64_MAX: for ever */
    uint64_t ran;       /* for so long (ns) when it was last looked at */
};

/* When a process began: the kernel says it by the real clock. In the place that its pid gives or the next free one. Never removed, as a
 * process would seem to be another one then. */
struct sim_clock_birth {
    pid_t pid;
    int64_t ns;
};

struct sim_clock {
    uint32_t started; /* atomic */
    uint32_t used;    /* slots behind were never taken */
    pid_t maker;      /* the process that made it */
    pthread_mutex_t lock;
    int64_t now_ns, wall_offset_ns;  /* now: atomic */
    int64_t begun_ns, real_begun_ns; /* when this clock began, by itself and by the kernel's */
    int64_t shorts_ns;               /* that have passed since everybody was looked at */
    pid_t alone;                     /* tid of the only thread that was woken since then; 0: there are others. Atomic */
    pid_t watching;                  /* tid of the waiting thread that looks whether all others sleep */
    uint32_t looks;                  /* so often somebody looked */
    struct sim_clock_slot slots[SIM_CLOCK_SLOTS];
    struct sim_clock_birth births[SIM_CLOCK_BIRTHS];
};

/* Of that library: the world in that file gets a clock, by which this process goes from now on; and by the real one again. */
int hecTestClockStart(int fd);
void hecTestClockStop(void);
#define SIM_CLOCK_START "hecTestClockStart"
#define SIM_CLOCK_STOP "hecTestClockStop"
