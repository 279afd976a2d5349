#include "observe/grid/time_text.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

/* Exactly so many digits; -1: there are not so many. */
static int digits(const char **at, int count) {
    int number = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (!isdigit((unsigned char)**at))
            return -1;
        number = 10 * number + (**at - '0');
    }
    return number;
}

static bool skip(const char **at, char wanted) {
    if (**at != wanted)
        return false;
    ++*at;
    return true;
}

/* What follows the time of day: nothing, Z, +HH, +HHMM or +HH:MM. */
static bool offset_of(const char *at, int *seconds, bool *zoned) {
    *seconds = 0;
    *zoned = *at != '\0';
    if (!*at || strcmp(at, "Z") == 0)
        return true;
    int sign = *at == '-' ? -1 : 1, minutes = 0;
    if (*at != '-' && *at != '+')
        return false;
    at++;
    int hours = digits(&at, 2);
    if (*at) {
        skip(&at, ':');
        minutes = digits(&at, 2);
    }
    *seconds = sign * (hours * 3600 + minutes * 60);
    return hours >= 0 && hours <= 14 && minutes >= 0 && minutes <= 59 && !*at;
}

bool hec_time_text(const char *text, int64_t *seconds, bool *zoned) {
    const char *at = text;
    int offset, second = 0;
    int year = digits(&at, 4);
    bool ok = year >= 1970 && year < 2200 && skip(&at, '-');
    int month = ok ? digits(&at, 2) : -1;
    ok = month >= 1 && month <= 12 && skip(&at, '-');
    int day = ok ? digits(&at, 2) : -1;
    ok = day >= 1 && day <= 31 && (skip(&at, 'T') || skip(&at, ' '));
    int hour = ok ? digits(&at, 2) : -1;
    ok = hour >= 0 && hour <= 23 && skip(&at, ':');
    int minute = ok ? digits(&at, 2) : -1;
    ok = minute >= 0 && minute <= 59;
    if (ok && skip(&at, ':')) {
        second = digits(&at, 2);
        ok = second >= 0 && second <= 59;
        if (ok && skip(&at, '.'))
            at += strspn(at, "0123456789");
    }
    if (!ok || !offset_of(at, &offset, zoned))
        return false;
    struct tm tm = {.tm_year = year - 1900,
                    .tm_mon = month - 1,
                    .tm_mday = day,
                    .tm_hour = hour,
                    .tm_min = minute,
                    .tm_sec = second};
    *seconds = (int64_t)timegm(&tm) - offset;
    return tm.tm_mday == day; /* else the month has no such day */
}
