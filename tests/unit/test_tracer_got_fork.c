/* Children of forks in the middle of a walk load a library. By hand: `test_tracer_got_fork without [CHILDREN]` does the
 * same with no handler, and says how many of them hang for a second. */
#include "got_modules.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

enum { CHILDREN = 200, WATCHDOG_S = 60 };

static char library[512];
static bool handled = true; /* by the handlers; else the child must not touch the lock of the walks */

/* Returns whether the child came back; one that hangs ends by its alarm. */
static bool fork_child(unsigned watchdog_s) {
    pid_t child = fork();
    if (child == 0) {
        alarm(watchdog_s);
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        struct hec_got_hook hook = {"got_other", handle ? dlsym(handle, "got_other") : NULL, NULL};
        if (handled)
            hec_got_patch_symbols(&hook, 1); /* the child may walk as well */
        _exit(handle ? 0 : 1);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool stop;
static uint64_t walks, visits;

static bool count(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)module;
    (void)hook;
    (void)context;
    visits += bound;
    return false;
}

static void *walk(void *hook) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        hec_got_patch(hook, 1, 0, count, NULL);
        hec_got_generation();
        __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* One thread walks all the time while this one forks. Returns how many children did not come back. */
static int storm(int children, unsigned watchdog_s, int give_up) {
    struct hec_got_hook hook = {"got_call", dlsym(got_load("got_library"), "got_call"), (void *)storm};
    got_load("got_many");
    pthread_t walker;
    stop = false;
    assert_int_equal(pthread_create(&walker, NULL, walk, &hook), 0);
    while (__atomic_load_n(&walks, __ATOMIC_RELAXED) == 0)
        sched_yield();
    int hung = 0;
    for (int i = 0; i < children && hung < give_up; i++)
        hung += !fork_child(watchdog_s);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(walker, NULL);
    assert_true(visits >= walks * 24000);
    return hung;
}

static void test_storm(void **state) {
    (void)state;
    assert_int_equal(storm(CHILDREN, WATCHDOG_S, 1), 0);
}

/* A fork that comes in the middle of a walk waits until it is through. */
static bool inside, through, forked;
static bool linger(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    if (strstr(module, "libgot_user_now")) {
        __atomic_store_n(&inside, true, __ATOMIC_RELEASE);
        usleep(50000);
        __atomic_store_n(&through, true, __ATOMIC_RELEASE);
    }
    return count(module, hook, bound, context);
}

static void *walk_once(void *hook) {
    hec_got_patch(hook, 1, 0, linger, NULL);
    while (
        !__atomic_load_n(&forked, __ATOMIC_ACQUIRE)) /* a thread that ended and was not joined is a leak in the child */
        sched_yield();
    return NULL;
}

static void test_middle(void **state) {
    (void)state;
    struct hec_got_hook hook = {"got_call", dlsym(got_load("got_library"), "got_call"), (void *)storm};
    got_load("got_user_now");
    pthread_t walker;
    assert_int_equal(pthread_create(&walker, NULL, walk_once, &hook), 0);
    while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
        sched_yield();
    bool well = fork_child(WATCHDOG_S);
    __atomic_store_n(&forked, true, __ATOMIC_RELEASE);
    pthread_join(walker, NULL);
    assert_true(well);
    assert_true(__atomic_load_n(&through, __ATOMIC_ACQUIRE));
}

/* Who forks where the lock cannot be had does not wait for ever, and gives back nothing that is not theirs. */
static bool fork_inside(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    if (visits == 0) {
        hec_got_fork_prepare();
        hec_got_fork_parent();
    }
    return count(module, hook, bound, context);
}

static void *take(void *taken) {
    hec_got_lock();
    __atomic_store_n((bool *)taken, true, __ATOMIC_RELEASE);
    hec_got_unlock();
    return NULL;
}

static void test_bounded(void **state) {
    (void)state;
    struct hec_got_hook hook = {"got_call", dlsym(got_load("got_library"), "got_call"), (void *)storm};
    got_load("got_user_now");
    visits = 0;
    assert_int_equal(hec_got_patch(&hook, 1, 0, fork_inside, NULL), 0);
    assert_true(visits > 0);
    hec_got_lock(); /* was given back, once */
    bool taken = false;
    hec_got_fork_prepare();
    hec_got_fork_parent();
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, take, &taken), 0);
    usleep(20000);
    assert_false(__atomic_load_n(&taken, __ATOMIC_ACQUIRE));
    hec_got_unlock();
    pthread_join(other, NULL);
    assert_true(taken);
}

int main(int argc, char **argv) {
    snprintf(library, sizeof library, "%s/tests/lib/libgot_user_later.so", HEC_BINARY_DIR);
    if (argc > 1 && strcmp(argv[1], "without") == 0) {
        handled = false;
        int children = argc > 2 ? atoi(argv[2]) : 20;
        printf("%d of %d children hang\n", storm(children, 1, children), children);
        return 0;
    }
    alarm(10 * WATCHDOG_S);
    if (pthread_atfork(hec_got_fork_prepare, hec_got_fork_parent, hec_got_fork_child) != 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_storm), cmocka_unit_test(test_middle),
                                       cmocka_unit_test(test_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
