/* Files of the electric grid: what each format says, and what is refused. */
#include "observe/grid/signals.h"
#include "folder.h"
#include "unit.h"

#include <math.h>

#define MAPS                                                                                                           \
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO\xe2\x82\x82"                                        \
    "eq/kWh (direct),"                                                                                                 \
    "Carbon intensity gCO\xe2\x82\x82"                                                                                 \
    "eq/kWh (Life cycle),Data estimated\n"
#define WATTTIME(type, units, data)                                                                                    \
    "{\"data\":[" data "],\"meta\":{\"region\":\"CAISO_NORTH\",\"signal_type\":\"" type "\",\"units\":\"" units        \
    "\",\"data_point_period_seconds\":300}}"
#define DAY_S INT64_C(1767225600) /* 2026-01-01 00:00 UTC */

static struct hec_signal got;
static struct hec_why why;

static int parse(const char *text, bool carbon) {
    why.text[0] = '\0';
    return hec_signal_parse(text, strlen(text), carbon, &got, &why);
}

static void good(const char *text, bool carbon) {
    if (parse(text, carbon) != HEC_OK)
        fail_msg("%s", why.text);
}

static double at(int64_t t_s) {
    const struct hec_signal_value *value = hec_signal_at(&got, t_s);
    return value ? value->value : NAN;
}

TEST(test_electricity_maps) {
    good(MAPS "2026-01-01 00:00:00,Germany,Germany,DE,300.5,350.25,false\r\n"
              "2026-01-01 01:00:00,Germany,\"Germany\",DE,200,250,false\n\n"
              "2026-01-01 02:00:00,Germany,Germany,DE,,,false\n"
              "2026-01-01 05:00:00,Germany,Germany,DE,100,150,true",
         true);
    assert_int_equal(got.kind, HEC_SIGNAL_AVERAGE);
    assert_string_equal(got.source, "Electricity Maps, DE, life cycle");
    assert_true(at(DAY_S) == 350.25 && at(DAY_S + 3599) == 350.25 && at(DAY_S + 3600) == 250);
    assert_true(isnan(at(DAY_S - 1)) && isnan(at(DAY_S + 2 * 3600))); /* before it, and an empty field */
    assert_true(isnan(at(DAY_S + 4 * 3600)) && at(DAY_S + 5 * 3600) == 150);
    assert_true(isnan(at(DAY_S + 6 * 3600))); /* nothing goes on after its hour */
    assert_int_equal(hec_signal_next(&got, DAY_S - 50), DAY_S);
    assert_int_equal(hec_signal_next(&got, DAY_S + 3 * 3600), DAY_S + 5 * 3600);
    assert_int_equal(hec_signal_next(&got, DAY_S + 5 * 3600), DAY_S + 6 * 3600);
    assert_int_equal(hec_signal_next(&got, DAY_S + 6 * 3600), INT64_MAX);
    hec_signal_free(&got);
}

TEST(test_other_spellings) {
    static const struct {
        const char *head, *source;
    } cases[] = {
        {"Datetime (UTC),Zone Id,Carbon Intensity gCO2eq/kWh (LCA)", "Electricity Maps, FR, life cycle"},
        {"\xef\xbb\xbf"
         "datetime (utc),zone name,carbon intensity gco2eq/kwh (direct)",
         "Electricity Maps, FR, direct"},
        {"time,Country,Carbon  intensity (gCO2/kWh)", "CSV, FR"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s\n2026-01-01T00:00Z,FR,10\n2026-01-01T01:05+01:00,FR,20\n", cases[i].head);
        good(text, true);
        assert_string_equal(got.source, cases[i].source);
        assert_true(at(DAY_S + 299) == 10 && at(DAY_S + 300) == 20 && at(DAY_S + 599) == 20 && isnan(at(DAY_S + 600)));
        hec_signal_free(&got);
    }
}

TEST(test_watttime) {
    good(WATTTIME("co2_moer", "lbs_co2_per_mwh",
                  "{\"point_time\":\"2026-01-01T00:00:00+00:00\",\"value\":1000},"
                  "{\"point_time\":\"2026-01-01T00:05:00+00:00\",\"value\":0.0},"
                  "{\"point_time\":\"2026-01-01T00:20:00+00:00\",\"value\":null}"),
         true);
    assert_int_equal(got.kind, HEC_SIGNAL_MARGINAL);
    assert_string_equal(got.source, "WattTime, CAISO_NORTH");
    assert_true(fabs(at(DAY_S) - 453.59237) < 1e-9 && at(DAY_S + 599) == 0);
    assert_true(isnan(at(DAY_S + 600)) && isnan(at(DAY_S + 1200)));
    hec_signal_free(&got);
    good(WATTTIME("co2_aoer", "lbs_co2_per_mwh", "{\"point_time\":\"2026-01-01T00:00:00+00:00\",\"value\":1}"), true);
    assert_int_equal(got.kind, HEC_SIGNAL_AVERAGE);
    hec_signal_free(&got);
}

TEST(test_prices) {
    good("time,price_per_mwh\n2026-01-01 00:00,80\n2026-01-01 01:00,-5\n", false);
    assert_int_equal(got.kind, HEC_SIGNAL_PRICE);
    assert_string_equal(got.source, "");
    assert_true(fabs(at(DAY_S) - 0.08) < 1e-12 && fabs(at(DAY_S + 3600) + 0.005) < 1e-12);
    hec_signal_free(&got);
    good("price_per_kwh,time\n0.3,2026-01-01 00:00:00.000Z\n0.25,2026-01-01 00:15\n", false);
    assert_true(at(DAY_S) == 0.3 && at(DAY_S + 900) == 0.25 && isnan(at(DAY_S + 1800)));
    hec_signal_free(&got);
}

TEST(test_what_is_refused) {
    static const struct {
        const char *text;
        bool carbon;
        const char *sentence;
    } cases[] = {
        {"", true, "it is empty"},
        {"\n \n", false, "it is empty"},
        {"time,price_per_kwh\n", false, "it has no values"},
        {"time,price_per_kwh\n2026-01-01 00:00,1\n", false, "how long that holds"},
        {"time,price\n2026-01-01 00:00,1\n", false, "line 1: no column is called price_per_kwh or price_per_mwh"},
        {"when,price_per_kwh\n", false, "line 1: no column is called time"},
        {"time,price_per_kwh,price_per_mwh\n", false, "line 1: it has two columns of prices"},
        {"time,price_per_kwh\n2026-01-01 00:00,nan\n", false, "line 2: \"nan\" is no number"},
        {"time,price_per_kwh\n2026-01-01 00:00,0.1.2\n", false, "line 2: \"0.1.2\" is no number"},
        {"time,price_per_kwh\n2026-01-01 00:00,1e999\n", false, "line 2: \"1e999\" is no number"},
        {"time,price_per_kwh\n2026-01-01 00:00,1e7\n", false, "line 2: 1e+07 per kWh cannot be"},
        {"time,price_per_kwh\n2026-01-01 00:00\n", false, "line 2: it has too few columns"},
        {"time,price_per_kwh\n2026-02-30 00:00,1\n", false, "line 2: \"2026-02-30 00:00\" is no time"},
        {"time,price_per_kwh\n2026-01-01 24:00,1\n", false, "is no time"},
        {"time,price_per_kwh\n2026-01-01 00:00+1,1\n", false, "is no time"},
        {"time,price_per_kwh\n2026-01-01 01:00,1\n2026-01-01 01:00,1\n", false, "line 3: its time is not after"},
        {"time,price_per_kwh\n2026-01-01 01:00,1\n2026-01-01 00:00,1\n", false, "line 3: its time is not after"},
        {"time,price_per_kwh\n\"2026-01-01 00:00,1\n", false, "line 2: its quotes"},
        {"time,price_per_kwh\n\"2026-01-01 00:00\"x,1\n", false, "line 2: its quotes"},
        {MAPS "2026-01-01 00:00:00,G,G,DE,1,2,false\n2026-01-01 01:00:00,F,F,FR,1,2,false\n", true,
         "line 3: it is of another zone"},
        {MAPS "2026-01-01 00:00:00,G,G,DE,1,-2,false\n", true, "line 2: -2 g of CO2 per kWh cannot be"},
        {"Datetime (UTC),Carbon intensity lb/MWh\n", true, "line 1: the carbon intensity is not in gCO2eq/kWh"},
        {"Datetime (UTC),Carbon intensity gCO2eq/kWh,Marginal carbon intensity gCO2eq/kWh\n", true,
         "average and of marginal carbon, which are not to be mixed"},
        {"time,price_per_kwh\n2026-01-01 00:00,1\n", true, "line 1: no column has the carbon intensity"},
        {"{\"data\": [], \"meta\": {}", true, "line 1: "},
        {"{}", true, "it has no data and meta"},
        {"[1]", true, "it has no data and meta"},
        {"{\"data\":[],\"meta\":{}}", false, "prices come as CSV"},
        {WATTTIME("health_damage", "usd_per_mwh", ""), true, "meta.signal_type is \"health_damage\""},
        {WATTTIME("co2_moer", "percentile", ""), true, "meta.units is \"percentile\""},
        {WATTTIME("co2_moer", "lbs_co2_per_mwh", ""), true, "it has no values"},
        {WATTTIME("co2_moer", "lbs_co2_per_mwh", "{\"point_time\":\"2026-01-01T00:00:00Z\"}"), true,
         "data[0]: it has no value"},
        {WATTTIME("co2_moer", "lbs_co2_per_mwh", "{\"value\":1}"), true, "data[0]: \"\" is no time"},
        {WATTTIME("co2_moer", "lbs_co2_per_mwh", "7"), true, "data[0]: it has no value"},
        {WATTTIME("co2_moer", "lbs_co2_per_mwh",
                  "{\"point_time\":\"2026-01-01T00:00:00Z\",\"value\":1,\"signal_type\":\"co2_aoer\"}"),
         true, "data[0]: it is of another signal"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse(cases[i].text, cases[i].carbon) != HEC_ERR_CORRUPT || !strstr(why.text, cases[i].sentence))
            fail_msg("%zu: '%s', expected '%s'", i, why.text, cases[i].sentence);
        assert_null(got.values);
    }
    assert_int_equal(hec_signal_parse("time,price_per_kwh\n20\0", 22, false, &got, &why), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "line 2: it has a zero byte");
}

TEST(test_long_lines_and_many_columns) {
    char text[5000] = "time,";
    memset(text + 5, 'x', 4100);
    assert_int_equal(parse(text, false), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "line 1: it is longer than 4095 bytes");
    memset(text, ',', 64);
    text[64] = '\0';
    assert_int_equal(parse(text, false), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "line 1: it has more than 64 columns");
}

/* ---- several files, and files that change ---- */

static char first[96], second[96];

static void put(const char *path, const char *text) {
    const char *made = folder_write("new", text, strlen(text)); /* as a cron job does it: by rename */
    assert_int_equal(rename(made, path), 0);
}

static int begin(void **state) {
    folder_make(state);
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    return 0;
}

TEST_WITH(test_files_renewed, begin, folder_remove) {
    struct hec_signals s = {0};
    assert_int_equal(hec_signals_add(&s, first, &why), HEC_ERR_NOTFOUND);
    put(first, "time,price_per_kwh\n2026-01-01 00:00,1\n2026-01-01 01:00,2\n");
    assert_int_equal(hec_signals_add(&s, first, &why), HEC_OK);
    assert_int_equal(hec_signals_renew(&s, &why), 0);
    put(first, "time,price_per_kwh\n2026-01-01 00:00,3\n2026-01-01 01:00,4\n2026-01-01 02:00,5\n");
    assert_int_equal(hec_signals_renew(&s, &why), 1);
    assert_true(hec_signals_at(&s, DAY_S) == 3);
    put(first, "time,price_per_kwh\nnonsense\n");
    assert_int_equal(hec_signals_renew(&s, &why), HEC_ERR_CORRUPT);
    assert_non_null(strstr(why.text, "first: line 2: it has too few columns"));
    assert_true(hec_signals_at(&s, DAY_S) == 3); /* what was known stays known */
    assert_int_equal(hec_signals_renew(&s, &why), 0);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(hec_signals_renew(&s, &why), HEC_ERR_NOTFOUND);
    assert_int_equal(hec_signals_renew(&s, &why), 0); /* said once */
    put(first, "time,price_per_kwh\n2026-01-01 00:00,6\n2026-01-01 01:00,7\n");
    assert_int_equal(hec_signals_renew(&s, &why), 1);
    assert_true(hec_signals_at(&s, DAY_S) == 6);
    hec_signals_free(&s);
    assert_int_equal(hec_signals_add(&s, folder, &why), HEC_ERR_CORRUPT);
    assert_non_null(strstr(why.text, "no plain file"));
    assert_int_equal(mkfifo(second, 0600), 0);
    assert_int_equal(hec_signals_add(&s, second, &why), HEC_ERR_CORRUPT);
    assert_int_equal(truncate(first, HEC_SIGNAL_FILE_MOST + 1), 0);
    assert_int_equal(hec_signals_add(&s, first, &why), HEC_ERR_LIMIT);
    assert_non_null(strstr(why.text, "larger than 64 MiB"));
}

TEST_WITH(test_two_files, begin, folder_remove) {
    struct hec_signals s = {.carbon = true};
    char label[128];
    put(first, MAPS "2026-01-01 00:00:00,G,G,DE,1,100,false\n2026-01-01 01:00:00,G,G,DE,1,200,false\n");
    put(second, MAPS "2026-01-01 01:30:00,G,G,DE,1,300,false\n2026-01-01 02:00:00,G,G,DE,1,400,false\n");
    assert_int_equal(hec_signals_add(&s, first, &why), HEC_OK);
    assert_int_equal(hec_signals_add(&s, second, &why), HEC_OK);
    assert_string_equal(hec_signals_label(&s, label), "average, Electricity Maps, DE, life cycle");
    assert_true(hec_signals_at(&s, DAY_S + 3600) == 200 && hec_signals_at(&s, DAY_S + 5400) == 300);
    /* 200 for half an hour, 300 for half an hour, 400 for a quarter of one */
    assert_true(fabs(hec_signals_mean(&s, (double)DAY_S + 3600, (double)DAY_S + 8100) - 280) < 1e-9);
    assert_true(hec_signals_mean(&s, (double)DAY_S + 0.5, (double)DAY_S + 0.5) == 100);
    assert_true(isnan(hec_signals_mean(&s, (double)DAY_S, (double)DAY_S + 9001)));
    assert_true(isnan(hec_signals_mean(&s, (double)DAY_S - 1, (double)DAY_S + 10)));
    put(second, WATTTIME("co2_moer", "lbs_co2_per_mwh", "{\"point_time\":\"2026-01-01T00:00:00Z\",\"value\":1}"));
    assert_int_equal(hec_signals_renew(&s, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "second has marginal carbon"));
    assert_true(hec_signals_at(&s, DAY_S + 5400) == 300);
    hec_signals_free(&s);
    assert_int_equal(hec_signals_add(&s, first, &why), HEC_OK);
    assert_int_equal(hec_signals_add(&s, second, &why), HEC_ERR_USAGE);
    put(second, MAPS "2026-01-01 01:30:00,F,F,FR,1,300,false\n2026-01-01 02:00:00,F,F,FR,1,400,false\n");
    assert_int_equal(hec_signals_add(&s, second, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "not to be mixed"));
    hec_signals_free(&s);
}
