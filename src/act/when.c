#include "act/when.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MIN 1440

static void skip_blanks(const char **at) {
    while (isspace((unsigned char)**at))
        ++*at;
}

/* HH:MM, as minutes of the day; -1: it is none. 24:00 is one. */
static int clock_of(const char **at) {
    const char *c = *at;
    for (int i = 0; i < 5; i++)
        if (i == 2 ? c[i] != ':' : !isdigit((unsigned char)c[i]))
            return -1;
    int hours = 10 * (c[0] - '0') + (c[1] - '0'), minutes = 10 * (c[3] - '0') + (c[4] - '0');
    if (minutes > 59 || 60 * hours + minutes > DAY_MIN || isdigit((unsigned char)c[5]))
        return -1;
    *at += 5;
    return 60 * hours + minutes;
}

/* NULL, or what is wrong at *at. */
static const char *read_hours(const char **at, struct hec_when_term *term) {
    term->kind = HEC_WHEN_HOURS;
    if ((term->from_min = clock_of(at)) < 0)
        return "this is no HH:MM of a day";
    skip_blanks(at);
    if (**at != '-')
        return "hours are HH:MM-HH:MM";
    ++*at;
    skip_blanks(at);
    const char *begin = *at;
    if ((term->until_min = clock_of(at)) < 0)
        return "this is no HH:MM of a day";
    if (term->from_min % DAY_MIN == term->until_min % DAY_MIN && term->until_min - term->from_min != DAY_MIN) {
        *at = begin;
        return "hours that end where they begin are no time";
    }
    return NULL;
}

static const char *read_below(const char **at, struct hec_when_term *term) {
    skip_blanks(at);
    if (**at != '<')
        return "a < and a number follow co2 and price";
    ++*at;
    skip_blanks(at);
    char *end;
    /* no hexadecimal numbers, no inf and no nan, which strtod would take */
    size_t length = strspn(*at, "+-.0123456789eE");
    term->below = strtod(*at, &end);
    if (!length || end != *at + length || !isfinite(term->below))
        return "this is no number";
    *at = end;
    return NULL;
}

static const char *read_term(const char **at, struct hec_when_term *term) {
    static const struct {
        const char *word;
        enum hec_when_kind kind;
    } words[] = {{"co2", HEC_WHEN_CO2}, {"price", HEC_WHEN_PRICE}};
    if (isdigit((unsigned char)**at))
        return read_hours(at, term);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word);
        if (strncasecmp(*at, words[i].word, length) == 0 && !isalnum((unsigned char)(*at)[length])) {
            term->kind = words[i].kind;
            *at += length;
            return read_below(at, term);
        }
    }
    return "co2<N, price<N or HH:MM-HH:MM belongs here";
}

int hec_when_parse(const char *text, struct hec_when *out, struct hec_why *why) {
    const char *at = text, *wrong = NULL;
    *out = (struct hec_when){0};
    for (bool another = true; !wrong;) {
        if (out->count == HEC_WHEN_TERMS_MOST)
            return hec_fail(why, HEC_ERR_USAGE, "more than %d terms", HEC_WHEN_TERMS_MOST);
        struct hec_when_term *term = &out->terms[out->count++];
        term->another = another;
        skip_blanks(&at);
        wrong = read_term(&at, term);
        if (wrong)
            break;
        skip_blanks(&at);
        if (!*at)
            return HEC_OK;
        another = *at == '|';
        if (!another && *at != '&')
            wrong = "| (any) or & (all) belongs here";
        else
            at++;
    }
    return hec_fail(why, HEC_ERR_USAGE, "column %td: %s", at - text + 1, wrong);
}

static enum hec_when_answer below(double value, double most) {
    return isnan(value) ? HEC_WHEN_UNKNOWN : value < most ? HEC_WHEN_TRUE : HEC_WHEN_FALSE;
}

static enum hec_when_answer holds(const struct hec_when_term *t, const struct hec_when_now *now) {
    if (t->kind != HEC_WHEN_HOURS)
        return below(t->kind == HEC_WHEN_CO2 ? now->co2 : now->price, t->below);
    bool after = now->minute >= t->from_min, before = now->minute < t->until_min;
    return (t->from_min < t->until_min ? after && before : after || before) ? HEC_WHEN_TRUE : HEC_WHEN_FALSE;
}

/* Of several the least is true where all have to be, the most where any has: an answer that is not known changes neither. */
enum hec_when_answer hec_when_holds(const struct hec_when *when, const struct hec_when_now *now) {
    enum hec_when_answer any = HEC_WHEN_FALSE, all = HEC_WHEN_FALSE;
    for (int i = 0; i < when->count; i++) {
        enum hec_when_answer own = holds(&when->terms[i], now);
        if (when->terms[i].another) {
            any = all > any ? all : any;
            all = own;
        } else {
            all = own < all ? own : all;
        }
    }
    return all > any ? all : any;
}

bool hec_when_asks(const struct hec_when *when, enum hec_when_kind kind) {
    for (int i = 0; i < when->count; i++)
        if (when->terms[i].kind == kind)
            return true;
    return false;
}
