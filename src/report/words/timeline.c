#include "report/words/timeline.h"

#include "base/text.h"
#include "model/trace.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *hec_copy_direction_name(enum hec_copy_direction direction) {
    static const char *const names[HEC_COPY_DIRECTION_COUNT] = {"host_to_device", "device_to_host", "device_to_device",
                                                                "peer", "other"};
    return (unsigned)direction < HEC_COPY_DIRECTION_COUNT ? names[direction] : "other";
}

const char *hec_copy_host_name(enum hec_copy_host host) {
    static const char *const names[HEC_COPY_HOST_COUNT] = {"pageable", "pinned", "other"};
    return (unsigned)host < HEC_COPY_HOST_COUNT ? names[host] : "other";
}

const char *hec_step_source_words(enum hec_step_source source) {
    static const char *const words[HEC_STEP_SOURCE_COUNT] = {
        [HEC_STEP_NONE] = "",
        [HEC_STEP_MARKED] = "marked by the program",
        [HEC_STEP_OPTIMIZER] = "of the optimizer",
        [HEC_STEP_MODULE] = "calls of the outermost module",
        [HEC_STEP_ANNOTATED] = "annotated in the trace",
        [HEC_STEP_RANGE] = "ranges of the trace",
        [HEC_STEP_PERIODIC] = "found in the sequence of kernels",
    };
    return (unsigned)source < HEC_STEP_SOURCE_COUNT ? words[source] : "";
}

const char *hec_steps_words(char out[HEC_STEPS_WORDS], const struct hec_summary *s, enum hec_step_source source) {
    if (source != HEC_STEP_MODULE || !s->step_module[0])
        return hec_step_source_words(source);
    snprintf(out, HEC_STEPS_WORDS, "calls of %s", s->step_module);
    return out;
}

const char *hec_samples_words(const struct hec_summary *s, enum hec_step_source source) {
    bool loader = source == HEC_STEP_OPTIMIZER && strcmp(s->samples_by, "loader") == 0;
    bool calls = source == HEC_STEP_MODULE || (source == HEC_STEP_OPTIMIZER && strcmp(s->samples_by, "calls") == 0);
    return loader ? " (the loader's batch)" : calls ? " (first dimension of a call)" : "";
}

const char *hec_step_part_words(int part) {
    static const char *const words[HEC_STEP_PARTS + 1] = {"forward", "backward", "optimizer", "other"};
    return words[part];
}

bool hec_part_joules_known(const struct hec_device_part *part) {
    return part->step_joules_high - part->step_joules_low <= 2 * HEC_PART_BOUND_MAX * part->step_joules;
}

const char *hec_flops_words(char out[HEC_FLOPS_WORDS], const struct hec_model_flops *flops) {
    char error[48] = "";
    if (flops->error >= HEC_FLOPS_ALIKE)
        snprintf(error, sizeof error, ", +-%.0f %%", 100 * HEC_FLOPS_SIGMAS * flops->error);
    snprintf(
        out, HEC_FLOPS_WORDS,
        " by PyTorch's matrix products, convolutions and attention (%lld call%s counted%s); other libraries' are not seen",
        (long long)flops->counted, flops->counted == 1 ? "" : "s", error);
    return out;
}

double hec_copy_rate(const struct hec_copy_total *total) {
    return total->seconds > 0 && total->bytes > 0 ? total->bytes / total->seconds : NAN;
}

double hec_step_data_share(const struct hec_step_summary *steps) {
    double all = steps->duration.mean * (double)steps->count;
    return all > 0 ? steps->data_s / all : NAN;
}

/* ---- names ---- */

#define BASE_SHOWN 4       /* fewer letters of a template's name say nothing */
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

/* "at::native::f<c10::Half>" -> "f<Half>"; the function that a lambda is in stays. */
static void without_namespaces(char *name) {
    char *to = name;
    for (const char *c = name; *c; c++) {
        if (strncmp(c, "::operator()", 12) == 0 && c > name) { /* of a lambda: it is called, what else */
            c += 11;
            continue;
        }
        if (c[0] == ':' && c[1] == ':' && c[2] && c[2] != '{') {
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

/* Templates that say nothing by themselves: what they apply to each element tells. */
static bool tells_nothing(const char *base, size_t length) {
    static const char *const ends[] = {"elementwise_kernel", "reduce_kernel",     "apply_kernel", "grid_stride_kernel",
                                       "with_index",         "index_kernel_impl", "device_kernel"};
    if ((length == 6 && strncasecmp(base, "kernel", 6) == 0) || (length == 7 && memcmp(base, "Kernel2", 7) == 0))
        return true;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t end = strlen(ends[i]);
        if (length >= end && memcmp(base + length - end, ends[i], end) == 0)
            return true;
    }
    return false;
}

/* A functor tells most, then a function that a lambda is in, then any type of the library's own. */
static int tells(const char *word, size_t length, const char *after) {
    static const char *const plain[] = {"unsigned", "operator", "TrivialOffsetCalculator", "func_wrapper_t"};
    char name[64];
    if (length >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(name, plain[i]) == 0)
            return 0;
    if (strstr(name, "unctor"))
        return 3;
    if (strncmp(name, "gpu_kernel_impl", 15) == 0)
        return 0;
    if (strstr(name, "ernel") || strncmp(name, "cutlass_", 8) == 0 ||
        (length > 3 && strcmp(name + length - 3, "Ops") == 0))
        return 2;
    return length >= 8 && strncmp(after, "::", 2) != 0;
}

/* The innermost functor or function of template arguments, or the first type; its length, 0: none. */
static size_t telling_argument(const char *arguments, const char **found) {
    size_t best = 0;
    int most = 0;
    for (const char *c = arguments; *c;) {
        size_t length = 0;
        while (isalnum((unsigned char)c[length]) || c[length] == '_')
            length++;
        int worth = length ? tells(c, length, c + length) : 0;
        if (worth && (worth > most || (worth == most && worth > 1))) {
            most = worth;
            *found = c;
            best = length;
        }
        c += length ? length : 1;
    }
    return best;
}

/* "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, ...>" -> "vectorized_elementwise<FillFunctor>";
 * false: the name tells by itself. */
static bool by_argument(char *out, size_t size, const char *name) {
    const char *argument, *base = name, *place = "";
    size_t length = before_arguments(name);
    for (size_t i = 0; i + 1 < length; i++)
        if (name[i] == ':' && name[i + 1] == ':') {
            place = base;
            base = name + i + 2;
        }
    length -= (size_t)(base - name);
    size_t telling = tells_nothing(base, length) ? telling_argument(base + length, &argument) : 0;
    if (!telling)
        return false;
    if (length > 7 && memcmp(base + length - 7, "_kernel", 7) == 0)
        length -= 7;
    else if (*place && *place != '(') { /* "kernel": where it is from */
        length += (size_t)(base - place);
        base = place;
    }
    snprintf(out, size, "%.*s<%.*s>", (int)length, base, (int)telling, argument);
    return true;
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
    char telling[256];
    const char *communicator = strstr(name, HEC_COMMUNICATOR); /* gives way first */
    hec_text_clean(out, size, name, communicator ? (size_t)(communicator - name) : strlen(name), true);
    without_signature(out);
    size_t length = strlen(out);
    if (communicator)
        hec_text_clean(out + length, size - length, communicator, strlen(communicator), true);
    if (columns_of(out) <= columns)
        return out;
    out[length] = '\0';
    if (columns_of(out) <= columns)
        return out;
    bool shorter = by_argument(telling, sizeof telling, out);
    without_namespaces(out);
    if (columns_of(out) <= columns)
        return out;
    if (shorter) {
        size_t base = strcspn(telling, "<"), argument = strlen(telling + base), room = (size_t)columns;
        bool cut =
            base + argument > room && argument + BASE_SHOWN + 3 <= room; /* the argument tells: the base gives way */
        snprintf(out, size, "%.*s%s%s", (int)(cut ? room - argument - 3 : base), telling, cut ? "..." : "",
                 telling + base);
        if (columns_of(out) > columns)
            cut_middle(out, columns);
        return out;
    }
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
