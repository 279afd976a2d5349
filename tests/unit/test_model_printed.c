/* Units that a program prints: what is a pattern, and which number a line says. */
#include "model/printed.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

TEST(test_rates_and_counts) {
    struct hec_printed_unit unit;
    struct hec_why why = {""};
    assert_int_equal(hec_printed_parse("tok/s=Step tok/sec: ([0-9]+)", &unit, &why), HEC_OK);
    assert_string_equal(unit.name, "tok");
    assert_string_equal(unit.pattern, "Step tok/sec: ([0-9]+)");
    assert_true(unit.rate);
    assert_int_equal(hec_printed_parse("batch=n=([0-9]+)", &unit, &why), HEC_OK);
    assert_string_equal(unit.name, "batch");
    assert_false(unit.rate);
    assert_string_equal(unit.pattern, "n=([0-9]+)");
}

TEST(test_what_is_no_pattern) {
    static const struct {
        const char *text, *says;
    } wrong[] = {{"tok", "NAME=PATTERN"},         {"=([0-9]+)", "NAME=PATTERN"}, {"/s=([0-9]+)", "NAME=PATTERN"},
                 {"tok=([0-9]", "Unmatched"},     {"tok=[0-9]+", "0 groups"},    {"tok=(a)(b)", "2 groups"},
                 {"tok=a\n([0-9]+)", "one line"}, {"it=tqdm", "it/s=tqdm"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hec_printed_unit unit;
        struct hec_why why = {""};
        assert_int_equal(hec_printed_parse(wrong[i].text, &unit, &why), HEC_ERR_USAGE);
        assert_non_null(strstr(why.text, wrong[i].says));
    }
}

static double said(const char *text, const char *line) {
    struct hec_printed_unit unit;
    struct hec_printed_matcher matcher;
    struct hec_why why = {""};
    double number = NAN;
    assert_int_equal(hec_printed_parse(text, &unit, &why), HEC_OK);
    assert_int_equal(hec_printed_compile(&unit, &matcher, &why), HEC_OK);
    bool found = hec_printed_match(&matcher, line, &number);
    hec_printed_release(&matcher);
    return found ? number : NAN;
}

TEST(test_numbers) {
    static const struct {
        const char *group;
        double number; /* NAN: none */
    } as[] = {{"1159", 1159}, {"2.5e3", 2500}, {"1,234.5", 1234.5}, {"12.5k", 12500}, {"3M", 3e6},
              {".5", 0.5},    {"-3", NAN},     {"nan", NAN},        {"inf", NAN},     {"1e30", NAN},
              {"12 x", NAN},  {"", NAN},       {"0x10", NAN},       {"7kk", NAN}};
    for (size_t i = 0; i < sizeof as / sizeof as[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "rate <%s>", as[i].group);
        double number = said("tok/s=<(.*)>", line);
        assert_true(isnan(as[i].number) ? isnan(number) : fabs(number - as[i].number) < 1e-9 * as[i].number);
    }
    assert_true(isnan(said("tok/s=tok/s: ([0-9]+)", "tokens/s: 5")));
}

TEST(test_bars_of_tqdm) {
    static const struct {
        const char *line;
        double rate; /* NAN: none */
    } bars[] = {{" 45%|####5     | 45/100 [00:10<00:12,  4.50it/s]", 4.5},
                {"epoch 1:  45%|##| 45/100 [1:00:10<?, 4.50img/s, loss=0.1]", 4.5},
                {"128it [00:10, 12.8it/s]", 12.8},
                {"  1%|1| 1.00k/100k [00:10<00:12, 4.5kB/s]", 4500},
                {"  1%|1| 3/100 [00:10<05:12,  4.00s/it]", 0.25},
                {"  1%|1| 3/100 [00:10<05:12,  4.00s/it, loss=1]", 0.25},
                {"  0%|          | 0/100 [00:00<?, ?it/s]", NAN},
                {"speed 4.5it/s", NAN}};
    for (size_t i = 0; i < sizeof bars / sizeof bars[0]; i++) {
        double rate = said("it/s=tqdm", bars[i].line);
        assert_true(isnan(bars[i].rate) ? isnan(rate) : fabs(rate - bars[i].rate) < 1e-9);
    }
}

ALL_TESTS(NULL, NULL)
