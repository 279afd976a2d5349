/* When a command may begin: the grammar of --when, its answers, its forecasts. */
#include "act/off_peak.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static struct hec_why why;

static struct hec_when good(const char *text) {
    struct hec_when when;
    if (hec_when_parse(text, &when, &why) != HEC_OK)
        fail_msg("'%s': %s", text, why.text);
    return when;
}

static enum hec_when_answer answer(const char *text, double co2, double price, int minute) {
    struct hec_when when = good(text);
    return hec_when_holds(&when, &(struct hec_when_now){.co2 = co2, .price = price, .minute = minute});
}

TEST(test_grammar) {
    struct hec_when when = good(" CO2 < 200.5 |price<-1e-2&22:00 - 06:00 ");
    assert_int_equal(when.count, 3);
    assert_true(when.terms[0].kind == HEC_WHEN_CO2 && when.terms[0].below == 200.5 && when.terms[0].another);
    assert_true(when.terms[1].kind == HEC_WHEN_PRICE && when.terms[1].below == -0.01 && when.terms[1].another);
    assert_true(when.terms[2].kind == HEC_WHEN_HOURS && !when.terms[2].another);
    assert_int_equal(when.terms[2].from_min, 22 * 60);
    assert_int_equal(when.terms[2].until_min, 6 * 60);
    assert_true(hec_when_asks(&when, HEC_WHEN_HOURS));
    when = good("00:00-24:00");
    assert_false(hec_when_asks(&when, HEC_WHEN_CO2));
}

TEST(test_bad_words) {
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", "column 1: co2<N, price<N or HH:MM-HH:MM belongs here"},
        {"co2", "column 4: a < and a number"},
        {"co2>200", "column 4: a < and a number"},
        {"co2<", "column 5: this is no number"},
        {"co2<x", "column 5: this is no number"},
        {"co2<nan", "column 5: this is no number"},
        {"co2<0x10", "column 5: this is no number"},
        {"co2<1-2", "column 5: this is no number"},
        {"co2<1 price<2", "column 7: | (any) or & (all)"},
        {"co2<1|", "column 7: co2<N, price<N"},
        {"co2<1 || price<1", "column 8: co2<N, price<N"},
        {"(co2<1)", "column 1: co2<N, price<N"},
        {"coal<1", "column 1: co2<N, price<N"},
        {"22:00", "column 6: hours are HH:MM-HH:MM"},
        {"22:00-6:00", "column 7: this is no HH:MM"},
        {"25:00-06:00", "column 1: this is no HH:MM"},
        {"22:60-06:00", "column 1: this is no HH:MM"},
        {"22:00-24:01", "column 7: this is no HH:MM"},
        {"22:00-06:000", "column 7: this is no HH:MM"},
        {"22:00-22:00", "column 7: hours that end where they begin"},
        {"24:00-00:00", "column 7: hours that end where they begin"},
    };
    struct hec_when when;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (hec_when_parse(cases[i].text, &when, &why) != HEC_ERR_USAGE ||
            strncmp(why.text, cases[i].sentence, strlen(cases[i].sentence)) != 0)
            fail_msg("'%s': '%s', expected '%s'", cases[i].text, why.text, cases[i].sentence);
    char many[400] = "co2<1";
    for (int i = 0; i < HEC_WHEN_TERMS_MOST; i++)
        strcat(many, "|co2<1");
    assert_int_equal(hec_when_parse(many, &when, &why), HEC_ERR_USAGE);
}

TEST(test_answers) {
    assert_int_equal(answer("co2<200", 199.9, NAN, 0), HEC_WHEN_TRUE);
    assert_int_equal(answer("co2<200", 200, NAN, 0), HEC_WHEN_FALSE);
    assert_int_equal(answer("co2<200", NAN, 1, 0), HEC_WHEN_UNKNOWN);
    assert_int_equal(answer("22:00-06:00", NAN, NAN, 22 * 60), HEC_WHEN_TRUE);
    assert_int_equal(answer("22:00-06:00", NAN, NAN, 5 * 60 + 59), HEC_WHEN_TRUE);
    assert_int_equal(answer("22:00-06:00", NAN, NAN, 6 * 60), HEC_WHEN_FALSE);
    assert_int_equal(answer("06:00-22:00", NAN, NAN, 6 * 60), HEC_WHEN_TRUE);
    assert_int_equal(answer("06:00-22:00", NAN, NAN, 22 * 60), HEC_WHEN_FALSE);
    assert_int_equal(answer("18:00-24:00", NAN, NAN, 1439), HEC_WHEN_TRUE);
    /* unknown is not true, but does not hide what is known */
    assert_int_equal(answer("co2<200|price<1", NAN, 0.5, 0), HEC_WHEN_TRUE);
    assert_int_equal(answer("co2<200|price<1", NAN, 2, 0), HEC_WHEN_UNKNOWN);
    assert_int_equal(answer("co2<200&price<1", NAN, 2, 0), HEC_WHEN_FALSE);
    assert_int_equal(answer("co2<200&price<1", NAN, 0.5, 0), HEC_WHEN_UNKNOWN);
    /* & binds tighter, on either side */
    assert_int_equal(answer("co2<200|price<1&22:00-06:00", 100, 2, 720), HEC_WHEN_TRUE);
    assert_int_equal(answer("price<1&22:00-06:00|co2<200", 100, 2, 720), HEC_WHEN_TRUE);
    assert_int_equal(answer("price<1&22:00-06:00|co2<200", 300, 0, 720), HEC_WHEN_FALSE);
    assert_int_equal(answer("price<1&22:00-06:00|co2<200", 300, 0, 1380), HEC_WHEN_TRUE);
}

/* ---- forecasts ---- */

static int begin(void **state) {
    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1); /* Berlin's rule, without the system's list of zones */
    tzset();
    return 0;
}

static int end(void **state) {
    (void)state;
    unsetenv("TZ");
    tzset();
    return 0;
}

static void price_of(struct hec_off_peak *off_peak, const char *text) {
    off_peak->prices.count = 1;
    assert_int_equal(hec_signal_parse(text, strlen(text), false, &off_peak->prices.files[0].signal, &why), HEC_OK);
}

static int64_t true_after(const struct hec_off_peak *off_peak, int64_t t_s) {
    struct hec_off_peak_look look;
    hec_off_peak_look(off_peak, t_s, &look);
    return look.true_s == INT64_MAX ? -1 : look.true_s - t_s;
}

#define NOON_S INT64_C(1774612800) /* 2026-03-27 12:00 UTC, 13:00 in Berlin; summer time begins on the 29th */

TEST_WITH(test_forecast_of_hours, begin, end) {
    struct hec_off_peak off_peak = {.when = good("22:00-06:00")};
    assert_int_equal(true_after(&off_peak, NOON_S), 9 * 3600);
    assert_int_equal(true_after(&off_peak, NOON_S + 9 * 3600), 0);
    assert_int_equal(true_after(&off_peak, NOON_S + 30), 9 * 3600 - 30);
    off_peak.when = good("03:00-04:00"); /* 13:00 on the 28th to 03:00 on the 29th: an hour less */
    assert_int_equal(true_after(&off_peak, NOON_S + 86400), 13 * 3600);
    off_peak.when = good("02:10-02:50"); /* there is no such time that night */
    assert_int_equal(true_after(&off_peak, NOON_S + 86400), 24 * 3600 + 12 * 3600 + 600);
}

TEST_WITH(test_forecast_of_a_file, begin, end) {
    struct hec_off_peak off_peak = {.when = good("price<0.1")};
    assert_int_equal(hec_off_peak_check(&off_peak, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "price needs --price-file FILE");
    price_of(&off_peak, "time,price_per_kwh\n2026-03-27 12:00,0.2\n2026-03-27 13:00,0.3\n2026-03-27 14:00,0.09\n");
    assert_int_equal(hec_off_peak_check(&off_peak, &why), HEC_OK);
    assert_int_equal(true_after(&off_peak, NOON_S - 60), 7260);
    assert_int_equal(true_after(&off_peak, NOON_S + 7200), 0);
    assert_int_equal(true_after(&off_peak, NOON_S + 3 * 3600), -1); /* the file ends: nothing is guessed */
    assert_int_equal(hec_off_peak_next(&off_peak, NOON_S + 1), NOON_S + 3600);
    off_peak.when = good("price<0.25&15:30-16:00"); /* of Berlin: 14:30 in the file */
    assert_int_equal(true_after(&off_peak, NOON_S), 9000);
    assert_int_equal(hec_off_peak_next(&off_peak, NOON_S + 1), NOON_S + 60);
    off_peak.when = good("co2<1");
    assert_int_equal(hec_off_peak_next(&off_peak, NOON_S), INT64_MAX);
    hec_signals_free(&off_peak.prices);
}

TEST_WITH(test_until, begin, end) {
    static const struct {
        const char *text;
        int64_t after_s;
    } cases[] = {
        {"30s", 30},
        {"1.5h", 5400},
        {"2d", 172800},
        {"90m", 5400},
        {"13:00", 86400},
        {"13:01", 60},
        {"06:00", 17 * 3600},
        {"2026-03-28T06:00", 17 * 3600},
        {"2026-03-28T06:00Z", 18 * 3600},
        {"2026-03-29 06:00", 40 * 3600},
    };
    int64_t until_s;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (hec_off_peak_until(cases[i].text, NOON_S, &until_s, &why) != HEC_OK || until_s - NOON_S != cases[i].after_s)
            fail_msg("%s: %lld: %s", cases[i].text, (long long)(until_s - NOON_S), why.text);
    }
    static const char *const bad[] = {
        "", "8", "8x", "h", "-1h", "1e3h", "6:00", "24:00", "06:00x", "500d", "2026-03-26T06:00"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (hec_off_peak_until(bad[i], NOON_S, &until_s, &why) != HEC_ERR_USAGE)
            fail_msg("%s", bad[i]);
}
