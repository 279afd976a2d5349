/* The levers that a run was made under, from its facts: what was asked for, and what each said of itself. */
#include "cli/load_levers.h"

#include <stdio.h>
#include <string.h>

static const char *said(struct hec_reader *reader, const char *by, const char *name, const char *state) {
    char key[96];
    snprintf(key, sizeof key, "%slever.%s%s%s", by, name, state[0] ? "." : "", state);
    return hec_reader_meta(reader, key);
}

static void put(struct hec_lever_summary *out, enum hec_attest attest, const char *text) {
    out->attest = attest;
    snprintf(out->text, sizeof out->text, "%s", text);
}

/* The strongest of what the environment and the processes said: a key a state, and what was seen. */
static void find_states(struct hec_reader *reader, struct hec_lever_summary *out) {
    static const char *const by[] = {"", "python."};
    for (int state = 0; state < HEC_ATTESTS; state++)
        for (size_t i = 0; i < sizeof by / sizeof by[0]; i++) {
            const char *text = said(reader, by[i], out->name, hec_attest_name((enum hec_attest)state));
            if (text)
                put(out, (enum hec_attest)state, text);
        }
}

/* Run files until 2026-11-25 have one key a lever, "on: 3 optimizers", and one for why it did nothing. */
static void find_old_form(struct hec_reader *reader, const char *by, struct hec_lever_summary *out) {
    const char *text = said(reader, by, out->name, ""), *why = said(reader, by, out->name, "why");
    if (why && out->attest == HEC_ATTEST_NOTHING)
        put(out, HEC_ATTEST_NOTHING, why);
    for (int state = 0; text && state < HEC_ATTESTS; state++) {
        const char *name = hec_attest_name((enum hec_attest)state);
        size_t length = strlen(name);
        if (strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
            put(out, (enum hec_attest)state, text + length + 2);
    }
}

int hec_load_levers(struct hec_reader *reader, struct hec_lever_summary list[HEC_SUMMARY_LEVERS_MAX]) {
    const char *asked = hec_reader_meta(reader, "levers");
    char copy[1024], *rest = copy, *word;
    int count = 0;
    snprintf(copy, sizeof copy, "%s", asked ? asked : "");
    while ((word = strsep(&rest, ",")) && count < HEC_SUMMARY_LEVERS_MAX) {
        struct hec_lever_summary *lever = &list[count];
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (!*word)
            continue;
        *lever = (struct hec_lever_summary){.attest = HEC_ATTEST_NOTHING};
        snprintf(lever->name, sizeof lever->name, "%s", word);
        snprintf(lever->value, sizeof lever->value, "%s", value ? value : "");
        find_old_form(reader, "", lever);
        find_old_form(reader, "python.", lever);
        find_states(reader, lever);
        count++;
    }
    return count;
}
