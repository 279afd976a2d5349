#include "diagnose/timeline/kernel_class.h"

#include <stddef.h>
#include <string.h>

enum about { CLASS, PRECISION, SOLVER };

static const struct pattern {
    uint8_t about, id;
    const char *text;
} patterns[] = {
#define HEC_KERNEL_CLASS(id, name)
#define HEC_KERNEL_PATTERN(id, pattern) {CLASS, HEC_KERNEL_CLASS_##id, pattern},
#define HEC_KERNEL_PRECISION(id)
#define HEC_KERNEL_PRECISION_PATTERN(id, pattern) {PRECISION, HEC_KERNEL_PRECISION_##id, pattern},
#define HEC_KERNEL_SOLVER_PATTERN(solves, pattern) {SOLVER, solves, pattern},
#include "diagnose/timeline/kernel_class.def"
};

static char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter | 32) : letter;
}

/* Where the piece of a pattern, up to its end or a *, begins in the text; NULL: nowhere. */
static const char *find_piece(const char *text, const char *piece, size_t length, bool tied) {
    for (;; text++) {
        size_t i = 0;
        while (i < length && text[i] && lower(text[i]) == lower(piece[i]))
            i++;
        if (i == length)
            return text;
        if (tied || !text[i])
            return NULL;
    }
}

static bool matches(const char *text, const char *pattern) {
    bool tied = pattern[0] == '^';
    for (pattern += tied; *pattern; tied = false) {
        size_t length = strcspn(pattern, "*");
        text = find_piece(text, pattern, length, tied);
        if (!text)
            return false;
        text += length;
        pattern += length + (pattern[length] == '*');
    }
    return true;
}

/* What is tied to the start may follow a return type ("void ") or the length that mangling puts before a name. */
static const char *start_of(const char *name) {
    if (strncmp(name, "void ", 5) == 0)
        return name + 5;
    if (strncmp(name, "_Z", 2) != 0)
        return name;
    const char *plain = name + 2;
    while (*plain >= '0' && *plain <= '9')
        plain++;
    return plain > name + 2 ? plain : name;
}

/* Which three letters follow each other somewhere in a name. A pattern that begins with others is not looked for: that
 * leaves some 5 of 400. The low five bits of a letter are the same in both cases. */
#define TRIPLE(t) ((unsigned)((t)[0] & 31) << 10 | (unsigned)((t)[1] & 31) << 5 | (unsigned)((t)[2] & 31))
struct triples {
    uint64_t bits[(1 << 15) / 64];
};

static void find_triples(const char *name, struct triples *out) {
    memset(out, 0, sizeof *out);
    for (; name[0] && name[1] && name[2]; name++)
        out->bits[TRIPLE(name) / 64] |= 1ull << TRIPLE(name) % 64;
}

static bool may_match(const struct triples *triples, const char *pattern) {
    pattern += pattern[0] == '^';
    for (int i = 0; i < 3; i++)
        if (!pattern[i] || pattern[i] == '*')
            return true;
    return (triples->bits[TRIPLE(pattern) / 64] >> TRIPLE(pattern) % 64) & 1;
}

static uint8_t first_match(const char *name, enum about about, uint8_t otherwise) {
    const char *start = start_of(name);
    struct triples triples;
    find_triples(start, &triples);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (patterns[i].about == about && may_match(&triples, patterns[i].text) && matches(start, patterns[i].text))
            return patterns[i].id;
    return otherwise;
}

enum hec_kernel_class hec_kernel_class_of(const char *name) {
    return first_match(name, CLASS, HEC_KERNEL_CLASS_OTHER);
}

enum hec_kernel_precision hec_kernel_precision_of(const char *name) {
    return first_match(name, PRECISION, HEC_KERNEL_PRECISION_UNKNOWN);
}

bool hec_kernel_solves(const char *name) {
    return first_match(name, SOLVER, 0);
}

const char *hec_kernel_class_name(enum hec_kernel_class kernel_class) {
    static const char *const names[] = {
#define HEC_KERNEL_CLASS(id, name) [HEC_KERNEL_CLASS_##id] = name,
#define HEC_KERNEL_PATTERN(id, pattern)
#define HEC_KERNEL_PRECISION(id)
#define HEC_KERNEL_PRECISION_PATTERN(id, pattern)
#include "diagnose/timeline/kernel_class.def"
    };
    return (unsigned)kernel_class < HEC_KERNEL_CLASS_COUNT ? names[kernel_class] : "?";
}
