/* The common virtual clock, from within a process that takes part (clock.c), and its calls in place of libc's (calls.c). */
#pragma once

#include "sim/clock.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

/* The clock this process goes by; NULL: the real one. */
struct sim_clock *clock_current(void);

/* CLOCK_MONOTONIC or CLOCK_REALTIME, as this process is to see it. */
int64_t clock_read(clockid_t id);
int64_t clock_real(clockid_t id);

enum clock_wait { CLOCK_TIME_CAME, CLOCK_SIGNALLED, CLOCK_INTERRUPTED, CLOCK_STOPPED };

/* Wait until the time has come, or for a condition variable: the mutex is released when the wait has begun, and not taken
 * again. object, mutex NULL: only for the time. */
enum clock_wait clock_wait(struct sim_clock *clock, int64_t until_ns, const void *object, pthread_mutex_t *mutex);
/* Wait for something that only the kernel knows of, at most until then: `there` waits for it so long (real time) at most, and
 * says whether the wait is over: CLOCK_SIGNALLED. mask not NULL: there is called with the signals of that mask, which are those
 * of the program and the clock's own, and must let them in while it waits: so the clock ends that wait. */
struct clock_outside {
    bool (*there)(void *context, int64_t ns, const sigset_t *mask);
    void *context;
    const sigset_t *mask; /* of the program while it waits; NULL: that of the thread */
    bool lets_signals_in; /* else it is to wait a little at a time */
    bool interruptible;   /* a handler that runs ends the wait */
};
enum clock_wait clock_wait_outside(struct sim_clock *clock, int64_t until_ns, const struct clock_outside *outside);
/* Whether a call failed because the clock ended the wait. */
bool clock_ended(int result);
/* The calling thread is awake. */
void clock_awake(struct sim_clock *clock);
/* Until it is taken back the calling thread counts as awake, though it sleeps: somebody works for it who is on no clock. */
void clock_served(struct sim_clock *clock, bool begins);
/* Who waits for it in this process runs again, one or all. */
void clock_signal(struct sim_clock *clock, const void *object, bool all);
/* That process may wake up (0: any). */
void clock_poke(struct sim_clock *clock, pid_t pid);
/* This signal was sent to that process. */
void clock_sent(struct sim_clock *clock, pid_t pid, int number);

/* When the process began, of which the kernel says when that was since boot, rounded down to a tick. */
int64_t clock_birth(struct sim_clock *clock, pid_t pid, int64_t real_ns, int64_t tick_ns);

/* A thread or process that is about to be: nothing happens before it has a chance to say what it waits for. */
struct sim_clock_slot *clock_expect(struct sim_clock *clock);
void clock_expected(struct sim_clock *clock, struct sim_clock_slot *slot, pid_t pid, pid_t tid); /* pid 0: never */
void clock_be(struct sim_clock_slot *slot);                                                      /* this thread is it */
