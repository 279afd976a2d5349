/* A comparison as Markdown, for a pull request. */
#include "report/words/answer.h"
#include "report/compare/words.h"
#include "report/markdown.h"

#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

static void put_quantities(const struct hec_versus *v, const struct hec_answer *answer, struct hec_buf *out) {
    char of[192];
    hec_markdown_text(out, "\nCompared: ", hec_quantities_of(of, v), "\n\n");
    hec_answer_table_markdown(out, answer);
}

static void put_state(const char *name, const struct hec_delta_state *s, struct hec_buf *out) {
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
        hec_markdown_text(out, "\nLedger, ", hec_delta_per(per, v), "");
        hec_buf_puts(out, ", of all devices and whole runs:\n\n| | A | B | B - A | A | B | B - A |\n"
                          "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for (int i = 0; i < v->moved.state_count; i++)
            put_state(hec_state_name(v->moved.state[i].state), &v->moved.state[i], out);
        put_state("all", &v->moved.sum, out);
    }
    for (int i = 0; i < v->moved.cause_count; i++) {
        hec_buf_printf(out, "%s- %s: ", i ? "" : "\nFindings:\n\n", hec_delta_fate(&v->moved.cause[i]));
        hec_markdown_text(out, "", hec_delta_words(words, v, &v->moved.cause[i]), "\n");
    }
}

static void put_runs(const struct hec_versus *v, struct hec_buf *out) {
    hec_buf_puts(out, "\n");
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < v->side[at].count; i++) {
            hec_markdown_text(out, at ? "- B: " : "- A: ", v->side[at].runs[i].file, "");
            hec_markdown_text(out, ": ", v->side[at].runs[i].command, "\n");
        }
}

int hec_versus_markdown(const struct hec_versus *v, struct hec_buf *out) {
    struct hec_answer answer = hec_versus_answer(v);
    char sentence[HEC_ANSWER_SENTENCE], notes[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE], unlike[1200];
    hec_markdown_text(out, "**", hec_answer_sentence(sentence, &answer), "**\n");
    int count = hec_versus_notes(v, notes);
    for (int i = 0; i < count; i++) {
        hec_markdown_text(out, i ? "- " : "\n- ", notes[i], "\n");
    }
    put_quantities(v, &answer, out);
    put_moved(v, out);
    for (int i = 0; i < v->unlikes.count; i++) {
        hec_markdown_text(out, i ? "- " : "\nWhat differs:\n\n- ",
                          hec_condition_difference_words(unlike, sizeof unlike, &v->unlikes.list[i]), "\n");
    }
    put_runs(v, out);
    return hec_buf_error(out);
}
