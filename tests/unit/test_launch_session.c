/* A session with no command line around it: what a trial of a comparison will do. */
#include "base/clock.h"
#include "launch/session.h"
#include "unit.h"

#include <signal.h>
#include <unistd.h>

static char folder[] = "/tmp/hec-session-XXXXXX";

struct seen {
    int devices, kinds[HEC_EVENT_COUNT];
    bool simulated;
};

static int device(void *context, const struct hec_device *d) {
    struct seen *seen = context;
    seen->devices++;
    seen->simulated = d->simulated;
    return 0;
}

static int event(void *context, enum hec_event_kind kind, int of, int64_t t_ns, const char *text) {
    struct seen *seen = context;
    (void)of, (void)t_ns, (void)text;
    seen->kinds[kind]++;
    return 0;
}

static struct hec_session_options on_simulated_gpu(char **command, const char *output) {
    struct hec_session_options options = hec_session_defaults();
    options.command = command;
    options.output = output;
    options.simulated = "h200x2";
    options.trace = HEC_TRACE_OFF;
    options.overwrite = true;
    return options;
}

/* Twice in one process, as trials follow each other: the second must find what the first did. */
TEST(test_runs_and_reads_back) {
    char *command[] = {"sh", "-c", "test -n \"$HEC_SOCKET\" && test \"$HEC_KNOBS\" = batch=8 && exit 3", NULL};
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    for (int i = 0; i < 2; i++) {
        struct hec_session_options options = on_simulated_gpu(command, "three.hec");
        struct hec_session *session;
        struct hec_session_result result;
        struct hec_reader *run;
        struct hec_why why;
        struct seen seen = {0};
        int status;
        options.knobs = "batch=8";
        options.units = "samples=64";
        assert_int_equal(hec_session_start(&options, &session, &status, &why), HEC_OK);
        hec_session_wait(session, &result);
        assert_int_equal(result.exit_status, 3);
        assert_int_equal(result.signal, 0);
        assert_true(result.end_ns > result.start_ns && result.start_ns > 0);
        assert_true(result.readable);
        assert_string_equal(result.path, "three.hec");
        assert_string_equal(result.note.text, "");
        assert_int_equal(hec_session_open_run(session, &run, &why), HEC_OK);
        assert_string_equal(hec_reader_meta(run, "exit_code"), "3");
        assert_string_equal(hec_reader_meta(run, "complete"), "1");
        assert_non_null(hec_reader_meta(run, "simulated"));
        assert_string_equal(hec_reader_meta(run, "units"), "samples=64");
        assert_int_equal(hec_reader_devices(run, device, &seen, &why), HEC_OK);
        assert_int_equal(seen.devices, 2);
        assert_true(seen.simulated);
        hec_reader_close(run);
        hec_session_close(session);
        assert_null(getenv("HEC_SIM_WORLD"));
        assert_null(getenv("HEC_SOCKET"));
    }
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < NSIG; number++)
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
}

/* The run is there all the same where the command dies, and so are its events. */
TEST(test_a_command_that_dies) {
    char *command[] = {"sh", "-c", "kill -KILL $$", NULL};
    struct hec_session_options options = on_simulated_gpu(command, "killed.hec");
    struct hec_session *session;
    struct hec_session_result result;
    struct hec_reader *run;
    struct hec_why why;
    struct seen seen = {0};
    int status;
    options.simulated = NULL;
    options.environment = (char *const[]){"PATH=/bin:/usr/bin", NULL};
    assert_int_equal(hec_session_start(&options, &session, &status, &why), HEC_OK);
    hec_session_wait(session, &result);
    assert_int_equal(result.signal, SIGKILL);
    assert_int_equal(result.exit_status, 128 + SIGKILL);
    assert_int_equal(hec_session_open_run(session, &run, &why), HEC_OK);
    assert_int_equal(hec_reader_events(run, event, &seen, &why), HEC_OK);
    assert_int_equal(seen.kinds[HEC_EVENT_STOPPED], 0);
    hec_reader_close(run);
    hec_session_close(session);
}

/* Nothing runs, nothing is left, and the process goes on. */
TEST(test_what_cannot_start) {
    struct hec_session *session = (void *)1;
    struct hec_why why;
    int status;
    char *missing[] = {"hec-no-such-command", NULL}, *folder_itself[] = {folder, NULL}, *yes[] = {"true", NULL};
    struct hec_session_options options = on_simulated_gpu(missing, "none.hec");
    assert_true(hec_session_start(&options, &session, &status, &why) < 0);
    assert_null(session);
    assert_int_equal(status, 127);
    assert_string_equal(why.text, "hec-no-such-command: command not found");

    options = on_simulated_gpu(folder_itself, "none.hec");
    assert_true(hec_session_start(&options, &session, &status, &why) < 0);
    assert_int_equal(status, 126);

    options = on_simulated_gpu(yes, "none.hec");
    options.simulated = "h2000";
    assert_int_equal(hec_session_start(&options, &session, &status, &why), HEC_ERR_USAGE);
    assert_int_equal(status, hec_err_exit_status(HEC_ERR_USAGE));
    assert_non_null(strstr(why.text, "h2000"));

    options = on_simulated_gpu(yes, "no/such/folder/none.hec");
    assert_true(hec_session_start(&options, &session, &status, &why) < 0);
    assert_non_null(strstr(why.text, "no/such/folder/none.hec"));
    assert_int_equal(access("none.hec", F_OK), -1);
}

static int enter(void **state) {
    (void)state;
    setenv("HEC_STATE_DIR", mkdtemp(folder), 1);
    return chdir(folder);
}

static int leave(void **state) {
    (void)state;
    unlink("three.hec");
    unlink("killed.hec");
    return chdir("/") || rmdir(folder);
}

ALL_TESTS(enter, leave)
