/* A comparison as Markdown, for a pull request. */
#include "report/compare_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

/* Text from outside: nothing in it is markup. */
static void put(struct hec_buf *out, const char *from) {
    char clean[1100];
    hec_format_clean(clean, sizeof clean, from, true);
    for (const char *c = clean; *c; c++) {
        if (strchr("\\`*_{}[]<>#|~&", *c))
            hec_buf_puts(out, "\\");
        hec_buf_add(out, c, 1);
    }
}

static void put_quantities(const struct hec_versus *v, struct hec_buf *out) {
    char of[192];
    hec_buf_puts(out, "\nCompared: ");
    put(out, hec_quantities_of(of, v));
    hec_buf_puts(out, "\n\n| | A | B | B to A | 95 % interval | |\n| --- | ---: | ---: | ---: | ---: | --- |\n");
    for (int i = 0; i < HEC_QUANTITY_COUNT; i++) {
        struct hec_quantity_words words;
        if (!hec_quantity_words(v, i, &words))
            continue;
        hec_buf_printf(out, "| %s", words.label);
        hec_buf_printf(out, " | %s | %s | %s | %s | %s |\n", words.value[0], words.value[1], words.change, words.range,
                       words.shown);
    }
}

static void put_state(const char *name, const struct hec_moved_state *s, struct hec_buf *out) {
    hec_buf_printf(out, "| %s", name);
    for (int which = 0; which < 2; which++) {
        const double *of = which ? s->joules : s->seconds;
        const double values[] = {of[0], of[1], of[1] - of[0]};
        for (int i = 0; i < 3; i++) {
            text value;
            hec_buf_printf(out, " | %s", hec_format_si(value, values[i], 3, which ? "J" : "s"));
        }
    }
    hec_buf_puts(out, " |\n");
}

static void put_moved(const struct hec_versus *v, struct hec_buf *out) {
    char per[96], words[192];
    if (v->moved.state_count) {
        hec_buf_puts(out, "\nLedger, ");
        put(out, hec_moved_per(per, v));
        hec_buf_puts(out, ", of all devices and whole runs:\n\n| | A | B | B - A | A | B | B - A |\n"
                          "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for (int i = 0; i < v->moved.state_count; i++)
            put_state(hec_state_name(v->moved.state[i].state), &v->moved.state[i], out);
        put_state("all", &v->moved.sum, out);
    }
    for (int i = 0; i < v->moved.cause_count; i++) {
        hec_buf_printf(out, "%s- %s: ", i ? "" : "\nFindings:\n\n", hec_moved_fate(&v->moved.cause[i]));
        put(out, hec_moved_words(words, v, &v->moved.cause[i]));
        hec_buf_puts(out, "\n");
    }
}

static void put_runs(const struct hec_versus *v, struct hec_buf *out) {
    hec_buf_puts(out, "\n");
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < v->side[at].count; i++) {
            hec_buf_printf(out, "- %c: ", "AB"[at]);
            put(out, v->side[at].runs[i].file);
            hec_buf_puts(out, ": ");
            put(out, v->side[at].runs[i].command);
            hec_buf_puts(out, "\n");
        }
}

int hec_versus_markdown(const struct hec_versus *v, struct hec_buf *out) {
    char sentence[HEC_VERSUS_SENTENCE], notes[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE], unlike[1200];
    hec_buf_puts(out, "**");
    put(out, hec_versus_sentence(sentence, v));
    hec_buf_puts(out, "**\n");
    int count = hec_versus_notes(v, notes);
    for (int i = 0; i < count; i++) {
        hec_buf_puts(out, i ? "- " : "\n- ");
        put(out, notes[i]);
        hec_buf_puts(out, "\n");
    }
    put_quantities(v, out);
    put_moved(v, out);
    for (int i = 0; i < v->unlikes.count; i++) {
        hec_buf_puts(out, i ? "- " : "\nWhat differs:\n\n- ");
        put(out, hec_unlike_words(unlike, sizeof unlike, &v->unlikes.list[i]));
        hec_buf_puts(out, "\n");
    }
    put_runs(v, out);
    return hec_buf_error(out);
}
