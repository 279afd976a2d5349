/* Counters that are shown later: nothing too early, nothing for ever, and nothing lost where counters are joined. */
#include "agent/late.h"
#include "base/clock.h"
#include "bench/uniform.h"
#include "unit.h"

#define S HEC_NS_PER_S
#define LAG (16 * S)

TEST(without_a_lag_nothing_is_late) {
    assert_null(hec_late_new(3, 0));
    hec_late_add(NULL, 0, 5, S);
    hec_late_move(NULL, 0, 1);
    hec_late_pass(NULL, S);
    assert_int_equal(hec_late_of(NULL, 0), 0);
    assert_int_equal(hec_late_lag(NULL), 0);
    hec_late_free(NULL);
}

TEST(what_was_added_is_late_for_a_lag) {
    struct hec_late *late = hec_late_new(3, LAG);
    assert_int_equal(hec_late_lag(late), LAG);
    hec_late_add(late, 1, 5, 100 * S);
    hec_late_add(late, 2, 7, 108 * S);
    hec_late_pass(late, 100 * S + LAG - 1);
    assert_int_equal(hec_late_of(late, 1), 5);
    hec_late_pass(late, 100 * S + LAG);
    assert_int_equal(hec_late_of(late, 1), 0);
    assert_int_equal(hec_late_of(late, 2), 7);
    hec_late_move(late, 2, 0);
    assert_int_equal(hec_late_of(late, 2), 0);
    assert_int_equal(hec_late_of(late, 0), 7);
    hec_late_pass(late, 108 * S + LAG);
    assert_int_equal(hec_late_of(late, 0), 0);
    hec_late_free(late);
}

/* At any pace, from a hundred times a lag to once in several: what is shown is what was there between a lag and 17/16 of it ago. */
TEST(what_is_shown_is_of_a_lag_ago) {
    for (int pace = 0; pace < 4; pace++) {
        static const int64_t most_ns[] = {LAG / 100, LAG / 16, LAG / 5, 3 * LAG};
        enum { MANY = 2000 };
        static int64_t at_ns[MANY], sum[MANY];
        struct hec_late *late = hec_late_new(2, LAG);
        int64_t now_ns = 0, total = 0;
        for (int i = 0; i < MANY; i++) {
            now_ns += 1 + (int64_t)(uniform() * (double)most_ns[pace]);
            int64_t more = 1 + (int64_t)(uniform() * 1000);
            hec_late_add(late, 1, more, now_ns);
            at_ns[i] = now_ns;
            sum[i] = total += more;
            if (i % 3 == 0)
                hec_late_pass(late, now_ns);
            int64_t shown = total - hec_late_of(late, 1), least = 0, most = 0;
            for (int k = 0; k < i; k++) {
                most = at_ns[k] <= now_ns - LAG ? sum[k] : most;
                least = at_ns[k] <= now_ns - LAG - LAG / 16 ? sum[k] : least;
            }
            assert_true(shown >= least && shown <= most);
        }
        hec_late_free(late);
    }
}
