#include "store/import/words.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static bool is(const char *text, size_t length, const char *word) {
    return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

static bool has(const char *text, size_t length, const char *word) {
    return memmem(text, length, word, strlen(word)) != NULL;
}

int hec_import_kind_of_category(const char *text, size_t length) {
    static const struct {
        const char *text;
        size_t length;
        int kind;
    } categories[] = {
#define HEC_IMPORT_CAT(word, kind) {word, sizeof word - 1, HEC_ACTIVITY_##kind},
#include "store/import/cat.def"
#undef HEC_IMPORT_CAT
    };
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
        if (length == categories[i].length && (text[0] | 0x20) == categories[i].text[0] &&
            strncasecmp(text, categories[i].text, length) == 0)
            return categories[i].kind;
    return HEC_IMPORT_NO_KIND;
}

enum hec_api_class hec_import_api_class(const char *name, size_t length) {
    static const struct {
        const char *stem;
        size_t length;
        enum hec_api_class api_class;
    } calls[] = {
#define HEC_IMPORT_API(stem, api_class) {stem, sizeof stem - 1, HEC_API_##api_class},
#include "store/import/api.def"
#undef HEC_IMPORT_API
    };
    static const char *const prefixes[] = {"cuda", "cu", "hip", "ur", "ze"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t skip = strlen(prefixes[i]);
        if (length > skip && memcmp(name, prefixes[i], skip) == 0) {
            name += skip;
            length -= skip;
            break;
        }
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (length >= calls[i].length && name[0] == calls[i].stem[0] &&
            memcmp(name, calls[i].stem, calls[i].length) == 0)
            return calls[i].api_class;
    return HEC_API_OTHER;
}

enum hec_sync_type hec_import_sync_type(const char *text, size_t length) {
    static const struct {
        const char *word;
        enum hec_sync_type type;
    } words[] = {
        /* Kineto's text, and the words of Nsight Systems' ENUM_CUPTI_SYNC_TYPE */
        {"Wait", HEC_SYNC_STREAM_WAIT}, {"WAIT", HEC_SYNC_STREAM_WAIT}, {"Event", HEC_SYNC_EVENT},
        {"EVENT", HEC_SYNC_EVENT},      {"Stream", HEC_SYNC_STREAM},    {"STREAM", HEC_SYNC_STREAM},
        {"Context", HEC_SYNC_CONTEXT},  {"CONTEXT", HEC_SYNC_CONTEXT},  {"Device", HEC_SYNC_CONTEXT},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (has(text, length, words[i].word))
            return words[i].type;
    return HEC_SYNC_UNKNOWN;
}

static enum hec_memory_kind memory(const char *text, size_t length) {
    static const struct {
        const char *word;
        enum hec_memory_kind kind;
    } words[] = {
        {"Pageable", HEC_MEMORY_PAGEABLE},      {"Pinned", HEC_MEMORY_PINNED},
        {"Device", HEC_MEMORY_DEVICE},          {"Array", HEC_MEMORY_ARRAY},
        {"Managed", HEC_MEMORY_MANAGED},        {"Device Static", HEC_MEMORY_DEVICE},
        {"Managed Static", HEC_MEMORY_MANAGED}, {"Host", HEC_MEMORY_HOST},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is(text, length, words[i].word))
            return words[i].kind;
    return HEC_MEMORY_UNKNOWN;
}

static enum hec_memory_kind memory_of_letter(char letter) {
    return letter == 'H'   ? HEC_MEMORY_HOST
           : letter == 'D' ? HEC_MEMORY_DEVICE
           : letter == 'P' ? HEC_MEMORY_DEVICE
           : letter == 'A' ? HEC_MEMORY_ARRAY
                           : HEC_MEMORY_UNKNOWN;
}

struct hec_import_direction hec_import_direction(const char *name, size_t length) {
    struct hec_import_direction d = {HEC_MEMORY_UNKNOWN, HEC_MEMORY_UNKNOWN, false};
    const char *end = name + length;
    /* two letters around "to": what the copy is from and to, of which the brackets say more */
    for (const char *p = name; length >= 4 && p + 4 <= end; p++)
        if (p[1] == 't' && p[2] == 'o' && strchr("HDPA", p[0]) && strchr("HDPA", p[3])) {
            d.from = memory_of_letter(p[0]);
            d.to = memory_of_letter(p[3]);
            d.peer = p[0] == 'P' || p[3] == 'P';
            break;
        }
    const char *open = memchr(name, '(', length);
    const char *close = open ? memchr(open, ')', (size_t)(end - open)) : NULL;
    if (!close)
        return d;
    open++;
    const char *arrow = memmem(open, (size_t)(close - open), " -> ", 4);
    enum hec_memory_kind from = arrow ? memory(open, (size_t)(arrow - open)) : HEC_MEMORY_UNKNOWN;
    const char *last = arrow ? arrow + 4 : open;
    enum hec_memory_kind to = memory(last, (size_t)(close - last));
    if (from != HEC_MEMORY_UNKNOWN)
        d.from = from;
    if (to != HEC_MEMORY_UNKNOWN)
        d.to = to;
    return d;
}

size_t hec_import_api_length(const char *name, size_t length) {
    for (size_t i = 1; i + 2 < length; i++) {
        if (name[i] != '_' || name[i + 1] != 'v' || !isdigit((unsigned char)name[i + 2]))
            continue;
        size_t digits = i + 2;
        while (digits < length && isdigit((unsigned char)name[digits]))
            digits++;
        if (digits - i - 2 >= 4 && (digits == length || name[digits] == '_')) /* not cudaStreamGetCaptureInfo_v2 */
            return i;
    }
    return length;
}

/* Whether all of a name is what the pattern of range.def says. */
static bool fits(const char *pattern, const char *name, const char *end) {
    for (; *pattern; pattern++) {
        const char *from = name;
        switch (*pattern) {
        case '*':
            for (; name <= end; name++)
                if (fits(pattern + 1, name, end))
                    return true;
            return false;
        case '%':
            while (name < end && isdigit((unsigned char)*name))
                name++;
            if (name == from)
                return false;
            break;
        case '_':
            while (name < end && *name && strchr(" _-#:=", *name))
                name++;
            break;
        default:
            if (name == end || tolower((unsigned char)*name) != *pattern)
                return false;
            name++;
        }
    }
    return name == end;
}

enum hec_import_range hec_import_range_of(const char *name, size_t length) {
    static const struct {
        enum hec_import_range range;
        const char *pattern;
        char last; /* of the pattern: most names are none of these, and are many */
    } ranges[] = {
#define HEC_IMPORT_RANGE(range, pattern, who) {HEC_IMPORT_RANGE_##range, pattern, pattern[sizeof pattern - 2]},
#include "store/import/range.def"
#undef HEC_IMPORT_RANGE
    };
    if (length == 0)
        return HEC_IMPORT_RANGE_OTHER;
    int first = tolower((unsigned char)name[0]), last = tolower((unsigned char)name[length - 1]);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if ((ranges[i].pattern[0] == first || ranges[i].pattern[0] == '*') &&
            (ranges[i].last == last || strchr("*%", ranges[i].last)) && fits(ranges[i].pattern, name, name + length))
            return ranges[i].range;
    return HEC_IMPORT_RANGE_OTHER;
}

const char *hec_import_phase(enum hec_import_range range) {
    return range == HEC_IMPORT_RANGE_DATA         ? "data"
           : range == HEC_IMPORT_RANGE_CHECKPOINT ? "checkpoint"
           : range == HEC_IMPORT_RANGE_COMPILE    ? "compile"
                                                  : NULL;
}

/* ---- collectives ---- */

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

struct collective {
    const char *name;
    int times, spared;
    bool together;
};

static const struct collective *collective_of(const char *name) {
    static const struct collective kinds[] = {
#define HEC_COLLECTIVE(name, times, spared, together) {name, times, spared, together},
#define HEC_ELEMENT(name, bytes)
#include "store/import/collective.def"
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (begins(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

bool hec_import_ends_together(const char *collective) {
    const struct collective *kind = collective_of(collective);
    return kind && kind->together;
}

int hec_import_element_bytes(const char *element) {
    static const struct {
        const char *name;
        int bytes;
    } elements[] = {
#define HEC_COLLECTIVE(name, times, spared, together)
#define HEC_ELEMENT(name, bytes) {name, bytes},
#include "store/import/collective.def"
    };
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (begins(element, elements[i].name))
            return elements[i].bytes;
    return 0;
}

double hec_import_bus_bytes(const char *collective, const char *element, double elements_in, double elements_out,
                            double ranks) {
    const struct collective *kind = collective_of(collective);
    if (!kind || !(ranks > 1))
        return 0;
    return fmax(elements_in, elements_out) * hec_import_element_bytes(element) * kind->times * (ranks - kind->spared) /
           ranks;
}
