/* Reasons in words: of every row of diagnose/reasons.def. */
#include "unit.h"

#include "report/words/reasons.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *id, *numbers;
} rows[HEC_REASON_COUNT] = {
#define HEC_REASON(id, ...) [HEC_REASON_##id] = {#id, #__VA_ARGS__},
#define HEC_REASON_PLAIN(id) [HEC_REASON_##id] = {#id, ""},
#include "diagnose/reasons.def"
};

static int numbers_of(enum hec_reason_id id) {
    int count = rows[id].numbers[0] != '\0';
    for (const char *c = rows[id].numbers; *c; c++)
        count += *c == ',';
    return count;
}

/* Words name no number that their row has not, and say each that it has; nothing is left of the braces. */
TEST(each_reason_says_its_numbers) {
    for (int id = HEC_REASON_NONE + 1; id < HEC_REASON_COUNT; id++) {
        struct hec_reason reason = {.id = id, .text = "as recorded", .number = {2, 3, 5, 7, 11}};
        char words[HEC_REASON_SIZE], other[HEC_REASON_SIZE];
        hec_reason_words(words, &reason);
        if (!words[0] || strpbrk(words, "{}[]|?#"))
            fail_msg("%s: \"%s\"", rows[id].id, words);
        for (int i = 0; i < numbers_of(id); i++) {
            double before = reason.number[i];
            reason.number[i] = 0;
            if (strcmp(hec_reason_words(other, &reason), words) == 0)
                fail_msg("%s does not say its number %d of %s", rows[id].id, i, rows[id].numbers);
            reason.number[i] = before;
        }
    }
}

TEST(reasons_in_words) {
    const struct {
        struct hec_reason reason;
        const char *words;
    } cases[] = {
        {HEC_BECAUSE(NONE), ""},
        {hec_reason_said(""), ""},
        {hec_reason_said(NULL), ""},
        {hec_reason_said("there is no driver {x}"), "there is no driver {x}"},
        {HEC_BECAUSE_OF(LOST, 3.204, 1234567, 2),
         "the device was lost at 3.20 s: 1.23457e+06 J are what it took in the 2.00 s "
         "until its last reading"},
        {HEC_BECAUSE_OF(FEW_READINGS, 1),
         "the counter gave 1 reading that do not span half of the run, and there is no power history"},
        {HEC_BECAUSE_OF(WIDE_BOUND, 12.3), "the bound of 12.3 J is more than 10 % of the energy"},
        {HEC_BECAUSE(LEVEL_NEVER_IDLE), "unknown: the device was not idle with a context for 0.3 s in this run"},
        {HEC_BECAUSE(LEVEL_LOWEST), "estimated from the lowest 5 % of the power samples"},
        {hec_reason_with(HEC_BECAUSE_OF(USED_PROCESSES, 3, 41), "python"),
         "3 processes of the command had a context on it, first 41 (python)"},
        {HEC_BECAUSE_OF(TRIAL_FAILED, 3), "exit status 3"},
        {hec_reason_with(HEC_BECAUSE_OF(TRIAL_DEVICE_MEMORY, 1), "OutOfMemoryError"),
         "out of the GPU's memory, exit status 1: OutOfMemoryError"},
        {HEC_BECAUSE_OF(TRIAL_WRONG, false, 0.301), "outputs of the same pass differ by 0.3 of their size"},
        {HEC_BECAUSE_OF(TRIAL_WRONG, true, 0.012), "gradients of the same pass differ by 0.012 of their size"},
        {HEC_BECAUSE_OF(TRIAL_WRONG_WHOLLY, true), "gradients of the same pass are not finite, or of another shape"},
        {HEC_BECAUSE_OF(TRIAL_GRADIENTS, 1, 2.5), "gradients of a part of it are 2.5 times as large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(HEC_SAY(&cases[i].reason), cases[i].words);
}

/* Words of others may be long: they are cut at the room that there is. */
TEST(long_words_are_cut) {
    char text[2 * HEC_REASON_SIZE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const struct hec_reason reason = hec_reason_said(text);
    assert_int_equal(strlen(HEC_SAY(&reason)), HEC_REASON_TEXT - 1);
}
