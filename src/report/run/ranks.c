#include "report/run/ranks.h"

#include "report/format.h"
#include "report/markdown.h"
#include "report/words/findings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINE_COLUMNS 40
#define HOST_COLUMNS 13

char *hec_rank_line(char *text, size_t size, const struct hec_device_diagnosis *d) {
    const struct hec_source_line *most = NULL;
    for (int i = 0; d && i < d->steady_source.count; i++)
        most = !most || d->steady_source.lines[i].seconds > most->seconds ? &d->steady_source.lines[i] : most;
    text[0] = '\0';
    return most ? hec_place_words(text, size, most->file, most->line, most->function, LINE_COLUMNS) : text;
}

bool hec_job_is(const struct hec_summary *s) {
    return s->job.size > 1 || s->job.rank_count > 1;
}

static bool has(const struct hec_job_diagnosis *job, int number) {
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].number == number)
            return true;
    return false;
}

char *hec_job_missing(char text[HEC_JOB_MISSING_WORDS], const struct hec_job_diagnosis *job) {
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].number < 0)
            return text;
    for (int first = 0, last; first < job->size && length + 32 < HEC_JOB_MISSING_WORDS; first = last + 1) {
        for (last = first; last < job->size && !has(job, last); last++)
            ;
        if (last == first)
            continue;
        length += (size_t)snprintf(text + length, HEC_JOB_MISSING_WORDS - length, "%s%d", length ? ", " : "", first);
        if (last - first > 1)
            length += (size_t)snprintf(text + length, HEC_JOB_MISSING_WORDS - length, " to %d", last - 1);
    }
    return text;
}

/* ---- cells ---- */

static char *blank(char cell[HEC_FORMAT_SIZE]) {
    return strcpy(cell, "-");
}

static char *number(char cell[HEC_FORMAT_SIZE], int32_t rank) {
    if (rank < 0)
        return strcpy(cell, "?");
    snprintf(cell, HEC_FORMAT_SIZE, "%d", (int)rank);
    return cell;
}

static char *amount(char cell[HEC_FORMAT_SIZE], double value, const char *unit) {
    return isfinite(value) ? hec_format_si(cell, value, 3, unit) : blank(cell);
}

static char *host_of(char cell[HEC_FORMAT_SIZE], const struct hec_rank *r) {
    snprintf(cell, HEC_FORMAT_SIZE, "%.*s", HOST_COLUMNS - 1, r->host);
    return cell;
}

#define HEC_RANK_COLUMN(id, head, width, text)                                                                         \
    static char *rank_##id(char cell[HEC_FORMAT_SIZE], const struct hec_rank *r,                                       \
                           const struct hec_device_diagnosis *d) {                                                     \
        (void)r, (void)d;                                                                                              \
        return text;                                                                                                   \
    }
#include "report/run/rank.def"

static const struct {
    const char *head;
    int width;
    char *(*text)(char cell[HEC_FORMAT_SIZE], const struct hec_rank *r, const struct hec_device_diagnosis *d);
} columns[] = {
#define HEC_RANK_COLUMN(id, head, width, text) {head, width, rank_##id},
#include "report/run/rank.def"
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* Of one host its name is no news. */
static bool column_shown(const struct hec_job_diagnosis *job, int column) {
    bool several = false;
    for (int i = 1; i < job->rank_count; i++)
        several = several || strcmp(job->ranks[i].host, job->ranks[0].host) != 0;
    return several || columns[column].text != rank_host;
}

/* ---- rows ---- */

/* "and 57 more like rank 3"; "": all have a row. */
static char *others_of(const struct hec_job_diagnosis *job, char text[96]) {
    int left = 0, unusual = 0, like;
    text[0] = '\0';
    for (int i = 0; i < job->rank_count; i++) {
        left += !job->ranks[i].in_short_table;
        unusual += !job->ranks[i].in_short_table && job->ranks[i].unusual;
    }
    like = job->rank_count ? job->ranks[job->usual].number : -1;
    if (left && !unusual && like >= 0)
        snprintf(text, 96, "and %d more like rank %d", left, like);
    else if (left && like >= 0)
        snprintf(text, 96, "and %d more, %d of them like rank %d", left, left - unusual, like);
    else if (left)
        snprintf(text, 96, "and %d more", left);
    return text;
}

char *hec_job_words(const struct hec_summary *s, char *text, size_t size) {
    const struct hec_job_diagnosis *job = &s->job;
    const struct hec_collectives *c = &job->collectives;
    char mean[HEC_FORMAT_SIZE], missing[HEC_JOB_MISSING_WORDS];
    const char *launcher = job->rank_count ? job->ranks[0].launcher : "";
    int length = snprintf(text, size, "%d ranks%s%s", job->size > job->rank_count ? job->size : job->rank_count,
                          launcher[0] ? ", started by " : "", launcher);
    if (hec_job_missing(missing, job)[0])
        length += snprintf(text + length, size - (size_t)length, "; not in this run: %s", missing);
    if (job->joined)
        length += snprintf(text + length, size - (size_t)length, "; of %d run files, clocks set by %s", job->joined,
                           job->joined_by);
    if (c->matched) {
        length +=
            snprintf(text + length, size - (size_t)length, "; %lld collectives matched, %s each once all have begun",
                     (long long)c->matched, hec_format_si(mean, c->transfer_s, 3, "s"));
        if (isfinite(c->bus_bytes))
            snprintf(text + length, size - (size_t)length, ", %s on the bus",
                     hec_format_bytes(mean, c->bus_bytes / c->transfer_s, "/s"));
    } else {
        snprintf(text + length, size - (size_t)length,
                 c->on_host && c->count > 1 ? "; they wait for each other in collectives of the host, by their stacks"
                 : c->inferred              ? "; which rank they wait for is inferred from calls, stacks and telemetry"
                                            : "; which rank they wait for was not seen");
    }
    return text;
}

/* Where ranks hardly wait there is nothing to see in the rows. */
static bool shows_rows(const struct hec_summary *s) {
    bool any = s->job.joined > 0;
    for (int i = 0; i < s->job.findings.count; i++)
        any = any || (s->job.findings.list[i].cause == HEC_CAUSE_STRAGGLER && s->job.findings.list[i].actionable);
    return any;
}

void hec_terminal_ranks(struct hec_page *page, const struct hec_summary *s) {
    char words[HEC_JOB_WORDS], line[512], cell[HEC_FORMAT_SIZE], place[256], others[96];
    if (!hec_job_is(s))
        return;
    hec_job_words(s, words, sizeof words);
    hec_page_blank(page);
    hec_page_row(page, 0, "Job", HEC_TONE_PLAIN, "%s", words);
    for (int i = -1; i < s->job.rank_count && (page->all || shows_rows(s)); i++) {
        const struct hec_rank *r = i < 0 ? NULL : &s->job.ranks[i];
        const struct hec_device_diagnosis *d = r ? hec_rank_device(s, r) : NULL;
        if (r && !page->all && !r->in_short_table)
            continue;
        line[0] = '\0';
        for (int c = 1; c < COLUMNS; c++)
            if (column_shown(&s->job, c))
                snprintf(line + strlen(line), sizeof line - strlen(line), "%*s", columns[c].width,
                         r ? columns[c].text(cell, r, d) : columns[c].head);
        hec_page_line(page, 2, r ? columns[0].text(cell, r, d) : columns[0].head, r ? HEC_TONE_PLAIN : HEC_TONE_DIM,
                      "%s", line);
        if (r && (page->all || r->holds) && hec_rank_line(place, sizeof place, d)[0])
            hec_page_line(page, 4, "", HEC_TONE_DIM, "at %s", place);
    }
    if (!page->all && shows_rows(s) && others_of(&s->job, others)[0])
        hec_page_row(page, 2, "", HEC_TONE_DIM, "%s (-v shows each)", others);
}

void hec_markdown_ranks(struct hec_buf *out, const struct hec_summary *s) {
    char words[HEC_JOB_WORDS], cell[HEC_FORMAT_SIZE], place[256];
    if (!hec_job_is(s))
        return;
    hec_job_words(s, words, sizeof words);
    hec_markdown_text(out, "\n", words, "\n\n");
    for (int c = 0; c < COLUMNS; c++)
        if (column_shown(&s->job, c))
            hec_buf_printf(out, "| %s ", columns[c].head);
    hec_buf_puts(out, "| line |\n");
    for (int c = 0; c < COLUMNS; c++)
        hec_buf_puts(out, column_shown(&s->job, c) ? "| ---: " : "");
    hec_buf_puts(out, "| --- |\n");
    for (int i = 0; i < s->job.rank_count; i++) {
        const struct hec_rank *r = &s->job.ranks[i];
        const struct hec_device_diagnosis *d = hec_rank_device(s, r);
        if (!r->in_short_table)
            continue;
        for (int c = 0; c < COLUMNS; c++)
            if (column_shown(&s->job, c))
                hec_buf_printf(out, "| %s ", columns[c].text(cell, r, d));
        hec_buf_puts(out, "| ");
        if (hec_rank_line(place, sizeof place, d)[0])
            hec_markdown_code(out, place, true);
        hec_buf_puts(out, " |\n");
    }
    if (others_of(&s->job, words)[0])
        hec_markdown_text(out, "\n", words, "\n");
}
