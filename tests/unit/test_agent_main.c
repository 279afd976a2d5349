/* The agent as a whole on parts that are made up: what it asks of each, when and with what, and what it shows. */
#include "tests/unit/agent_parts.h"

static void assert_told(const char *expected) {
    if (strcmp(told, expected) != 0)
        fail_msg("\n%s\nnot\n%s", told, expected);
}
static void assert_logged(const char *text) {
    if (!strstr(logged, text))
        fail_msg("\"%s\" is not in: %s", text, logged);
}

/* ---- from the beginning to the end ---- */

static void see_beginning(void) {
    struct sigaction pipe_action, size_action;
    sigaction(SIGPIPE, NULL, &pipe_action);
    sigaction(SIGXFSZ, NULL, &size_action);
    assert_true(pipe_action.sa_handler == SIG_IGN && size_action.sa_handler == SIG_IGN);
    assert_int_equal(node->interval_ns, 2 * S);
    assert_int_equal(node->lag_ns, 0);
    assert_int_equal(maker.age_ns, 2 * S);
    assert_null(web);
}

TEST(parts_begin_and_end_in_order) {
    events[0] = (struct event){.at_s = START + 0.5, .act = see_beginning};
    end_at(START + 1);
    run(0);
    assert_told("kubelet() listen([::1]:0) serve names(" HEC_POD_NAMES_ACCOUNT ") watch() unwatch unserve close-1 "
                "unidentity unkubelet unnames unhistory ");
    assert_string_equal(logged, "2 agent: http://here/metrics\n");
    assert_int_equal(level, HEC_LOG_INFO);
    assert_ptr_equal(asked, &one_names);
}

static void see_node_of_all(void) {
    assert_string_equal(node->jobs.folder, "/map");
    assert_true(node->jobs.expected);
    assert_int_equal(node->lag_ns, 30 * S + 2 * 2 * S); /* a page is up to two intervals old */
    assert_int_equal(web->user_count, 1);
    assert_string_equal(web->users[0].name, "alice");
}

TEST(with_all_that_may_be_asked_for) {
    static const char users[] =
        "basic_auth_users:\n  alice: $2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n";
    options.scrape_ns = 30 * S;
    options.state_dir = "/kept";
    options.web_config = folder_write("web.yml", users, sizeof users - 1);
    options.kubelet = "/k.sock";
    options.account = "/account";
    options.devices = "g:0,2";
    options.job_map = "/map";
    options.otlp = "http://collector";
    options.nvml_path = "/nvml";
    options.simulated = "h200x2";
    options.jobs = "/jobs.sock";
    options.window_s = 3;
    options.window_every_s = 70;
    options.verbose = options.dashes = options.all_series = options.no_hostname = true;
    events[0] = (struct event){.at_s = START + 0.1, .act = see_node_of_all};
    end_at(START + 0.2);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b", 1);
    char expected[1024];
    snprintf(expected, sizeof expected,
             "kubelet(/k.sock) state(/kept,%d) load listen([::1]:0) jobs(/jobs.sock) serve push(http://collector) "
             "names(/account) watch(/nvml) j1000.0 unpush unwatch unserve close5 unjobs unidentity unkubelet unnames "
             "unhistory ",
             (int)geteuid());
    run(0);
    assert_told(expected);
    assert_int_equal(level, HEC_LOG_DEBUG);
    assert_string_equal(jobs.socket, "/jobs.sock");
    assert_string_equal(jobs.simulated, "h200x2");
    assert_string_equal(jobs.nvml_path, "/nvml");
    assert_near(jobs.window_s, 3, 0);
    assert_near(jobs.period_s, 70, 0);
    assert_near(jobs.cpu_share, hec_jobs_defaults().cpu_share, 0);
    assert_string_equal(push.headers, "a=b");
    assert_int_equal(push.interval_ns, 60 * S); /* OpenTelemetry's default */
}

/* Where the map of jobs is: the usual place, which need not be there; of a simulated machine none. */
static const char *map_folder;
static void see_map(void) {
    map_folder = node->jobs.folder;
    assert_false(node->jobs.expected);
}
TEST(the_map_of_jobs_has_a_usual_place) {
    for (int simulated = 0; simulated < 2; simulated++) {
        passed = 0;
        memset(events, 0, sizeof events);
        options.simulated = simulated ? "h200" : NULL;
        events[0] = (struct event){.at_s = (double)now_ns / S + 0.1, .act = see_map};
        end_at((double)now_ns / S + 0.2);
        run(0);
        if (simulated)
            assert_null(map_folder);
        else
            assert_string_equal(map_folder, HEC_JOB_MAP_FOLDER);
    }
}

/* ---- turns of its loop ---- */

TEST(a_turn_each_interval) {
    told_ticks = ready_now = true;
    end_at(START + 5);
    run(0);
    assert_non_null(strstr(told, "watch() n1000.0 history w1000.0 ready t1000.0 n1002.0 history w1002.0 ready t1002.0 "
                                 "n1004.0 history w1004.0 ready t1004.0 unwatch"));
    assert_int_equal(stale_ns, 30 * S);
    assert_int_equal(now_ns, (START + 5) * S);
}

static void be_slow(void) {
    slow_ns = 5 * S;
}

/* Turns that were missed are left out, and it takes an interval from then; until something is seen it is not ready. */
TEST(a_turn_that_takes_long) {
    told_ticks = true;
    options.interval_ns = 7 * S;
    events[0] = (struct event){.at_s = START + 8, .act = be_slow}; /* in the third turn, to 1019: in time */
    events[1] = (struct event){.at_s = START + 22, .act = be_slow};
    end_at(START + 60);
    slow_ns = 9 * S; /* in the first one, to 1009 */
    events[0].at_s = START + 10;
    run(0);
    assert_non_null(strstr(told, " n1000.0 history w1000.0 t1000.0 n1016.0 history w1016.0 t1016.0 n1023.0 history "
                                 "w1023.0 t1023.0 n1030.0 history w1030.0 t1030.0 n1037.0"));
    assert_null(strstr(told, "ready"));
    assert_int_equal(stale_ns, 35 * S); /* five of its turns */
}

TEST(the_state_is_synced_once_a_minute) {
    told_ticks = true;
    options.state_dir = "/kept";
    options.interval_ns = 29 * S;
    end_at(START + 146);
    run(0);
    /* at 1087 s, which is the first turn after a minute, at 1174 s, if it came so far, and at the end */
    assert_non_null(strstr(told, "w1058.0 t1058.0 n1087.0 history w1087.0 sync save t1087.0 n1116.0"));
    assert_non_null(strstr(told, "w1145.0 t1145.0 unwatch unserve sync save close5"));
    told[0] = '\0';
    passed = 0;
    options.interval_ns = 30 * S;
    memset(events, 0, sizeof events);
    end_at((double)now_ns / S + 70);
    run(0);
    assert_non_null(strstr(told, "w1206.0 sync save t1206.0 unwatch"));
}

static void break_disk(void) {
    fails = 'S';
    fail_err = HEC_ERR_FAILED;
}
static void mend_disk(void) {
    fails = 0;
}
static void scrape(void) {
    maker.make(maker.context, HEC_HTTP_PROMETHEUS);
}

TEST(a_state_that_cannot_be_kept_is_said_once) {
    options.state_dir = "/kept";
    events[0] = (struct event){.at_s = START + 1, .act = break_disk};
    events[1] = (struct event){.at_s = START + 3, .act = scrape};
    events[2] = (struct event){.at_s = START + 5, .act = scrape};
    events[3] = (struct event){.at_s = START + 6, .act = mend_disk};
    events[4] = (struct event){.at_s = START + 7, .act = scrape};
    events[5] = (struct event){.at_s = START + 9, .act = scrape};
    end_at(START + 10);
    run(0);
    assert_string_equal(logged,
                        "2 agent: http://here/metrics\n"
                        "1 the state cannot be kept: operation failed; counters go on, and are lost at the end\n"
                        "2 the state is kept again\n");
    assert_int_equal(published, 4); /* all the same */
}

TEST(no_state_is_no_failure) {
    events[0] = (struct event){.at_s = START + 1, .act = scrape};
    end_at(START + 2);
    run(0);
    assert_string_equal(logged, "2 agent: http://here/metrics\n");
    assert_near(self.state_saved, -1, 0);
}

TEST(a_state_that_cannot_be_read) {
    static const struct {
        int err;
        bool warned;
    } row[] = {{HEC_ERR_NOTFOUND, false}, {HEC_ERR_FAILED, true}};
    for (size_t i = 0; i < 2; i++) {
        logged[0] = '\0';
        passed = 0;
        memset(events, 0, sizeof events);
        options.state_dir = "/kept";
        fails = 'L';
        fail_err = row[i].err;
        end_at((double)now_ns / S + 1);
        run(0);
        assert_int_equal(strstr(logged, "1 part L is broken: counters begin at 0\n") != NULL, row[i].warned);
    }
}

/* ---- jobs ---- */

TEST(jobs_are_polled_when_due_and_when_something_comes) {
    options.jobs = "/jobs.sock";
    events[0] = (struct event){.at_s = START + 1.2, .job = true};
    end_at(START + 2.2);
    run(0);
    assert_non_null(strstr(told, "watch() j1000.0 j1000.5 j1001.0 j1001.2 j1001.7 unwatch"));
}

/* ---- signals ---- */

static void hang_up_and_end(void) {
    raise(SIGHUP);
    raise(SIGINT);
}

TEST(signals_end_it_or_reload) {
    events[0] = (struct event){.at_s = START + 1, .signal = SIGHUP};
    events[1] = (struct event){.at_s = START + 3, .signal = SIGINT};
    run(0);
    assert_int_equal(now_ns, (START + 3) * S);
    assert_string_equal(logged, "2 agent: http://here/metrics\n2 agent: reloaded\n");
    passed = 0;
    logged[0] = '\0';
    memset(events, 0, sizeof events);
    events[0] = (struct event){.at_s = START + 4, .act = hang_up_and_end, .signal = SIGHUP}; /* both at once */
    run(0);
    assert_int_equal(passed, 1);
}

static void two_fields(void) {
    folder_text("fields", "DCGM_FI_DEV_GPU_TEMP, gauge, t\nDCGM_FI_DEV_POWER_USAGE, gauge, p\n");
    folder_text("web.yml", "basic_auth_users:\n  alice: %s\n  bob: %s\n",
                "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e",
                "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e");
}
static void bad_fields(void) {
    folder_text("fields", "no field\n");
}
static void bad_users(void) {
    folder_text("fields", "DCGM_FI_DEV_GPU_TEMP, gauge, t\n");
    folder_text("web.yml", "basic_auth_users: 5\n");
}

TEST(what_it_was_started_with_is_read_again) {
    options.fields = strdup(in_folder("fields"));
    options.web_config = strdup(in_folder("web.yml"));
    folder_text("fields", "DCGM_FI_DEV_GPU_TEMP, gauge, t\n");
    folder_text("web.yml", "basic_auth_users:\n");
    const struct event script[] = {{START + 0.2, 0, false, scrape},      {START + 0.3, 0, false, two_fields},
                                   {START + 0.4, SIGHUP, false, scrape}, {START + 0.5, 0, false, scrape},
                                   {START + 0.6, 0, false, bad_fields},  {START + 0.7, SIGHUP, false, NULL},
                                   {START + 0.8, 0, false, scrape},      {START + 0.9, SIGTERM, false, NULL}};
    memcpy(events, script, sizeof script);
    run(0);
    assert_int_equal(fields_shown, 2); /* a file that is no good leaves what was */
    assert_non_null(strstr(told, "users(2)"));
    assert_logged("1 agent: not reloaded: ");
    assert_logged("/fields: line 1: ");
    assert_logged("2 agent: reloaded\n");
    assert_null(strstr(strstr(logged, "not reloaded"), "agent: reloaded"));
    bad_users();
    two_fields();
    passed = 0;
    now_ns = START * S;
    memset(events, 0, sizeof events);
    logged[0] = told[0] = '\0';
    events[0] = (struct event){.at_s = START + 1, .act = bad_users, .signal = SIGHUP};
    events[1] = (struct event){.at_s = START + 1.5, .act = scrape};
    end_at(START + 1.6);
    run(0);
    assert_logged("1 agent: not reloaded: ");
    assert_logged("/web.yml: not a mapping");
    assert_null(strstr(logged, "agent: reloaded"));
    assert_null(strstr(told, "users("));
    assert_int_equal(fields_shown, 1); /* each of the two for itself */
    free((char *)(uintptr_t)options.fields);
    free((char *)(uintptr_t)options.web_config);
}

/* ---- pages ---- */

static void each_page(void) {
    for (int which = 0; which < HEC_HTTP_PAGES; which++)
        maker.make(maker.context, (enum hec_http_page)which);
}

TEST(each_page_is_what_it_is_called) {
    told_ticks = true;
    options.state_dir = "/kept";
    options.no_hostname = true;
    events[0] = (struct event){.at_s = START + 1, .act = each_page};
    end_at(START + 1.5);
    run(0);
    assert_non_null(strstr(told, " n1001.0 page0 save published(0:figures) n1001.0 page1 save published(1:figures) "
                                 "n1001.0 page0now save published(2:figures) n1001.0 html save published(3:) "
                                 "n1001.0 live save published(4:{}) unwatch"));
    assert_int_equal(made_ns, (START + 1) * S);
}

static void failing_page(void) {
    page_err = HEC_ERR_FAILED;
    scrape();
    page_err = HEC_OK;
}

TEST(a_page_that_fails_is_not_shown) {
    events[0] = (struct event){.at_s = START + 1, .act = failing_page};
    end_at(START + 1.5);
    run(0);
    assert_int_equal(published, 0);
}

static int64_t kib_of(const char *name) {
    char text[4096], line[64];
    int64_t kib = -1;
    text[file_read("/proc/self/status", text, sizeof text - 1)] = '\0';
    snprintf(line, sizeof line, "%s: %%ld", name);
    const char *at = strstr(text, name);
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(name) + 1, "%ld", &kib), 1);
    return kib;
}

static int64_t virtual_kib;
static void see_self(void) {
    node->dropped_processes = 9;
    node->dropped_devices = 10;
    node->jobs.left_out = 12;
    node->jobs.due_ns = INT64_MAX;
    watched->abandoned = 13;
    state->failed = 8;
    virtual_kib = kib_of("VmSize");
    maker.make(maker.context, HEC_HTTP_OPENMETRICS);
}

static void assert_drops(const char *const *what, const uint64_t *count, int most) {
    assert_int_equal(self.dropped_count, most);
    for (int i = 0; i < most; i++) {
        assert_string_equal(self.dropped[i].what, what[i]);
        assert_int_equal(self.dropped[i].count, count[i]);
    }
}

TEST(what_it_says_of_itself) {
    static const char *const what[] = {"http_connections",
                                       "http_requests",
                                       "http_unauthorized",
                                       "state_writes",
                                       "processes",
                                       "devices",
                                       "pods",
                                       "jobs_of_the_map",
                                       "driver_threads",
                                       "otlp_pages",
                                       "job_rings",
                                       "job_connections",
                                       "job_requests",
                                       "job_windows"};
    static const uint64_t count[] = {3, 1, 2, 8, 9, 10, 11, 12, 13, 6, 21, 22, 23, 24};
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    for (int all = 0; all < 2; all++) {
        options.state_dir = "/kept";
        options.jobs = all ? "/jobs.sock" : NULL;
        options.otlp = all ? "http://x" : NULL;
        options.dashes = options.all_series = all;
        options.devices = all ? "g" : NULL;
        no_limit = all;
        passed = 0;
        now_ns = (START + 50 * all) * S;
        memset(events, 0, sizeof events);
        events[0] = (struct event){.at_s = START + 50 * all + 1, .act = see_self};
        end_at(START + 50 * all + 1.5);
        run(0);
        assert_drops(what, count, all ? 14 : 9);
        assert_near(self.process.cpu_seconds, 7.375, 1e-12);
        assert_near(self.cpu_seconds, 7.375 + (all ? 0.5625 : 0), 1e-12);
        assert_near(self.resident_bytes, self.process.resident_bytes, 0);
        assert_true(self.process.resident_bytes > 1e6 && self.process.resident_bytes < self.process.virtual_bytes);
        assert_near(self.process.virtual_bytes / 1024, (double)virtual_kib, 0.01 * (double)virtual_kib);
        assert_near(self.process.open_fds, open_fds, 0);
        assert_near(self.process.max_fds, all ? -1 : 777, 0);
        assert_near(self.process.started_s, 1700000000.25 + START + 50 * all, 1e-6);
        assert_near(self.state_saved, 1, 0);
        assert_string_equal(page.hostname_label, "Hostname");
        assert_int_equal(page.dashes, all);
        assert_int_equal(page.all_series, all);
        assert_int_equal(page.causes != NULL, all);
        assert_int_equal(page.devices.instances, !all);
        assert_int_equal(page.devices.gpus, UINT64_MAX);
        assert_string_equal(page.hostname, host);
        /* a thread that hangs in a driver still refers to the node */
        assert_null(strstr(told, "unkubelet"));
        hec_node_free(node);
        told[0] = '\0';
    }
}

static void push_once(void) {
    struct hec_buf out;
    hec_buf_init(&out, 100);
    assert_int_equal(push.make(push.context, &out), HEC_OK);
    assert_string_equal(hec_buf_text(&out), "figures");
    page_err = HEC_ERR_LIMIT;
    assert_int_equal(push.make(push.context, &out), HEC_ERR_LIMIT);
    hec_buf_free(&out);
}

TEST(pages_are_pushed) {
    static const struct {
        const char *interval;
        int64_t ms; /* 0: it is refused */
    } row[] = {{"100", 100}, {"86400000", 86400000}, {"99", 0}, {"86400001", 0}, {"", 0}, {"1000ms", 0}, {"x", 0},
               {"-5", 0},    {"5000", 5000}};
    options.otlp = "http://collector";
    options.state_dir = "/kept";
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        setenv("OTEL_METRIC_EXPORT_INTERVAL", row[i].interval, 1);
        passed = page_err = 0;
        memset(events, 0, sizeof events);
        told[0] = logged[0] = '\0';
        told_ticks = true;
        double at_s = (double)now_ns / S;
        events[0] = (struct event){.at_s = at_s + 0.5, .act = push_once};
        end_at(at_s + 1);
        run(row[i].ms ? 0 : 2);
        if (!row[i].ms) {
            assert_logged("0 agent: OTEL_METRIC_EXPORT_INTERVAL is no number of milliseconds from 100 on");
            continue;
        }
        assert_int_equal(push.interval_ns, row[i].ms * HEC_NS_PER_MS);
        assert_null(push.headers);
        assert_non_null(strstr(told, "page2 save n"));
        assert_non_null(strstr(told, "page2 save unpush"));
        assert_int_equal(published, 0);
    }
}

/* ---- fields of the file that devices do not give ---- */

static void some_devices(void) {
    absent_of = HEC_VENDOR_DEVICES_MAX + 3;
}

TEST(absent_fields_are_said_once) {
    options.fields = strdup(in_folder("fields"));
    folder_text("fields", "DCGM_FI_DEV_FAN_SPEED, gauge, f\nDCGM_FI_NEVER_HEARD_OF, gauge, n\n");
    events[0] = (struct event){.at_s = START + 11, .act = some_devices};
    end_at(START + 60);
    run(0);
    char last[64];
    /* three intervals and 3 s after the start, and again, as there was no device */
    snprintf(last, sizeof last, "absent%d@1010.0 ", HEC_DEVICE_MAX - 1);
    const char *at = strstr(told, "absent0@1010.0 ");
    assert_non_null(at);
    assert_true(strncmp(at + strlen("absent0@1010.0 "), last, strlen(last)) == 0);
    assert_null(strstr(told, "absent0@1008.0"));
    at = strstr(told, "absent0@1020.0 ");
    assert_non_null(at);
    assert_null(strstr(at + 1, "absent0"));
    assert_null(strstr(told, "absent0@1012.0"));
    assert_logged("does not give these fields, which are absent: DCGM_FI_DEV_FAN_SPEED\n");
    assert_logged(": GPU 3 does not");
    assert_logged("hec does not know 1 of its fields, which are absent: DCGM_FI_NEVER_HEARD_OF\n");
    free((char *)(uintptr_t)options.fields);
}

TEST(without_a_file_of_fields_nothing_is_absent) {
    events[0] = (struct event){.at_s = START + 1, .act = scrape};
    end_at(START + 60);
    absent_of = 0;
    run(0);
    assert_null(strstr(told, "absent"));
    int usual = fields_shown;
    assert_in_range(usual, 10, 60);
    for (int more = 0; more < 2; more++) {
        options.all_series = !more;
        options.old_names = more;
        passed = 0;
        memset(events, 0, sizeof events);
        events[0] = (struct event){.at_s = (double)now_ns / S + 1, .act = scrape};
        end_at((double)now_ns / S + 2);
        run(0);
        assert_true(fields_shown > usual);
    }
}

/* ---- what fails ---- */

TEST(a_part_that_fails_ends_it) {
    static const struct {
        int part, err, status;
        const char *says, *ends; /* and what is not begun */
    } row[] = {
        {'k', HEC_ERR_LIMIT, 65, "/k.sock: not a path of a socket",
         "kubelet(/k.sock) unwatch close-1 unidentity unhistory "},
        {'s', HEC_ERR_FAILED, 1, "part s is broken", " unwatch close-1 unidentity unkubelet unhistory "},
        {'l', HEC_ERR_FAILED, 1, "part l is broken", "listen([::1]:0) unwatch close5 unidentity unkubelet unhistory "},
        {'j', HEC_ERR_FAILED, 1, "part j is broken", "jobs(/j) unwatch close5 unidentity unkubelet unhistory "},
        {'h', HEC_ERR_FAILED, 1, "part h is broken", "serve unwatch close5 unjobs unidentity unkubelet unhistory "},
        {'p', HEC_ERR_UNSUPPORTED, 69, "part p is broken",
         "push(http://x) unwatch unserve close5 unjobs unidentity unkubelet unhistory "},
    };
    options.kubelet = "/k.sock";
    options.state_dir = "/kept";
    options.jobs = "/j";
    options.otlp = "http://x";
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char text[128];
        told[0] = logged[0] = '\0';
        fails = row[i].part;
        fail_err = row[i].err;
        node = NULL;
        watched = NULL;
        int got = hec_agent_main(&options);
        if (got != row[i].status)
            fail_msg("%c: %d", row[i].part, got);
        snprintf(text, sizeof text, "0 agent: %s\n", row[i].says);
        assert_string_equal(logged, text);
        const char *end = strstr(told, "unwatch?");
        if (end)
            memmove(told + (end - told) + 7, end + 8, strlen(end + 8) + 1);
        if (strlen(told) < strlen(row[i].ends) || strcmp(told + strlen(told) - strlen(row[i].ends), row[i].ends) != 0)
            fail_msg("%c: %s", row[i].part, told);
        assert_int_equal(open_files(), files_before);
    }
}

TEST(what_it_is_told_wrongly) {
    static const struct {
        const char *fields, *web, *devices, *user;
        int status;
        const char *says;
    } row[] = {
        {"/nowhere/f", NULL, NULL, NULL, 66, "cannot open /nowhere/f: No such file"},
        {NULL, "/nowhere/w", NULL, NULL, 66, "cannot open /nowhere/w"},
        {NULL, NULL, "x", NULL, 2, "-d takes"},
        {NULL, NULL, NULL, "no-such-user-here", 2, "there is no user \"no-such-user-here\""},
    };
    options.state_dir = "/kept";
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        logged[0] = told[0] = '\0';
        options.fields = row[i].fields;
        options.web_config = row[i].web;
        options.devices = row[i].devices;
        options.user = row[i].user;
        run(row[i].status);
        assert_logged(row[i].says);
        assert_null(strstr(told, "listen"));
        assert_null(strstr(told, "state("));
    }
    logged[0] = '\0';
    options = (struct hec_agent_options){.listen = "0", .interval_ns = S, .no_sandbox = true};
    options.fields = in_folder("long");
    char *text = malloc((1 << 20) + 1);
    memset(text, '#', (1 << 20) + 1);
    folder_write("long", text, (1 << 20) + 1);
    run(65);
    assert_logged("/long is no plain file of at most 1048576 bytes");
    logged[0] = '\0';
    folder_write("long", text, 1 << 20); /* one long comment */
    free(text);
    options.fields = in_folder("long");
    end_at((double)now_ns / S + 1);
    run(0);
}

/* Without /proc, or an account of Kubernetes, it goes on; an account that was named is missed. */
TEST(what_it_can_do_without) {
    static const struct {
        int part, err;
        const char *account, *says; /* NULL: nothing */
    } row[] = {{'i', HEC_ERR_FAILED, NULL, "1 /proc cannot be read: joules are nobody's\n"},
               {'n', HEC_ERR_NOTFOUND, NULL, NULL},
               {'n', HEC_ERR_NOTFOUND, "/a", "1 names of pods are not asked of the API server: part n is broken\n"},
               {'n', HEC_ERR_FAILED, NULL, "1 names of pods are not asked of the API server: part n is broken\n"}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char expected[256];
        logged[0] = '\0';
        passed = 0;
        memset(events, 0, sizeof events);
        options.account = row[i].account;
        fails = row[i].part;
        fail_err = row[i].err;
        asked = row[i].part == 'n' ? (struct hec_pod_names *)&one_push : NULL;
        node = NULL;
        end_at((double)now_ns / S + 1);
        run(0);
        assert_null(asked);
        snprintf(expected, sizeof expected, "%s2 agent: http://here/metrics\n", row[i].says ? row[i].says : "");
        assert_string_equal(logged, expected);
    }
}

/* The folder of the state is the user's whom the agent becomes; given to him where that is about to happen. */
TEST(the_state_is_of_the_user) {
    options.user = "daemon";
    options.state_dir = "/kept";
    end_at(START + 1);
    run(0);
    assert_non_null(strstr(told, "state(/kept,1) load"));
}
