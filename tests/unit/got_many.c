/* For test_tracer_got_fork: 24000 slots that name a function of another module. */
extern int got_call(int value);
int got_many_call(int at, int value);

#define TEN(x) x, x, x, x, x, x, x, x, x, x
#define THOUSAND(x) TEN(TEN(TEN(x)))
#define FOUR_THOUSAND(x) THOUSAND(x), THOUSAND(x), THOUSAND(x), THOUSAND(x)

static int (*volatile const many[])(int) = {FOUR_THOUSAND(got_call), FOUR_THOUSAND(got_call), FOUR_THOUSAND(got_call),
                                            FOUR_THOUSAND(got_call), FOUR_THOUSAND(got_call), FOUR_THOUSAND(got_call)};

__attribute__((visibility("default"))) int got_many_call(int at, int value) {
    return many[at](value);
}
