/* Launches counted without CUPTI: in modules bound at once, when first called, and loaded later. */
#include "tracer/tracer.h"

#include "launches_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void *load(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/lib/launches/%s", HEC_BINARY_DIR, name);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        fail_msg("%s", dlerror());
    return handle;
}
#define FUNCTION(handle, name) ((__typeof__(&name))dlsym(handle, #name))

static int somebody_else(void *graph, void *stream) {
    return graph == stream ? 55 : 0;
}

static bool agree(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)module, (void)hook, (void)context;
    return bound;
}

static struct hec_launches read_now(void) {
    struct hec_launches now;
    hec_launches_read(&now);
    return now;
}

#define THREADS 4
#define CALLS 20000

static void *launch_often(void *user) {
    __typeof__(&user_launch) launch = FUNCTION(user, user_launch);
    uintptr_t wrong = 0;
    for (int i = 0; i < CALLS; i++)
        wrong += launch(i) != 0;
    return (void *)wrong;
}

struct waiter {
    void *user;
    sem_t go;
    int result;
};

static void *wait_once(void *context) {
    struct waiter *waiter = context;
    waiter->result = FUNCTION(waiter->user, user_wait)(&waiter->go);
    return NULL;
}

static void check(void *user) {
    struct hec_launches before = read_now();
    assert_true(FUNCTION(user, user_launch)(3) == 0);
    assert_true(FUNCTION(user, user_many)());
    assert_int_equal(FUNCTION(user, user_copy)(), 101);
    assert_int_equal(FUNCTION(user, user_wait)(NULL), 7);
    struct hec_launches after = read_now();
    assert_int_equal(after.launches - before.launches, 2);
    assert_int_equal(after.copies - before.copies, 1);
    assert_true(after.waited_ns >= before.waited_ns);
}

static void test_launches(void **state) {
    (void)state;
    assert_false(hec_launches_open()); /* nothing here launches */
    void *now = load("liblaunches_user_now.so"), *lazy = load("liblaunches_user_lazy.so");
    /* somebody was here before: theirs stays */
    void *library = load("libcudart.so.99");
    struct hec_got_hook theirs = {"cudaGraphLaunch", dlsym(library, "cudaGraphLaunch"), (void *)somebody_else};
    assert_int_equal(hec_got_patch(&theirs, 1, 0, agree, NULL), 1);

    assert_true(hec_launches_open());
    check(now);
    check(lazy);
    struct hec_launches before = read_now();
    assert_int_equal(FUNCTION(now, user_graph)(), 55);
    assert_int_equal(read_now().graphs, before.graphs);
    assert_int_equal(FUNCTION(lazy, user_graph)(), 5);
    assert_int_equal(read_now().graphs, before.graphs + 1);
    /* by name, too; but not the library's own calls */
    assert_int_equal(FUNCTION(library, cudaGraphLaunch)(NULL, NULL), 5);
    assert_int_equal(read_now().graphs, before.graphs + 2);
    assert_true(FUNCTION(library, launches_inner)() != 0);
    assert_int_equal(read_now().launches, before.launches);

    /* what comes later, goes, and comes back */
    for (int i = 0; i < 3; i++) {
        void *later = load("liblaunches_user_later.so");
        hec_launches_rescan();
        check(later);
        dlclose(later);
    }
    dlclose(library);

    /* from several threads none is lost */
    before = read_now();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, i % 2 ? now : lazy), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(read_now().launches - before.launches, THREADS * CALLS);
}

static void test_waits(void **state) {
    (void)state;
    struct waiter waiters[2] = {{.user = load("liblaunches_user_now.so")}, {.user = load("liblaunches_user_lazy.so")}};
    pthread_t threads[2];
    struct hec_launches idle = read_now(), first, second;
    usleep(2000);
    assert_true(read_now().waited_ns == idle.waited_ns);
    for (int i = 0; i < 2; i++) {
        sem_init(&waiters[i].go, 0, 0);
        pthread_create(&threads[i], NULL, wait_once, &waiters[i]);
    }
    do { /* until both wait: a wait counts before it has ended, each thread's */
        first = read_now();
        usleep(1000);
        second = read_now();
    } while (second.waited_ns - first.waited_ns != 2 * (second.t_ns - first.t_ns));
    for (int i = 0; i < 2; i++) {
        sem_post(&waiters[i].go);
        pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].result, 8);
    }
    first = read_now();
    assert_true(first.waited_ns >= second.waited_ns);
    usleep(1000);
    assert_true(read_now().waited_ns == first.waited_ns);

    /* a wait that began before a fork does not end in the child's account */
    pthread_create(&threads[0], NULL, wait_once, &waiters[0]);
    do {
        idle = read_now();
        usleep(1000);
    } while (read_now().waited_ns == idle.waited_ns);
    hec_launches_forget();
    sem_post(&waiters[0].go);
    pthread_join(threads[0], NULL);
    first = read_now();
    assert_true(first.launches == 0 && first.graphs == 0 && first.copies == 0 && first.waited_ns == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launches), cmocka_unit_test(test_waits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
