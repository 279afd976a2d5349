#include "report/timeline_words.h"

#include "base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *hec_copy_direction_name(enum hec_copy_direction direction) {
    static const char *const names[HEC_COPY_DIRECTION_COUNT] = {"host_to_device", "device_to_host", "device_to_device",
                                                                "peer", "other"};
    return (unsigned)direction < HEC_COPY_DIRECTION_COUNT ? names[direction] : "other";
}

const char *hec_copy_host_name(enum hec_copy_host host) {
    static const char *const names[HEC_COPY_HOST_COUNT] = {"pageable", "pinned", "other"};
    return (unsigned)host < HEC_COPY_HOST_COUNT ? names[host] : "other";
}

const struct hec_device_timeline *hec_timeline_of(const struct hec_timeline *timeline, int device) {
    for (int i = 0; i < timeline->device_count; i++)
        if (timeline->devices[i].device == device)
            return &timeline->devices[i];
    return NULL;
}

double hec_copy_rate(const struct hec_copy_total *total) {
    return total->seconds > 0 && total->bytes > 0 ? total->bytes / total->seconds : NAN;
}

double hec_step_data_share(const struct hec_step_summary *steps) {
    double all = steps->duration.mean * (double)steps->count;
    return all > 0 ? steps->data_s / all : NAN;
}

/* ---- names ---- */

#define ARGUMENTS_SHOWN 16 /* fewer characters of template arguments say nothing */

static int columns_of(const char *text) {
    int columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

/* "void f<int>(float*)" -> "f<int>": what is before the last space outside of brackets, and from the parameters on. */
static void without_signature(char *name) {
    int depth = 0;
    char *start = name, *end = NULL;
    for (char *c = name; *c && !end; c++) {
        if (strncmp(c, "operator", 8) == 0) { /* operator<, operator(): no brackets */
            c += 7 + (strncmp(c + 8, "()", 2) == 0 ? 2 : strspn(c + 8, "<>"));
            continue;
        }
        if (*c == '(' && depth == 0 && strncmp(c, "(anonymous namespace)", 21) != 0 && c > start)
            end = c;
        depth += (*c == '<' || *c == '(' || *c == '{') - ((*c == '>' || *c == ')' || *c == '}') && depth > 0);
        if (*c == ' ' && depth == 0 && c[1])
            start = c + 1;
    }
    if (end)
        *end = '\0';
    memmove(name, start, strlen(start) + 1);
}

/* Length of the name in front of its template arguments. */
static size_t before_arguments(const char *name) {
    return strcspn(name, "<");
}

/* "at::native::f<c10::Half>" -> "f<Half>" */
static void without_namespaces(char *name) {
    char *to = name;
    for (const char *c = name; *c; c++) {
        if (c[0] == ':' && c[1] == ':' && c[2]) {
            if (to > name && to[-1] == ')') /* (anonymous namespace) */
                while (to > name && *to != '(')
                    to--;
            while (to > name && (isalnum((unsigned char)to[-1]) || to[-1] == '_'))
                to--;
            c++;
            continue;
        }
        *to++ = *c;
    }
    *to = '\0';
}

static void cut_middle(char *name, int columns) {
    int tail = (columns - 3) / 3, head = columns - 3 - tail, at = 0;
    char *from = name, *to;
    while (at < head)
        at += ((unsigned char)*++from & 0xc0) != 0x80;
    to = name + strlen(name);
    for (at = 0; at < tail; at += ((unsigned char)*to & 0xc0) != 0x80)
        to--;
    memmove(from + 3, to, strlen(to) + 1);
    memcpy(from, "...", 3);
}

char *hec_kernel_short(char *out, size_t size, const char *name, int columns) {
    hec_text_clean(out, size, name, strlen(name), true);
    without_signature(out);
    if (columns_of(out) > columns)
        without_namespaces(out);
    if (columns_of(out) <= columns)
        return out;
    size_t base = before_arguments(out);
    if (out[base] && base + ARGUMENTS_SHOWN <= (size_t)columns) {
        memcpy(out + columns - 3, "...", 4);
        return out;
    }
    if (base)
        out[base] = '\0';
    if (columns_of(out) > columns)
        cut_middle(out, columns);
    return out;
}
