#include "report/run/parallelism.h"

#include "diagnose/limits.h"
#include "report/format.h"
#include "report/markdown.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LAUNCH "accelerate launch "
#define CELLS 6

static const struct {
    const char *title, *does, *how, *options;
} words[] = {
#define HEC_WORDS_STRATEGY(id, title, does, how, options) {title, does, how, options},
#include "report/words/parallelism.def"
};
static const char *const lacks_words[] = {
#define HEC_WORDS_LACK(id, words) words,
#include "report/words/parallelism.def"
};
_Static_assert(sizeof words / sizeof words[0] == HEC_STRATEGIES, "words for each");
_Static_assert(sizeof lacks_words / sizeof lacks_words[0] == HEC_LACKS, "words for each");

const char *hec_strategy_how(enum hec_strategy strategy) {
    return words[strategy].how;
}

char *hec_lacks_words(char *out, size_t size, uint32_t lacks) {
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < HEC_LACKS && length < size; i++)
        if (lacks >> i & 1)
            length += (size_t)snprintf(out + length, size - length, "%s%s", length ? "; " : "", lacks_words[i]);
    return out;
}

char *hec_strategy_command(char *out, size_t size, const struct hec_summary *s, const struct hec_parallelism *p,
                           enum hec_strategy strategy) {
    const char *command = s->command, *rest = command + strlen(LAUNCH);
    char processes[32] = "";
    out[0] = '\0';
    /* what it says by itself would be another setting beside ours */
    if (strncmp(command, LAUNCH, strlen(LAUNCH)) != 0 || !words[strategy].options[0] || strategy == p->now ||
        strstr(command, " --use_") || strstr(command, "--config_file") || strstr(command, "--multi_gpu"))
        return out;
    if (!strstr(command, "--num_processes"))
        snprintf(processes, sizeof processes, "--num_processes %d ", p->devices);
    if ((size_t)snprintf(out, size, "hec ab -- %s ::: " LAUNCH "%s%s %s", command, processes, words[strategy].options,
                         rest) >= size)
        out[0] = '\0'; /* half of a command is none */
    return out;
}

/* ---- the table ---- */

static const char *const heads[CELLS] = {"memory", "fits", "a step", "from", "to", "energy"};
static const int widths[CELLS] = {9, 7, 9, 9, 9, 8};

typedef char cells[CELLS][HEC_FORMAT_SIZE];

static const char *fits_words(enum hec_fits fits) {
    static const char *const text[HEC_FITS_COUNT] = {"?", "yes", "hardly", "no"};
    return text[fits];
}

static void put_cell(char cell[HEC_FORMAT_SIZE], double value, char *(*format)(char *, double)) {
    if (isfinite(value))
        format(cell, value);
    else
        strcpy(cell, "-");
}
static char *bytes(char *cell, double value) {
    return hec_format_bytes(cell, value, "");
}
static char *seconds(char *cell, double value) {
    return hec_format_si(cell, value, 3, "s");
}
static char *joules(char *cell, double value) {
    return hec_format_si(cell, value, 3, "J");
}

/* What the run itself was measured to take. */
static void now_cells(const struct hec_parallelism *p, cells out) {
    put_cell(out[0], p->allocated + p->outside_bytes, bytes);
    strcpy(out[1], "");
    put_cell(out[2], p->step_s, seconds);
    strcpy(out[3], "");
    strcpy(out[4], "");
    put_cell(out[5], p->step_j, joules);
}

static void row_cells(const struct hec_strategy_row *row, cells out) {
    put_cell(out[0], row->memory_bytes, bytes);
    strcpy(out[1], fits_words(row->fits));
    put_cell(out[2], row->step_s, seconds);
    put_cell(out[3], row->low_s, seconds);
    put_cell(out[4], row->high_s, seconds);
    put_cell(out[5], row->step_j, joules);
}

static bool made(const struct hec_summary *s, struct hec_parallelism *p) {
    if (!s->sizes.known)
        return false;
    hec_parallelism_find(s, p);
    return !p->lacks;
}

static void put_line(struct hec_page *page, const char *label, enum hec_tone tone, cells of, const char *last) {
    char line[256] = "";
    for (int i = 0; i < CELLS; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%*.*s", widths[i], widths[i], of[i]);
    hec_page_line(page, 2, label, tone, "%s %s", line, last);
}

/* By what the seconds go. */
static void put_basis(struct hec_page *page, const struct hec_parallelism *p) {
    static const char *const buses[HEC_BUSES] = {"", "as the run's own collectives show",
                                                 "NVLink as the vendor states it: seconds are at least so many",
                                                 "PCIe at the link's peak: seconds are at least so many"};
    char rate[HEC_FORMAT_SIZE], margin[HEC_FORMAT_SIZE];
    if (p->bus)
        hec_page_row(page, 2, "", HEC_TONE_DIM, "between devices: %s one way, %s%s%s",
                     hec_format_bytes(rate, p->bus_bytes_per_s, "/s"), buses[p->bus],
                     p->comm_assumed ? "; watts in communication are taken for the middle of idle and busy" : "",
                     p->backward_assumed ? "; the backward pass for two thirds of the compute" : "");
    if (p->unexplained_s >= HEC_PARALLELISM_BETTER * p->step_s)
        hec_page_row(
            page, 2, "", HEC_TONE_DIM,
            "%s of the run's step are more than is predicted of it, as where ranks wait for each other: \"to\" has all of that, "
            "\"from\" nothing",
            hec_format_si(rate, p->unexplained_s, 3, "s"));
    hec_page_row(
        page, 2, "", HEC_TONE_DIM,
        "predicted, until it is tried. Seconds and joules are of a device and a step, in which each has as much work as one has "
        "here; memory is at most, and fits up to %s of the device's",
        hec_format_share(margin, HEC_PARALLELISM_MARGIN));
}

static void put_table(struct hec_page *page, const struct hec_parallelism *p) {
    cells of;
    char card[HEC_FORMAT_SIZE];
    memset(of, 0, sizeof of);
    hec_page_row(page, 0, "Parallelism", HEC_TONE_PLAIN, "%d x %s (%s)", p->devices, p->card,
                 isfinite(p->card_bytes) ? hec_format_bytes(card, p->card_bytes, "") : "memory unknown");
    for (int i = 0; i < CELLS; i++)
        strcpy(of[i], heads[i]);
    put_line(page, "", HEC_TONE_DIM, of, "");
    now_cells(p, of);
    put_line(page, "this run", HEC_TONE_PLAIN, of, "measured");
    for (int i = 0; i < HEC_STRATEGIES; i++) {
        if (!p->row[i].applies)
            continue;
        row_cells(&p->row[i], of);
        put_line(page, words[i].title, p->best == (enum hec_strategy)i ? HEC_TONE_BOLD : HEC_TONE_PLAIN, of,
                 p->now == (enum hec_strategy)i    ? "as run"
                 : p->best == (enum hec_strategy)i ? "best"
                                                   : "");
    }
    put_basis(page, p);
}

static void put_lacks(struct hec_page *page, const struct hec_parallelism *p) {
    char text[1024];
    uint32_t of_all = UINT32_MAX;
    for (int i = 0; i < HEC_STRATEGIES; i++)
        of_all &= p->row[i].applies ? p->row[i].lacks : UINT32_MAX;
    if (of_all != UINT32_MAX && of_all)
        hec_page_row(page, 2, "missing", HEC_TONE_WARN, "%s", hec_lacks_words(text, sizeof text, of_all));
    for (int i = 0; i < HEC_STRATEGIES; i++)
        if (p->row[i].applies && p->row[i].lacks & ~of_all)
            hec_page_row(page, 2, "missing", HEC_TONE_WARN, "of %s: %s", words[i].title,
                         hec_lacks_words(text, sizeof text, p->row[i].lacks & ~of_all));
}

/* What the ways are; and of a run, how each of those that apply is tried. */
static void put_ways(struct hec_page *page, const struct hec_summary *s, const struct hec_parallelism *p) {
    char command[2304];
    for (int i = 0; i < HEC_STRATEGIES; i++) {
        if (p && !p->row[i].applies)
            continue;
        hec_page_row(page, 0, words[i].title, HEC_TONE_PLAIN, "%s", words[i].does);
        hec_page_row(page, 0, "", HEC_TONE_DIM, "%s", words[i].how);
        if (p && hec_strategy_command(command, sizeof command, s, p, (enum hec_strategy)i)[0]) {
            strcat(command, "\n");
            hec_page_code(page, 13, command);
        }
    }
}

static void put_sizes(struct hec_page *page, const struct hec_sizes *z) {
    char count[HEC_FORMAT_SIZE], held[HEC_FORMAT_SIZE], gradients[HEC_FORMAT_SIZE], states[HEC_FORMAT_SIZE];
    hec_page_row(page, 0, "Model", HEC_TONE_PLAIN, "%s parameters, %s; gradients %s; states of %s %s",
                 hec_format_si(count, z->parameters, 3, ""), hec_format_bytes(held, z->bytes, ""),
                 hec_format_bytes(gradients, z->gradient_bytes, ""), z->optimizer[0] ? z->optimizer : "the optimizer",
                 hec_format_bytes(states, z->state_bytes, ""));
    if (z->layers)
        hec_page_row(page, 0, "", HEC_TONE_PLAIN, "%d layers of %s", z->layers,
                     hec_format_bytes(held, z->layer_bytes, ""));
    if (z->experts)
        hec_page_row(page, 0, "", HEC_TONE_PLAIN, "%d experts a layer, together %s", z->experts,
                     hec_format_bytes(held, z->expert_bytes, ""));
    if (isfinite(z->activations))
        hec_page_row(page, 0, "", HEC_TONE_PLAIN, "a forward pass leaves %s for the backward pass",
                     hec_format_bytes(held, z->activations, ""));
}

static const char *const about =
    "what sharing the training of a run out to several devices would hold, send and take: hec explain parallelism RUN";

int hec_parallelism_terminal(const struct hec_summary *s, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    struct hec_parallelism p;
    char text[1024];
    hec_page_init(&page, style, out);
    if (!s) {
        hec_page_row(&page, 0, HEC_PARALLELISM_WORD, HEC_TONE_BOLD, "%s", about);
        hec_page_blank(&page);
        put_ways(&page, NULL, NULL);
        return hec_buf_error(out);
    }
    hec_parallelism_find(s, &p);
    if (s->sizes.known)
        put_sizes(&page, &s->sizes);
    if (p.lacks) {
        hec_page_row(&page, 0, "Parallelism", HEC_TONE_WARN, "no figures: %s",
                     hec_lacks_words(text, sizeof text, p.lacks));
        return hec_buf_error(out);
    }
    hec_page_blank(&page);
    put_table(&page, &p);
    put_lacks(&page, &p);
    hec_page_blank(&page);
    put_ways(&page, s, &p);
    return hec_buf_error(out);
}

/* ---- in reports ---- */

void hec_terminal_parallelism(struct hec_page *page, const struct hec_summary *s) {
    struct hec_parallelism p;
    if (!page->all || !made(s, &p))
        return;
    hec_page_blank(page);
    put_table(page, &p);
    put_lacks(page, &p);
    hec_page_row(page, 2, "", HEC_TONE_DIM, "more: hec explain " HEC_PARALLELISM_WORD " %s", s->file);
}

void hec_markdown_parallelism(struct hec_buf *out, const struct hec_summary *s) {
    struct hec_parallelism p;
    cells of;
    if (!made(s, &p))
        return;
    hec_buf_printf(out, "\n<details><summary>Parallelism: %d x ", p.devices);
    hec_markdown_html(out, p.card);
    hec_buf_puts(out, ", predicted</summary>\n\n| |");
    for (int i = 0; i < CELLS; i++)
        hec_buf_printf(out, " %s |", heads[i]);
    hec_buf_puts(out, "\n| --- | ---: | --- | ---: | ---: | ---: | ---: |\n");
    for (int i = -1; i < HEC_STRATEGIES; i++) {
        if (i >= 0 && !p.row[i].applies)
            continue;
        if (i < 0)
            now_cells(&p, of);
        else
            row_cells(&p.row[i], of);
        hec_buf_printf(out, "| %s |", i < 0 ? "this run, measured" : words[i].title);
        for (int c = 0; c < CELLS; c++)
            hec_buf_printf(out, " %s |", of[c]);
        hec_buf_puts(out, "\n");
    }
    hec_buf_puts(out,
                 "\nOf a device and a step, in which each has as much work as one has in the run.\n\n</details>\n");
}
