/* Trials by real sessions, in place: what each begins with, what it came to, and why it failed. */
#include "act/trials.h"
#include "base/clock.h"
#include "tests/unit/folder.h"

#include <signal.h>

static struct hec_trials *trials;
static struct hec_trial_end end;
static struct hec_why why;
static int measured;
static char levers_of[64]; /* the run that was measured, by its facts */

static int set_up(void **state) {
    int err = folder_make(state);
    setenv("TMPDIR", folder, 1);
    setenv("TORCHINDUCTOR_CACHE_DIR", "/users/own", 1);
    trials = NULL;
    return err;
}
static int tear_down(void **state) {
    hec_trials_close(trials);
    unsetenv("TMPDIR");
    unsetenv("TORCHINDUCTOR_CACHE_DIR");
    rmdir(folder); /* nothing is left in it */
    struct stat status;
    assert_int_equal(stat(folder, &status), -1);
    (void)state;
    return 0;
}
EACH_TEST(set_up, tear_down)

static int try_open(enum hec_caches caches, bool in_place) {
    struct hec_trials_options options = {.session = hec_session_defaults(), .caches = caches, .in_place = in_place};
    options.session.simulated = "h200";
    options.session.trace = HEC_TRACE_OFF;
    options.session.hooks = false;
    return hec_trials_open(&options, &trials, &why);
}

static void open_trials(enum hec_caches caches) {
    if (try_open(caches, true) < 0)
        fail_msg("%s", why.text);
    assert_null(hec_trials_layer(trials));
}

static int measure(void *context, const struct hec_session *session, const struct hec_session_result *result,
                   struct hec_why *said) {
    struct hec_reader *run;
    const struct hec_session_options *options = hec_trials_session(trials);
    const char *name = options->output ? strrchr(options->output, '/') : NULL;
    assert_ptr_equal(context, &measured);
    assert_true(name && strcmp(name, "/trial.hec") == 0 && access(options->output, R_OK) == 0);
    assert_int_equal(strncmp(options->output, folder, strlen(folder)), 0); /* what is thrown away in the end */
    assert_true(options->overwrite && options->tied);
    assert_int_equal(hec_session_open_run(session, &run, said), HEC_OK);
    const char *levers = hec_reader_meta(run, "levers");
    snprintf(levers_of, sizeof levers_of, "%s", levers ? levers : "none");
    hec_reader_close(run);
    measured++;
    return result->exit_status == 9 ? hec_fail(said, HEC_ERR_LIMIT, "nine") : HEC_OK;
}

static int run(const char *script, const struct hec_lever_set *levers) {
    char *command[] = {"sh", "-c", (char *)script, NULL};
    memset(&end, 0xee, sizeof end);
    return hec_trials_run(trials, command, levers, measure, &measured, &end, &why);
}

TEST(what_a_command_came_to) {
    static const struct {
        const char *script;
        int status, signal;
        enum hec_failure failure;
        const char *tail;
    } row[] = {
        {"echo fine", 0, 0, HEC_FAILURE_NONE, "fine\n"},
        {"printf 'a\\000b'", 0, 0, HEC_FAILURE_NONE, "a b"},
        {"true", 0, 0, HEC_FAILURE_NONE, ""},
        {"echo torch.OutOfMemoryError: CUDA out of memory; exit 1", 1, 0, HEC_FAILURE_DEVICE_MEMORY,
         "torch.OutOfMemoryError: CUDA out of memory\n"},
        {"echo CUDA out of memory", 0, 0, HEC_FAILURE_NONE, "CUDA out of memory\n"},
        {"echo no; exit 3", 3, 0, HEC_FAILURE_OTHER, "no\n"},
        {"kill -KILL $$", 137, SIGKILL, HEC_FAILURE_HOST_MEMORY, ""},
    };
    open_trials(HEC_CACHES_USER);
    measured = 0;
    assert_int_equal(run("true", NULL), HEC_OK);
    measured = 0;
    int files = open_files();
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_equal(run(row[i].script, NULL), HEC_OK);
        assert_int_equal(measured, i + 1);
        assert_string_equal(levers_of, "none");
        assert_int_equal(end.exit_status, row[i].status);
        assert_int_equal(end.signal, row[i].signal);
        assert_int_equal(end.failure, row[i].failure);
        assert_int_equal(end.stopped, HEC_STOPPED_NOT);
        assert_int_equal(end.asked, 0);
        assert_string_equal(end.tail, row[i].tail);
        assert_int_equal(hec_trial_failed(&end), row[i].status != 0);
    }
    assert_int_equal(open_files(), files);
    assert_int_equal(run("exit 9", NULL), HEC_ERR_LIMIT); /* what measure returns */
    assert_int_equal(open_files(), files);
    assert_string_equal(why.text, "nine");
}

/* The last of what was printed, and the phrase far above it. */
TEST(long_output) {
    open_trials(HEC_CACHES_USER);
    assert_int_equal(run("echo CUDA out of memory; yes 0123456789abcde | head -n 3000; echo END; exit 1", NULL),
                     HEC_OK);
    assert_int_equal(end.failure, HEC_FAILURE_DEVICE_MEMORY);
    assert_int_equal(strlen(end.tail), HEC_TRIAL_TAIL - 1);
    assert_string_equal(end.tail + HEC_TRIAL_TAIL - 1 - 8, "cde\nEND\n");
    assert_int_equal(run("echo CUDA out of memory; yes 0123456789abcde | head -n 5000; exit 1", NULL), HEC_OK);
    assert_int_equal(end.failure, HEC_FAILURE_OTHER); /* beyond what is read */
}

TEST(a_trial_takes_as_long_as_its_command) {
    open_trials(HEC_CACHES_USER);
    int64_t before = hec_clock_mono_ns();
    assert_int_equal(run("sleep 0.1", NULL), HEC_OK);
    double passed = (double)(hec_clock_mono_ns() - before) / HEC_NS_PER_S;
    assert_true(end.seconds >= 0.1 && end.seconds <= passed);
    hec_trials_session(trials)->stop.after_ns = HEC_NS_PER_S / 20;
    assert_int_equal(run("exec sleep 600", NULL), HEC_OK);
    assert_int_equal(end.stopped, HEC_STOPPED_TIME);
    assert_false(hec_trial_failed(&end));
    assert_int_equal(end.failure, HEC_FAILURE_NONE);
}

/* Compile caches: one set for all trials, a fresh one each, or the user's own. */
TEST(caches_are_those_that_were_asked_for) {
    static const struct {
        enum hec_caches caches;
        bool own, kept;
    } row[] = {{HEC_CACHES_TRIALS, false, true}, {HEC_CACHES_FRESH, false, false}, {HEC_CACHES_USER, true, false}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        open_trials(row[i].caches);
        for (int trial = 0; trial < 3; trial++) {
            assert_int_equal(run("test \"$HEC_HOOKS_LOSSES\" = all || exit 5; echo $TORCHINDUCTOR_CACHE_DIR", NULL),
                             HEC_OK);
            assert_int_equal(end.exit_status, 0);
            assert_int_equal(strcmp(end.tail, "/users/own\n") == 0, row[i].own);
            if (row[i].own)
                continue;
            assert_int_equal(strncmp(end.tail, folder, strlen(folder)), 0);
            assert_int_equal(run("cd $TORCHINDUCTOR_CACHE_DIR && ls | wc -l && touch made", NULL), HEC_OK);
            assert_int_equal(end.exit_status, 0);
            assert_int_equal(atoi(end.tail), row[i].kept && trial > 0);
        }
        hec_trials_close(trials);
        trials = NULL;
    }
    assert_int_equal(hec_caches_find("fresh"), HEC_CACHES_FRESH);
    assert_int_equal(hec_caches_find("trials"), HEC_CACHES_TRIALS);
    assert_int_equal(hec_caches_find("user"), HEC_CACHES_USER);
    assert_int_equal(hec_caches_find("users"), HEC_CACHES_COUNT);
}

/* In a layer each trial finds the files as the first one did; of caches, those of all trials are kept, and fresh ones are not. */
TEST(files_are_those_of_the_first_trial) {
    static const char script[] = "test ! -e ran && echo x >ran && test -d \"$TORCHINDUCTOR_CACHE_DIR\" && "
                                 "ls $TORCHINDUCTOR_CACHE_DIR | wc -l && touch $TORCHINDUCTOR_CACHE_DIR/$$";
    for (int fresh = 0; fresh < 2; fresh++) {
        int err = try_open(fresh ? HEC_CACHES_FRESH : HEC_CACHES_TRIALS, false);
        if (err == HEC_ERR_UNSUPPORTED || err == HEC_ERR_PERMISSION)
            skip(); /* no namespaces here */
        if (err < 0)
            fail_msg("%s", why.text);
        assert_non_null(hec_trials_layer(trials));
        for (int trial = 0; trial < 3; trial++) {
            assert_int_equal(run(script, NULL), HEC_OK);
            assert_int_equal(end.exit_status, 0);
            assert_int_equal(atoi(end.tail), fresh ? 0 : trial);
        }
        hec_trials_close(trials);
        trials = NULL;
    }
    assert_int_equal(access("ran", F_OK), -1);
}

TEST(levers_are_of_one_trial) {
    struct hec_lever_set levers = {0};
    assert_int_equal(hec_lever_set_add(&levers, "threads=3", &why), HEC_OK);
    open_trials(HEC_CACHES_USER);
    assert_int_equal(run("echo $OMP_NUM_THREADS", &levers), HEC_OK);
    assert_string_equal(end.tail, "3\n");
    assert_string_equal(levers_of, "threads=3");
    assert_int_equal(run("echo $OMP_NUM_THREADS", NULL), HEC_OK);
    assert_string_equal(end.tail, "\n");
    assert_string_equal(levers_of, "none");
}

TEST(where_trials_cannot_be_kept) {
    struct hec_trials_options options = {.session = hec_session_defaults(), .in_place = true};
    setenv("TMPDIR", "/nowhere/at/all", 1);
    trials = (void *)1;
    assert_true(hec_trials_open(&options, &trials, &why) < 0);
    assert_null(trials);
    assert_true(why.text[0] != '\0');
}

/* Nothing is measured of it, and the next one runs. */
TEST(a_command_that_cannot_be_started) {
    char *command[] = {"/nowhere/program", NULL};
    open_trials(HEC_CACHES_USER);
    assert_int_equal(run("true", NULL), HEC_OK);
    measured = 0;
    why.text[0] = '\0';
    int files = open_files();
    assert_true(hec_trials_run(trials, command, NULL, measure, &measured, &end, &why) < 0);
    assert_non_null(strstr(why.text, "/nowhere/program"));
    assert_int_equal(end.exit_status, 127); /* as a shell says it */
    assert_int_equal(measured, 0);
    assert_int_equal(open_files(), files);
    assert_int_equal(run("true", NULL), HEC_OK);
    assert_int_equal(measured, 1);
}
