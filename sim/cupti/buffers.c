/* The double of libcupti: buffers of the client, who fills them, who hands them back. */
#include "sim/cupti/double.h"

#include "base/clock.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_NS (2 * HEC_NS_PER_MS)

static void lock(void) {
    pthread_mutex_lock(&sim_cupti.lock);
}

static void unlock(void) {
    pthread_mutex_unlock(&sim_cupti.lock);
}

static __thread int moving_here;

/* Under the lock. A flush waits for records and buffers that another thread is moving: what was complete when it was
 * called has been handed back when it returns. */
static void move_begin(void) {
    sim_cupti.moving++;
    moving_here++;
}

static void move_end(void) {
    lock();
    moving_here--;
    sim_cupti.moving--;
    pthread_cond_broadcast(&sim_cupti.settled);
    unlock();
}

static void wait_for_others(void) {
    lock();
    while (sim_cupti.moving > moving_here)
        pthread_cond_wait(&sim_cupti.settled, &sim_cupti.lock);
    unlock();
}

/* Under the lock: the buffer is over. */
static void finish(int which) {
    struct sim_buffer *buffer = sim_cupti.current[which];
    if (!buffer)
        return;
    sim_cupti.current[which] = NULL;
    buffer->ready_ns = sim_cupti_now() + sim_cupti_spec()->slow_flush_ns;
    struct sim_buffer **end = &sim_cupti.done;
    while (*end)
        end = &(*end)->next;
    *end = buffer;
    pthread_cond_signal(&sim_cupti.wake);
}

static bool fits(const struct sim_buffer *buffer, size_t size) {
    return buffer->used + size <= buffer->size && (!buffer->record_max || buffer->records < buffer->record_max);
}

/* Without the lock. NULL: the client has none. */
static struct sim_buffer *ask(CUpti_BuffersCallbackRequestFunc request) {
    struct sim_buffer *buffer = calloc(1, sizeof *buffer);
    if (buffer)
        request(&buffer->memory, &buffer->size, &buffer->record_max);
    if (buffer && (!buffer->memory || buffer->size < SIM_SIZE_MAX)) {
        free(buffer);
        return NULL;
    }
    return buffer;
}

/* Under the lock. */
static void keep(int which, struct sim_buffer *buffer) {
    if (!sim_cupti.current[which]) {
        sim_cupti.current[which] = buffer;
    } else { /* another thread was quicker */
        buffer->next = sim_cupti.spare;
        sim_cupti.spare = buffer;
    }
}

void sim_cupti_prepare(void) {
    lock();
    CUpti_BuffersCallbackRequestFunc request = sim_cupti.current[1] || sim_cupti.spare ? NULL : sim_cupti.request;
    unlock();
    struct sim_buffer *buffer = request ? ask(request) : NULL;
    if (!buffer)
        return;
    lock();
    keep(1, buffer);
    unlock();
}

void sim_cupti_write(int which, const uint8_t *record, size_t size) {
    lock();
    if (sim_cupti.current[which] && !fits(sim_cupti.current[which], size))
        finish(which);
    while (!sim_cupti.current[which]) {
        struct sim_buffer *buffer = sim_cupti.spare;
        if (buffer) {
            sim_cupti.spare = buffer->next;
            buffer->next = NULL;
        } else {
            CUpti_BuffersCallbackRequestFunc request = sim_cupti.request;
            unlock();
            if (!request) /* finalized meanwhile: nobody wants it */
                return;
            buffer = ask(request);
            lock();
        }
        if (!buffer) {
            sim_cupti.dropped++;
            unlock();
            return;
        }
        keep(which, buffer);
        if (!fits(sim_cupti.current[which], size))
            finish(which);
    }
    struct sim_buffer *buffer = sim_cupti.current[which];
    memcpy(buffer->memory + buffer->used, record, size);
    buffer->used += size;
    buffer->records++;
    unlock();
}

static void write_device(const struct sim_pending *pending) {
    uint8_t record[SIM_SIZE_MAX];
    size_t size = sim_cupti_record(&pending->op, pending->kernel_kind, record);
    size = sim_cupti_spoil(record, size, __atomic_add_fetch(&sim_cupti.written, 1, __ATOMIC_RELAXED));
    if (size) {
        sim_cupti_write(1, record, size);
    } else {
        lock();
        sim_cupti.dropped++;
        unlock();
    }
}

void sim_cupti_write_finished(void) {
    lock();
    int64_t now = sim_cupti_now();
    size_t count = 0, kept = 0;
    struct sim_pending *finished = sim_cupti.pending_count ? malloc(sim_cupti.pending_count * sizeof *finished) : NULL;
    for (size_t i = 0; finished && i < sim_cupti.pending_count; i++) {
        if (sim_cupti.pending[i].op.end_ns <= now)
            finished[count++] = sim_cupti.pending[i];
        else
            sim_cupti.pending[kept++] = sim_cupti.pending[i];
    }
    if (finished)
        sim_cupti.pending_count = kept;
    move_begin();
    unlock();
    for (size_t i = 0; i < count; i++)
        write_device(&finished[i]);
    free(finished);
    move_end();
}

/* Hand back what is ready, in the calling thread: to whoever is registered now, as CUPTI does. */
static void hand_back(bool all) {
    for (;;) {
        lock();
        struct sim_buffer *buffer = sim_cupti.done;
        if (!buffer || (!all && buffer->ready_ns > sim_cupti_now())) {
            unlock();
            return;
        }
        sim_cupti.done = buffer->next;
        uint64_t number = ++sim_cupti.delivered;
        CUpti_BuffersCallbackCompleteFunc complete = sim_cupti.complete;
        size_t valid = buffer->used;
        int every = sim_cupti_spec()->bad[SIM_BAD_TRUNCATED];
        if (every > 0 && number % (uint64_t)every == 0 && valid > 8) {
            valid -= 8;
            sim_cupti.dropped++; /* its last record is cut off */
        }
        move_begin();
        unlock();
        if (complete)
            complete(NULL, 0, buffer->memory, buffer->size, valid);
        free(buffer);
        move_end();
    }
}

void sim_cupti_deliver(bool all) {
    if (all) {
        lock();
        finish(0);
        finish(1);
        while (sim_cupti.spare) {
            struct sim_buffer *spare = sim_cupti.spare;
            sim_cupti.spare = spare->next;
            spare->next = sim_cupti.done;
            sim_cupti.done = spare;
        }
        unlock();
    }
    hand_back(all);
}

static struct timespec in(int64_t ns) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ns += ts.tv_nsec;
    return (struct timespec){ts.tv_sec + ns / HEC_NS_PER_S, ns % HEC_NS_PER_S};
}

static void *work(void *unused) {
    int64_t flushed = sim_cupti_now();
    for (;;) {
        lock();
        bool busy = sim_cupti.pending_count || sim_cupti.done;
        struct timespec until = in(busy ? TICK_NS : 25 * TICK_NS);
        pthread_cond_timedwait(&sim_cupti.wake, &sim_cupti.lock, &until);
        int64_t period = (int64_t)sim_cupti.flush_period_ms * HEC_NS_PER_MS;
        unlock();
        sim_cupti_write_finished();
        bool all = period && sim_cupti_now() - flushed >= period;
        if (all)
            flushed = sim_cupti_now();
        sim_cupti_deliver(all);
    }
    return unused;
}

void sim_cupti_start_worker(void) {
    lock();
    bool start = !sim_cupti.running;
    sim_cupti.running = true;
    unlock();
    if (!start)
        return;
    sigset_t every, before;
    pthread_t thread;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    if (pthread_create(&thread, NULL, work, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

SIM_EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    (void)flag; /* forced: what is not finished is not written by the double either way */
    CUptiResult ready = sim_cupti_ready();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    lock();
    bool registered = sim_cupti.complete != NULL;
    unlock();
    if (!registered)
        return SIM_CUPTI_ERROR_INVALID_OPERATION;
    if (sim_cupti_spec()->slow_flush_ns)
        sim_world_spend(sim_cupti.world, sim_cupti_spec()->slow_flush_ns);
    sim_cupti_write_finished();
    wait_for_others();
    sim_cupti_deliver(true);
    wait_for_others();
    lock();
    bool running = sim_cupti.pending_count > 0;
    unlock();
    if (running) /* CUPTI keeps the buffer in which the record of a launch has its place */
        sim_cupti_prepare();
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flag) {
    (void)context, (void)stream;
    return cuptiActivityFlushAll(flag);
}

SIM_EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t period_ms) {
    CUptiResult ready = sim_cupti_ready();
    if (ready == SIM_CUPTI_SUCCESS) {
        lock();
        sim_cupti.flush_period_ms = period_ms;
        unlock();
    }
    return ready;
}

SIM_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
    (void)context, (void)stream;
    CUptiResult ready = sim_cupti_ready();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    if (!dropped)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    lock();
    *dropped = sim_cupti.dropped;
    sim_cupti.dropped = 0;
    unlock();
    return SIM_CUPTI_SUCCESS;
}
