#include "cli/when.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/child.h"
#include "report/format.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_EVERY_NS (30 * HEC_NS_PER_S) /* files may be replaced, and the clock be set */
#define SAY_EVERY_S 3600                  /* what has changed, unless it changes when the command will begin */
#define DAY_S 86400

static int64_t now_s(void) {
    return hec_clock_wall_ns() / HEC_NS_PER_S;
}

/* ---- options ---- */

static int add_files(const struct hec_args *args, struct hec_waiting *w) {
    struct hec_why why = {""};
    for (int i = 0; i < args->given_count; i++) {
        enum hec_option option = args->given[i].option;
        struct hec_signals *files = option == HEC_OPT_CARBON_FILE  ? &w->off_peak.carbon
                                    : option == HEC_OPT_PRICE_FILE ? &w->off_peak.prices
                                                                   : NULL;
        int err = files ? hec_signals_add(files, args->given[i].value, &why) : HEC_OK;
        if (err < 0) {
            hec_error("--%s: %s", hec_option_info(option)->name, why.text);
            return err;
        }
    }
    return HEC_OK;
}

/* Those that are nothing without --when. */
static int check_alone(const struct hec_args *args) {
    static const enum hec_option options[] = {HEC_OPT_PRICE_FILE, HEC_OPT_UNTIL_TIME, HEC_OPT_CHECK_WHEN};
    char sentence[64];
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (hec_args_has(args, options[i])) {
            snprintf(sentence, sizeof sentence, "--%s goes with --when", hec_option_info(options[i])->name);
            return hec_args_wrong(args, sentence);
        }
    return HEC_OK;
}

int hec_waiting_open(const struct hec_args *args, struct hec_waiting *w) {
    struct hec_why why = {""};
    const char *until = hec_args_value(args, HEC_OPT_UNTIL_TIME), *option = "--when";
    w->off_peak.carbon.carbon = true;
    w->when = hec_args_value(args, HEC_OPT_WHEN);
    w->quiet = hec_args_has(args, HEC_OPT_QUIET);
    int err = w->when ? hec_when_parse(w->when, &w->off_peak.when, &why) : check_alone(args);
    if (err < 0 && !w->when)
        return err;
    if (err == HEC_OK && (err = add_files(args, w)) < 0)
        return err;
    if (err == HEC_OK && w->when)
        err = hec_off_peak_check(&w->off_peak, &why);
    if (err == HEC_OK && until) {
        option = "--until";
        err = hec_off_peak_until(until, now_s(), &w->until_s, &why);
        w->ends = true;
    }
    if (err < 0)
        hec_error("%s: %s", option, why.text);
    return err;
}

void hec_waiting_close(struct hec_waiting *w) {
    hec_signals_free(&w->off_peak.carbon);
    hec_signals_free(&w->off_peak.prices);
}

/* ---- words ---- */

/* "02:00", with its day where that is not within one. */
static const char *moment(char out[32], int64_t t_s, int64_t from_s) {
    time_t t = (time_t)t_s;
    struct tm local;
    localtime_r(&t, &local);
    strftime(out, 32, t_s - from_s < DAY_S ? "%H:%M" : "%a %Y-%m-%d %H:%M", &local);
    return out;
}

/* "co2 is 187 g/kWh (average, Electricity Maps, DE), price is not known, it is 14:05": of what is asked for. */
static void say_now(const struct hec_off_peak *o, const struct hec_off_peak_look *look, struct hec_buf *out) {
    char label[128];
    const char *between = "";
    if (hec_when_asks(&o->when, HEC_WHEN_CO2)) {
        if (isnan(look->now.co2))
            hec_buf_puts(out, "co2 is not known");
        else
            hec_buf_printf(out, "co2 is %.4g g/kWh (%s)", look->now.co2, hec_signals_label(&o->carbon, label));
        between = ", ";
    }
    if (hec_when_asks(&o->when, HEC_WHEN_PRICE)) {
        if (isnan(look->now.price))
            hec_buf_printf(out, "%sprice is not known", between);
        else
            hec_buf_printf(out, "%sprice is %.4g", between, look->now.price);
        between = ", ";
    }
    if (hec_when_asks(&o->when, HEC_WHEN_HOURS))
        hec_buf_printf(out, "%sit is %02d:%02d", between, look->now.minute / 60, look->now.minute % 60);
}

static void say_when(const struct hec_off_peak_look *look, int64_t t_s, struct hec_buf *out) {
    char at[32], left[HEC_FORMAT_SIZE];
    if (look->true_s == INT64_MAX)
        hec_buf_puts(out, "; the files do not say when it will be true");
    else if (look->true_s > t_s)
        hec_buf_printf(out, "; true from %s, in %s", moment(at, look->true_s, t_s),
                       hec_format_seconds(left, (double)(look->true_s - t_s)));
}

int hec_waiting_check(const struct hec_waiting *w) {
    static const char *const words[] = {
        [HEC_WHEN_FALSE] = "false", [HEC_WHEN_UNKNOWN] = "not known", [HEC_WHEN_TRUE] = "true"};
    static const int statuses[] = {[HEC_WHEN_FALSE] = 1, [HEC_WHEN_UNKNOWN] = 2, [HEC_WHEN_TRUE] = 0};
    struct hec_off_peak_look look;
    struct hec_buf line;
    int64_t t_s = now_s();
    hec_off_peak_look(&w->off_peak, t_s, &look);
    hec_buf_init(&line, 4096);
    hec_buf_printf(&line, "%s: ", words[look.answer]);
    say_now(&w->off_peak, &look, &line);
    say_when(&look, t_s, &line);
    if (!w->quiet)
        puts(hec_buf_text(&line));
    hec_buf_free(&line);
    return statuses[look.answer];
}

static void say_waiting(const struct hec_waiting *w, const struct hec_off_peak_look *look, int64_t t_s) {
    struct hec_buf line;
    char at[32];
    hec_buf_init(&line, 4096);
    hec_buf_printf(&line, "waiting for %.200s: ", w->when);
    say_now(&w->off_peak, look, &line);
    say_when(look, t_s, &line);
    if (w->ends)
        hec_buf_printf(&line, "; at the latest at %s", moment(at, w->until_s, t_s));
    hec_say("%s", hec_buf_text(&line));
    hec_buf_free(&line);
}

/* What came of it, for the run file and, where it was waited, for who looks on. */
static void say_begun(struct hec_waiting *w, const struct hec_off_peak_look *look, int64_t waited_s) {
    struct hec_buf line;
    char length[HEC_FORMAT_SIZE];
    hec_buf_init(&line, 4096);
    if (waited_s > 0)
        hec_buf_printf(&line, "waited %s for %.200s", hec_format_seconds(length, (double)waited_s), w->when);
    else
        hec_buf_printf(&line, "did not wait for %.200s", w->when);
    hec_buf_puts(&line, look->answer == HEC_WHEN_TRUE ? ": " : ", which did not come before --until: ");
    say_now(&w->off_peak, look, &line);
    snprintf(w->waited, sizeof w->waited, "%s", hec_buf_text(&line));
    hec_buf_free(&line);
    if (!w->quiet && (waited_s > 0 || look->answer != HEC_WHEN_TRUE))
        hec_say("%s", w->waited);
}

/* ---- waiting ---- */

static void renew(struct hec_waiting *w) {
    struct hec_why why = {""};
    struct hec_signals *const both[] = {&w->off_peak.carbon, &w->off_peak.prices};
    for (int i = 0; i < 2; i++)
        if (hec_signals_renew(both[i], &why) < 0)
            hec_warn("%s; what it said before holds", why.text);
}

/* Those that are to end this process, but for those that who started it has it ignore. */
static void ending_signals(sigset_t *set) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, numbers[i]);
    }
}

/* Until the answer may be another one. A signal ends this process. */
static void rest(const struct hec_waiting *w, int64_t t_s, const sigset_t *ending) {
    int64_t next_s = hec_off_peak_next(&w->off_peak, t_s), wall_ns = hec_clock_wall_ns(), left_ns = LOOK_EVERY_NS;
    next_s = w->ends && w->until_s < next_s ? w->until_s : next_s;
    if (next_s < INT64_MAX / HEC_NS_PER_S && next_s * HEC_NS_PER_S - wall_ns < left_ns)
        left_ns = hec_later(next_s * HEC_NS_PER_S - wall_ns, HEC_NS_PER_MS);
    struct timespec left = {(time_t)(left_ns / HEC_NS_PER_S), (long)(left_ns % HEC_NS_PER_S)};
    int number = sigtimedwait(ending, NULL, &left);
    if (number <= 0)
        return;
    hec_say("ended by a signal while it waited for %.200s: the command was not run", w->when);
    fflush(NULL);
    hec_child_end_as(number, 128 + number);
}

void hec_waiting_wait(struct hec_waiting *w) {
    struct hec_off_peak_look look, said = {0};
    sigset_t ending, before;
    int64_t begin_s = now_s(), t_s = begin_s, said_s = INT64_MIN / 2;
    ending_signals(&ending);
    sigprocmask(SIG_BLOCK, &ending, &before);
    for (;; t_s = now_s()) {
        renew(w);
        hec_off_peak_look(&w->off_peak, t_s, &look);
        if (look.answer == HEC_WHEN_TRUE || (w->ends && t_s >= w->until_s))
            break;
        bool other = look.now.co2 != said.now.co2 || look.now.price != said.now.price;
        if (!w->quiet && (said_s < 0 || look.true_s != said.true_s || (other && t_s - said_s >= SAY_EVERY_S))) {
            say_waiting(w, &look, t_s);
            said = look;
            said_s = t_s;
        }
        rest(w, t_s, &ending);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    say_begun(w, &look, t_s - begin_s);
}

/* ---- the run file ---- */

void hec_waiting_record(const struct hec_waiting *w, const struct hec_sink *sink) {
    if (w->waited[0])
        hec_sink_event(sink, HEC_EVENT_WHEN, HEC_DEVICE_NONE, hec_clock_mono_ns(), "%s", w->waited);
}

void hec_waiting_carbon(void *context, const struct hec_sink *sink, int64_t start_ns, int64_t end_ns) {
    struct hec_waiting *w = context;
    struct hec_signals *carbon = &w->off_peak.carbon;
    char label[128];
    if (!carbon->count)
        return;
    renew(w); /* what was measured meanwhile */
    int64_t offset_ns = hec_clock_wall_offset_ns();
    double grams = hec_signals_mean(carbon, (double)(start_ns + offset_ns) / HEC_NS_PER_S,
                                    (double)(end_ns + offset_ns) / HEC_NS_PER_S);
    if (isfinite(grams))
        hec_sink_meta(sink, "carbon", "%.6g %s", grams, hec_signals_label(carbon, label));
    else
        hec_warn("--carbon-file has not all of the time that the command ran: its CO2 is by the default");
}
