#include "act/off_peak.h"

#include "observe/grid/time_text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MINUTE_S 60
#define DAY_S 86400
#define AHEAD_S (8 * DAY_S)       /* no forecast of a grid goes further */
#define HOURS_AHEAD_S (2 * DAY_S) /* hours alone come once a day, also where a clock is set for summer */
#define UNTIL_MOST_S (366.0 * DAY_S)

int hec_off_peak_check(const struct hec_off_peak *off_peak, struct hec_why *why) {
    const struct {
        enum hec_when_kind kind;
        const struct hec_signals *files;
        const char *word, *option;
    } rows[] = {{HEC_WHEN_CO2, &off_peak->carbon, "co2", "--carbon-file"},
                {HEC_WHEN_PRICE, &off_peak->prices, "price", "--price-file"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (hec_when_asks(&off_peak->when, rows[i].kind) && !rows[i].files->count)
            return hec_fail(why, HEC_ERR_USAGE, "%s needs %s FILE", rows[i].word, rows[i].option);
    return HEC_OK;
}

struct hec_when_now hec_off_peak_now(const struct hec_signals *carbon, const struct hec_signals *prices, int64_t t_s) {
    time_t t = (time_t)t_s;
    struct tm local = {0};
    localtime_r(&t, &local);
    return (struct hec_when_now){.co2 = hec_signals_at(carbon, t_s),
                                 .price = hec_signals_at(prices, t_s),
                                 .minute = 60 * local.tm_hour + local.tm_min};
}

static struct hec_when_now now_of(const struct hec_off_peak *off_peak, int64_t t_s) {
    return hec_off_peak_now(&off_peak->carbon, &off_peak->prices, t_s);
}

int64_t hec_off_peak_next(const struct hec_off_peak *off_peak, int64_t t_s) {
    int64_t next_s = INT64_MAX;
    if (hec_when_asks(&off_peak->when, HEC_WHEN_CO2))
        next_s = hec_signals_next(&off_peak->carbon, t_s);
    if (hec_when_asks(&off_peak->when, HEC_WHEN_PRICE)) {
        int64_t price_s = hec_signals_next(&off_peak->prices, t_s);
        next_s = price_s < next_s ? price_s : next_s;
    }
    /* each minute is looked at, so that no rule of any zone has to be known */
    int64_t minute_s = (t_s / MINUTE_S + 1) * MINUTE_S;
    return hec_when_asks(&off_peak->when, HEC_WHEN_HOURS) && minute_s < next_s ? minute_s : next_s;
}

/* Nothing but minutes comes after this. */
static int64_t horizon_of(const struct hec_off_peak *off_peak, int64_t t_s) {
    int64_t horizon_s = t_s + HOURS_AHEAD_S;
    const struct hec_signals *both[] = {&off_peak->carbon, &off_peak->prices};
    for (int i = 0; i < 2; i++)
        for (int file = 0; file < both[i]->count; file++) {
            const struct hec_signal *signal = &both[i]->files[file].signal;
            int64_t end_s = signal->values[signal->count - 1].until_s;
            horizon_s = end_s > horizon_s ? end_s : horizon_s;
        }
    return horizon_s < t_s + AHEAD_S ? horizon_s : t_s + AHEAD_S;
}

void hec_off_peak_look(const struct hec_off_peak *off_peak, int64_t t_s, struct hec_off_peak_look *out) {
    int64_t horizon_s = horizon_of(off_peak, t_s);
    *out = (struct hec_off_peak_look){.now = now_of(off_peak, t_s), .true_s = INT64_MAX};
    out->answer = hec_when_holds(&off_peak->when, &out->now);
    for (int64_t at_s = t_s; at_s < horizon_s; at_s = hec_off_peak_next(off_peak, at_s)) {
        struct hec_when_now then = now_of(off_peak, at_s);
        if (hec_when_holds(&off_peak->when, &then) == HEC_WHEN_TRUE) {
            out->true_s = at_s;
            return;
        }
    }
}

/* "8h", "90m", "2d", "30s"; NAN: it is none. */
static double duration_of(const char *text) {
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', DAY_S}};
    size_t digits = strspn(text, "0123456789.");
    char *end;
    double number = strtod(text, &end);
    if (!digits || end != text + digits || !*end || end[1])
        return NAN;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (*end == units[i].letter)
            return number * units[i].seconds;
    return NAN;
}

/* When the local clock says so next. */
static bool next_clock(const char *text, int64_t t_s, int64_t *until_s) {
    struct tm local;
    int hour, minute, length = 0;
    time_t t = (time_t)t_s;
    if (sscanf(text, "%2d:%2d%n", &hour, &minute, &length) != 2 || text[length] || length != 5 || hour < 0 ||
        hour > 23 || minute < 0 || minute > 59 || !localtime_r(&t, &local))
        return false;
    local.tm_hour = hour;
    local.tm_min = minute;
    local.tm_sec = 0;
    for (int day = 0; day < 2; day++) {
        struct tm then = local;
        then.tm_mday += day;
        then.tm_isdst = -1;
        *until_s = (int64_t)mktime(&then);
        if (*until_s > t_s)
            return true;
    }
    return false;
}

/* A moment without a zone is of the local clock. */
static bool moment(const char *text, int64_t *until_s) {
    bool zoned;
    struct tm parts;
    if (!hec_time_text(text, until_s, &zoned))
        return false;
    time_t utc = (time_t)*until_s;
    if (zoned || !gmtime_r(&utc, &parts))
        return zoned;
    parts.tm_isdst = -1;
    *until_s = (int64_t)mktime(&parts);
    return true;
}

int hec_off_peak_until(const char *text, int64_t t_s, int64_t *until_s, struct hec_why *why) {
    double seconds = duration_of(text);
    if (seconds <= UNTIL_MOST_S)
        *until_s = t_s + (int64_t)seconds;
    else if (!next_clock(text, t_s, until_s) && !moment(text, until_s))
        return hec_fail(why, HEC_ERR_USAGE, "\"%.60s\" is no time: 8h, 90m, 06:00 or 2026-11-30T06:00", text);
    return *until_s >= t_s ? HEC_OK : hec_fail(why, HEC_ERR_USAGE, "%.60s has passed", text);
}
