/* The levers that a run was made under, from its facts: what was asked for, and what each said of itself. */
#include "cli/load_levers.h"

#include <stdio.h>
#include <string.h>

static const char *said(struct hec_reader *reader, const char *before, const char *name, const char *after) {
    char key[96];
    snprintf(key, sizeof key, "%slever.%s%s", before, name, after);
    return hec_reader_meta(reader, key);
}

/* "on: 3 optimizers" */
static void attest(const char *text, struct hec_lever_summary *out) {
    const char *colon = text ? strstr(text, ": ") : NULL;
    for (int i = 0; colon && i < HEC_ATTESTS; i++) {
        const char *name = hec_attest_name((enum hec_attest)i);
        if (strlen(name) == (size_t)(colon - text) && strncmp(name, text, (size_t)(colon - text)) == 0) {
            out->attest = (enum hec_attest)i;
            snprintf(out->text, sizeof out->text, "%s", colon + 2);
        }
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
        const char *why = said(reader, "python.", lever->name, ".why");
        snprintf(lever->text, sizeof lever->text, "%s", why ? why : "");
        attest(said(reader, "", lever->name, ""), lever);
        attest(said(reader, "python.", lever->name, ""), lever);
        count++;
    }
    return count;
}
