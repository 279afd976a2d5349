/* Which jobs take part in the power budget, by the file of --power-classes: good ones, wrong ones, and anything. */
#include "agent/power_rules.h"
#include "bench/uniform.h"
#include "unit.h"

static struct hec_power_rules rules;
static struct hec_why why;

static int parse(const char *text) {
    why.text[0] = '\0';
    return hec_power_rules_parse(text, strlen(text), &rules, &why);
}

static double slowdown_of(enum hec_power_class power_class, double co2, int hour) {
    return hec_power_rules_slowdown(&rules, power_class, &(struct hec_when_now){co2, NAN, 60 * hour});
}

TEST(how_slow_a_class_may_be_goes_by_the_grid) {
    assert_int_equal(
        parse("slowdown low 10% when co2<200 | 22:00-06:00\nslowdown low 40\nslowdown high 1% when price<0.1\nlow"),
        HEC_OK);
    assert_true(slowdown_of(HEC_POWER_LOW, 150, 12) == 0.1);
    assert_true(slowdown_of(HEC_POWER_LOW, 250, 12) == 0.4);
    assert_true(slowdown_of(HEC_POWER_LOW, NAN, 12) == 0.4);
    assert_true(slowdown_of(HEC_POWER_LOW, 250, 23) == 0.1);
    assert_true(slowdown_of(HEC_POWER_HIGH, 150, 12) == 0.02); /* no price is known: what holds without a word */
    assert_true(hec_power_rules_ask(&rules, HEC_WHEN_CO2) && hec_power_rules_ask(&rules, HEC_WHEN_PRICE));
    assert_int_equal(parse("slowdown low 40"), HEC_OK);
    assert_false(hec_power_rules_ask(&rules, HEC_WHEN_CO2));
}

TEST(the_first_rule_that_fits_counts) {
    const struct hec_tenant train = {.user = "alice", .command = "python train.py --lr 3", .job = "17"};
    const struct hec_tenant pod = {.pod_namespace = "prod", .pod = "web-1", .container = "main"}, bob = {.user = "bob"};
    assert_int_equal(
        parse(
            "# who\nhigh namespace=prod pod=web-?\n\n  normal user=alice command=*train.py* # hers\nlow job=*\nslowdown low 30%"),
        HEC_OK);
    assert_int_equal(rules.count, 3);
    assert_int_equal(hec_power_rules_class(&rules, &pod), HEC_POWER_HIGH);
    assert_int_equal(hec_power_rules_class(&rules, &train), HEC_POWER_NORMAL);
    assert_int_equal(hec_power_rules_class(&rules, &bob), HEC_POWER_CLASS_COUNT);
    assert_true(slowdown_of(HEC_POWER_LOW, NAN, 0) == 0.3 && slowdown_of(HEC_POWER_HIGH, NAN, 0) == 0.02);
    assert_int_equal(parse("low job=*\nnormal"), HEC_OK); /* without a key: everybody */
    assert_int_equal(hec_power_rules_class(&rules, &train), HEC_POWER_LOW);
    assert_int_equal(hec_power_rules_class(&rules, &bob), HEC_POWER_NORMAL);
    assert_int_equal(parse("low user=*"), HEC_OK); /* a job without a user is not of any */
    assert_int_equal(hec_power_rules_class(&rules, &pod), HEC_POWER_CLASS_COUNT);
    assert_int_equal(parse(""), HEC_OK);
    assert_int_equal(hec_power_rules_class(&rules, &train), HEC_POWER_CLASS_COUNT);
}

TEST(what_is_wrong_is_said_with_its_line) {
    static const struct {
        const char *text, *says;
    } row[] = {{"high\nhigher user=a", "line 2: there is no class \"higher\": high, normal or low"},
               {"low user", "line 1: \"user\" is not KEY=PATTERN"},
               {"low user=", "line 1: \"user=\" is not KEY=PATTERN"},
               {"\n\nlow usr=a", "line 3: there is no key \"usr\": namespace, pod, container, job, user or command"},
               {"slowdown", "line 1: it is not \"slowdown CLASS PERCENT [when EXPR]\""},
               {"slowdown low 91", "line 1: it is not \"slowdown CLASS PERCENT [when EXPR]\""},
               {"slowdown low -1%", "line 1: it is not \"slowdown CLASS PERCENT [when EXPR]\""},
               {"slowdown low nan", "line 1: it is not \"slowdown CLASS PERCENT [when EXPR]\""},
               {"slowdown low 5% 6%", "line 1: it is not \"slowdown CLASS PERCENT [when EXPR]\""},
               {"slowdown low 5% when", "line 1: \"when\": column"},
               {"slowdown low 5% when co2>3", "line 1: \"when\": column"},
               {"low user=a user=a user=a user=a user=a user=a user=a", "line 1: a rule has at most 6 conditions"}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_equal(parse(row[i].text), HEC_ERR_USAGE);
        if (strncmp(why.text, row[i].says, strlen(row[i].says)) != 0)
            fail_msg("%s: %s", row[i].text, why.text);
    }
    assert_int_equal(hec_power_rules_parse("low\0\n", 5, &rules, &why), HEC_ERR_USAGE);
    char text[8192];
    memset(text, 'a', sizeof text);
    assert_int_equal(hec_power_rules_parse(text, sizeof text, &rules, &why), HEC_ERR_USAGE);
    size_t length = 0;
    for (int i = 0; i <= HEC_POWER_RULES_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "low\n");
    assert_int_equal(hec_power_rules_parse(text, length, &rules, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "line 257: there are more than 256 rules");
}

/* Whatever is in the file: a sentence or rules, and nothing else. */
TEST(anything_may_be_in_it) {
    static const char *const words[] = {"high", "low", " ",  "\n", "user=",      "*",  "=", "slowdown",
                                        "5%",   "#",   "\0", "[",  "command=[a", "\r", "é"};
    for (int run = 0; run < 20000; run++) {
        char text[256];
        size_t length = 0;
        for (int i = 0; i < 12; i++) {
            const char *word = words[(size_t)(uniform() * (double)(sizeof words / sizeof words[0]))];
            size_t size = word[0] ? strlen(word) : 1;
            memcpy(text + length, word, size);
            length += size;
        }
        int err = hec_power_rules_parse(text, length, &rules, &why);
        assert_true(err == HEC_OK || (err == HEC_ERR_USAGE && strncmp(why.text, "line ", 5) == 0));
        for (int i = 0; i < rules.count; i++)
            assert_true(rules.rules[i].power_class < HEC_POWER_CLASS_COUNT);
    }
}
