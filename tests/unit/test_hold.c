/* The longest time that a device is held between two works, from pieces in words. */
#include "diagnose/limits.h"
#include "diagnose/states/hold.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static struct hec_hold_search search;
static int64_t now_ms;

/* "compute 600, host 3000": states and milliseconds; "unseen": time that nobody saw. */
static void play(const char *text) {
    search = (struct hec_hold_search){0};
    now_ms = 0;
    for (; *text; text += strcspn(text, ",") + (strchr(text, ',') ? 2 : 0)) {
        char name[16];
        int ms, state = 0;
        assert_int_equal(sscanf(text, "%15[a-z] %d", name, &ms), 2);
        bool unseen = strcmp(name, "unseen") == 0;
        while (!unseen && strcmp(hec_state_name((enum hec_state)state), name) != 0)
            assert_true(++state < HEC_STATE_COUNT);
        const struct hec_state_piece piece = {.start_ns = now_ms * 1000000,
                                              .end_ns = (now_ms + ms) * 1000000,
                                              .state = (uint8_t)(unseen ? HEC_STATE_UNKNOWN : state),
                                              .frame = (uint32_t)now_ms + 1,
                                              .traced = !unseen};
        hec_hold_piece(&search, &piece);
        now_ms += ms;
    }
}

static void is(int from_ms, int to_ms) {
    assert_int_equal(search.longest.from_ns / 1000000, from_ms);
    assert_int_equal(search.longest.to_ns / 1000000, to_ms);
}

TEST(the_longest_between_two_works) {
    play("startup 500, compute 600, host 3000, compute 10, host 5000, compute 10, host 4000, compute 10");
    is(4110, 9110);
    play("compute 600, host 2000, launch 10, host 2990, compute 10"); /* in pieces, with a little of another state */
    is(600, 5600);
    assert_int_equal(search.longest.frame, 2610 + 1);              /* of its longest piece */
    play("compute 600, host 3000, copy 1, host 2500, compute 10"); /* copying is work */
    is(600, 3600);
}

TEST(what_is_none) {
    play("compute 600, host 3000"); /* it does not work again: what comes after the last work is another matter */
    is(0, 0);
    play(
        "compute 499, host 3000, compute 600, host 100, compute 1"); /* set-up comes before the first work that is worth it */
    is(1099 + 3000, 1199 + 3000);
    play("compute 600, data 3000, compute 600"); /* its loader's */
    is(0, 0);
    play("compute 600, host 2600, sync 400, compute 600"); /* more than a tenth is another's */
    is(0, 0);
    play("compute 600, host 2700, sync 300, compute 600");
    is(600, 3600);
    play("compute 600, requests 9000, compute 600");
    is(0, 0);
    play("compute 600, host 3000, unseen 5000, compute 10"); /* nobody knows how much longer */
    is(600, 3600);
    play("unseen 5000, host 3000, compute 10"); /* nor whether it worked */
    is(0, 0);
}

ALL_TESTS(NULL, NULL)
