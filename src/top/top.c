#include "top/top.h"

#include "agent/watch.h"
#include "base/clock.h"
#include "base/log.h"
#include "top/json.h"
#include "top/layout.h"
#include "top/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define OPEN_NS (60 * HEC_NS_PER_S) /* to wait for a driver: eight devices that were asleep take 10 s */
#define LISTED_NS                                                                                                      \
    (5 * HEC_NS_PER_S) /* a driver that lists no processes, or says no watts, has none after that either */
#define WASTE_TICKS 8  /* intervals before the first lines of who wastes: a verdict takes several readings */
#define FIRST_NS (200 * HEC_NS_PER_MS) /* until devices are there, mostly: then the screen is drawn again */
#define TEXT_MAX (16u << 20)
#define LINE_COLUMNS 160 /* of lines that go to no terminal */

struct top {
    const struct hec_top_options *options;
    struct hec_node *node;
    struct hec_watch watch;
    struct hec_top_state state;
    struct hec_top_view view;
    int signals, status;
    bool utf8, done;
};

/* ---- what is written as lines ---- */

static void write_text(struct top *top, struct hec_buf *text, int err) {
    if (err == HEC_OK && (fputs(hec_buf_text(text), stdout) < 0 || fflush(stdout) != 0)) {
        if (errno != EPIPE) /* a reader that has seen enough */
            hec_error("top: standard output: %s", strerror(errno));
        err = HEC_ERR_IO;
    } else if (err < 0) {
        hec_error("top: %s", hec_err_text(err));
    }
    if (err < 0) {
        top->status = hec_err_exit_status(err);
        top->done = true;
    }
}

static void print_snapshot(struct top *top) {
    struct hec_buf text;
    struct hec_sheet sheet;
    int columns = top->options->columns > 0 ? top->options->columns : LINE_COLUMNS;
    hec_buf_init(&text, TEXT_MAX);
    int err = top->options->json ? hec_top_json(&top->state, &top->view, &text) : HEC_OK;
    if (!top->options->json &&
        (err = hec_sheet_init(&sheet, hec_top_rows(&top->state), columns, top->utf8)) == HEC_OK) {
        hec_top_layout(&top->state, &top->view, &sheet);
        hec_sheet_print(&sheet, &text);
        hec_sheet_free(&sheet);
        err = hec_buf_error(&text);
    }
    write_text(top, &text, err);
    hec_buf_free(&text);
}

/* ---- the screen ---- */

static void draw(struct top *top) {
    struct hec_sheet sheet;
    int rows, columns;
    hec_screen_size(&rows, &columns);
    if (hec_sheet_init(&sheet, rows, columns, top->utf8) < 0)
        return;
    hec_top_layout(&top->state, &top->view, &sheet);
    hec_screen_draw(&sheet);
    hec_sheet_free(&sheet);
}

static void take_keys(struct top *top) {
    bool changed = false;
    for (int key = hec_screen_key(); key >= 0; key = hec_screen_key())
        changed |= hec_top_key(&top->view, key);
    top->done |= top->view.quit;
    if (changed && !top->done)
        draw(top);
}

/* ---- time and signals ---- */

static void take_signal(struct top *top, bool screen) {
    struct signalfd_siginfo info;
    if (read(top->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    int number = (int)info.ssi_signo;
    if (number == SIGTSTP)
        hec_screen_stop();
    else if (number == SIGCONT)
        hec_screen_again();
    else if (number == SIGWINCH)
        hec_screen_resized();
    else
        top->done = true;
    if (screen && !top->done)
        draw(top);
}

/* Until then, or until it is to end; signals and keys meanwhile. */
static void wait_until(struct top *top, int64_t due_ns, bool screen) {
    for (int64_t now_ns = hec_clock_mono_ns(); now_ns < due_ns && !top->done; now_ns = hec_clock_mono_ns()) {
        struct timespec wait = {(due_ns - now_ns) / HEC_NS_PER_S, (due_ns - now_ns) % HEC_NS_PER_S};
        struct pollfd fds[] = {{.fd = top->signals, .events = POLLIN},
                               {.fd = screen ? STDIN_FILENO : -1, .events = POLLIN}};
        if (ppoll(fds, 2, &wait, NULL) <= 0)
            continue;
        if (fds[0].revents)
            take_signal(top, screen);
        else if (fds[1].revents & POLLIN)
            take_keys(top);
        else
            top->done = true; /* the terminal is gone */
        if (fds[1].revents & (POLLHUP | POLLERR))
            top->done = true;
    }
}

static void tick(struct top *top) {
    int64_t now_ns = hec_clock_mono_ns();
    hec_node_tick(top->node, now_ns);
    hec_watch_poll(&top->watch, now_ns);
    if (!top->view.paused)
        hec_top_take(&top->state, top->node, now_ns);
}

static void run_screen(struct top *top) {
    int64_t due_ns = hec_clock_mono_ns() + FIRST_NS;
    draw(top);
    while (!top->done) {
        wait_until(top, due_ns, true);
        if (top->done)
            return;
        tick(top);
        draw(top);
        int64_t now_ns = hec_clock_mono_ns();
        due_ns += top->options->interval_ns;
        if (due_ns < now_ns)
            due_ns = now_ns + top->options->interval_ns;
    }
}

static bool has_watts(const struct hec_top_state *state) {
    bool has = true;
    for (int i = 0; i < state->device_count; i++)
        has &= !state->devices[i].up || !isnan(state->devices[i].power_w);
    return has;
}

/* Rates need two readings, so the first lines come after one interval and a half; causes need more. On a busy machine processes may not
 * be listed by then, nor every device have been read: they are waited for. */
static void run_lines(struct top *top) {
    int64_t interval_ns = top->options->interval_ns, due_ns = hec_clock_mono_ns() + OPEN_NS;
    int left = top->options->waste ? WASTE_TICKS : 1;
    while (!top->done && hec_clock_mono_ns() < due_ns && hec_recorder_wait_ready(top->watch.recorder, 0) > 0)
        wait_until(top, hec_clock_mono_ns() + 10 * HEC_NS_PER_MS, false);
    int64_t listed_ns = hec_clock_mono_ns() + LISTED_NS;
    for (due_ns = hec_clock_mono_ns() + interval_ns / 2; !top->done; due_ns += interval_ns) {
        wait_until(top, due_ns, false);
        if (top->done)
            return;
        tick(top);
        if (left-- > 0 || (due_ns < listed_ns && !(hec_node_divided(top->node) && has_watts(&top->state))))
            continue;
        listed_ns = 0;
        print_snapshot(top);
        top->done |= top->options->once;
    }
}

/* ---- beginning and end ---- */

static int watch_signals(struct top *top, struct hec_why *why) {
    static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    /* without a screen there is nothing to put back: those of job control do what they do */
    size_t count = top->options->once || top->options->json ? 3 : sizeof all / sizeof all[0];
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, all[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* in the threads that follow too */
    signal(SIGPIPE, SIG_IGN);
    top->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return top->signals >= 0 ? HEC_OK
                             : hec_fail(why, hec_err_from_errno(errno), "cannot watch signals: %s", strerror(errno));
}

static int begin(struct top *top, struct hec_why *why) {
    const struct hec_top_options *options = top->options;
    struct hec_identity *identity = NULL;
    const struct hec_identity_options who = {.device_prefix = hec_identity_proof(NULL), .processes = !options->waste};
    int err = watch_signals(top, why);
    if (err == HEC_OK && hec_identity_open(&who, &identity) < 0)
        hec_warn("/proc cannot be read: processes have no names");
    if (err == HEC_OK && !(top->node = hec_node_new(options->interval_ns, identity)))
        err = hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    if (err == HEC_OK)
        hec_kubelet_create(NULL, &top->node->kubelet);
    return err;
}

static int print_schema(struct top *top) {
    struct hec_buf text;
    hec_buf_init(&text, TEXT_MAX);
    write_text(top, &text, hec_top_schema(&text));
    hec_buf_free(&text);
    return top->status;
}

__attribute__((visibility("default"))) int hec_top_main(const struct hec_top_options *options) {
    static struct top top; /* a thread that was given up may still refer to it */
    struct hec_why why = {""};
    mallopt(M_ARENA_MAX, 1);
    top = (struct top){.options = options, .signals = -1};
    top.utf8 = options->utf8 && setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    top.view.plain = options->once || options->json;
    if (options->schema)
        return print_schema(&top);
    if (options->sort)
        top.view.sort = hec_top_sort_find(options->sort);
    if (options->filter)
        snprintf(top.view.filter, sizeof top.view.filter, "%s", options->filter);
    int err = begin(&top, &why);
    if (err == HEC_OK && !top.view.plain)
        err = hec_screen_open(options->color, &why);
    if (err < 0) {
        hec_error("top: %s", why.text[0] ? why.text : hec_err_text(err));
        return hec_err_exit_status(err);
    }
    hec_log_set_level(HEC_LOG_ERROR); /* what is wrong is on the page */
    hec_top_begin(&top.state, hec_clock_mono_ns(), options->interval_ns);
    top.state.waste = options->waste;
    hec_watch_start(&top.watch, top.node, hec_collectors_of(HEC_OBSERVER_SCREEN), options->nvml_path);
    if (top.view.plain)
        run_lines(&top);
    else
        run_screen(&top);
    hec_screen_close();
    hec_watch_stop(&top.watch);
    if (top.watch.abandoned == 0)
        hec_node_free(top.node);
    return top.status;
}
