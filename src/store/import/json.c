#include "store/import/json.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN_MAX 64    /* the longest number or literal */
#define AHEAD_MAX 16384 /* what is looked at behind a quote that may not be the last of its string */

void hec_json_init(struct hec_json *j, struct hec_import_input *input, struct hec_why *why) {
    j->input = input;
    j->why = why;
    j->at = j->end = j->window;
    memset(j->window, 0, 16);
    j->base = 0;
    j->error = HEC_OK;
    j->repaired = 0;
    j->depth = 0;
    j->input_ended = j->input_failed = false;
    j->fresh = false;
}

static int invalid(struct hec_json *j, int64_t offset, const char *what) {
    return j->error = hec_fail(j->why, HEC_ERR_CORRUPT, "%s is not valid JSON at byte %lld: %s should be there",
                               hec_import_input_path(j->input), (long long)offset, what);
}

static int fail(struct hec_json *j, const uint8_t *at, const char *what) {
    if (j->error)
        return j->error;
    int64_t offset = j->base + (at - j->window);
    if (at >= j->end && j->input_ended)
        return j->error = hec_fail(j->why, HEC_ERR_CORRUPT, "%s is cut short: it ends at byte %lld, where %s should be",
                                   hec_import_input_path(j->input), (long long)offset, what);
    return invalid(j, offset, what);
}

/* Bytes from `keep` on stay in the window (it must be near the end); more come behind them. Returns where keep is now;
 * NULL on error. At the end of the input nothing changes. */
static const uint8_t *refill(struct hec_json *j, const uint8_t *keep) {
    if (j->error)
        return NULL;
    if (j->input_ended)
        return keep;
    size_t kept = (size_t)(j->end - keep);
    if (kept == HEC_JSON_WINDOW)
        return keep;
    j->base += keep - j->window;
    memmove(j->window, keep, kept);
    long got = hec_import_input_read(j->input, j->window + kept, HEC_JSON_WINDOW - kept, j->why);
    if (got < 0) {
        j->error = (int)got;
        j->input_failed = true;
        got = 0;
    }
    j->input_ended = got == 0;
    j->end = j->window + kept + got;
    memset(j->window + kept + got, 0, 16);
    j->at = j->window;
    return j->error ? NULL : j->window;
}

/* At least `count` bytes at p, unless the input ends before. */
static const uint8_t *ensure(struct hec_json *j, const uint8_t *p, size_t count) {
    while (p && (size_t)(j->end - p) < count && !j->input_ended)
        p = refill(j, p);
    return p;
}

void hec_json_skip_mark(struct hec_json *j) {
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf};
    const uint8_t *p = ensure(j, j->at, sizeof mark);
    if (p)
        j->at = p + ((size_t)(j->end - p) >= sizeof mark && memcmp(p, mark, sizeof mark) == 0 ? sizeof mark : 0);
}

static const uint8_t *skip_blanks_slowly(struct hec_json *j, const uint8_t *p) {
    for (;;) {
        while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
            p++;
        if (*p || p < j->end || j->input_ended)
            return p;
        if (!(p = refill(j, p)))
            return NULL;
    }
}

/* To the next byte that is no blank, or to the end. NULL on error. */
static inline const uint8_t *skip_blanks(struct hec_json *j, const uint8_t *p) {
    if (*p > ' ')
        return p;
    if (*p == ' ' && p[1] > ' ')
        return p + 1;
    return skip_blanks_slowly(j, p);
}

#define ONES UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* To the first byte that is a quote, a backslash or below 0x20 (the 0 at the end of the window is one): eight bytes at a
 * time; the usual bit tricks for "has a zero byte" and "has a byte less than n". */
static inline const uint8_t *plain_text(const uint8_t *p) {
    for (;; p += 8) {
        uint64_t word, found;
        memcpy(&word, p, 8);
        uint64_t quote = word ^ (ONES * '"'), backslash = word ^ (ONES * '\\');
        found = ((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | ((word - ONES * 0x20) & ~word);
        found &= HIGHS;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        if (found)
            return p + (__builtin_ctzll(found) >> 3); /* false finds are only above a true one */
#else
        if (found) {
            while (*p != '"' && *p != '\\' && *p >= 0x20)
                p++;
            return p;
        }
#endif
    }
}

static int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits; negative if they are not. */
static int32_t hex4(const uint8_t *p) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3f)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 0x3f)),
               out[2] = (char)(0x80 | (c & 0x3f)), 3;
    return out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 0x3f)),
           out[2] = (char)(0x80 | (c >> 6 & 0x3f)), out[3] = (char)(0x80 | (c & 0x3f)), 4;
}

/* Past the escape at p (a backslash), or past the backslash where it is none; its text is added to out if there is room. NULL
 * on error. */
static const uint8_t *escape(struct hec_json *j, const uint8_t *p, char *out, size_t *length) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (!(p = ensure(j, p, 12)))
        return NULL;
    char character[4];
    size_t size;
    const char *simple = p[1] ? strchr(from, p[1]) : NULL;
    if (simple) {
        character[0] = to[simple - from];
        size = 1;
        p += 2;
    } else if (p[1] == 'u' && hex4(p + 2) >= 0) {
        uint32_t c = (uint32_t)hex4(p + 2);
        p += 6;
        if (c >= 0xd800 && c < 0xdc00 && p[0] == '\\' && p[1] == 'u' && hex4(p + 2) >= 0xdc00 && hex4(p + 2) < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)hex4(p + 2) - 0xdc00);
            p += 6;
        }
        size = put_utf8(character, c >= 0xd800 && c < 0xe000 ? 0xfffd : c); /* half a pair is no character */
    } else if (p + 1 >= j->end) {
        fail(j, j->end, "the end of a string");
        return NULL;
    } else { /* no escape: a plain backslash */
        character[0] = '\\';
        size = 1;
        p++;
        j->repaired++;
    }
    if (out && *length + size <= HEC_JSON_TEXT_MAX) {
        memcpy(out + *length, character, size);
        *length += size;
    }
    return p;
}

/* What can follow a string, for a first look. */
static inline bool may_follow(uint8_t c) {
    return c == ',' || c == ':' || c == '}' || c == ']' || c <= ' ';
}

/* The first byte that is no blank, from p on; end where there is none before it. */
static const uint8_t *solid(const uint8_t *p, const uint8_t *end) {
    while (p < end && *p <= ' ')
        p++;
    return p;
}

/* Whether the quote at p ends its string: what follows goes on with the object or the array that it is in. What is not in the
 * window speaks for it. */
static bool is_last_quote(const struct hec_json *j, const uint8_t *p, bool key) {
    const uint8_t *end = j->end - p > AHEAD_MAX ? p + AHEAD_MAX : j->end;
    const uint8_t *next = solid(p + 1, end);
    bool array = j->depth > 0 && j->is_array[j->depth - 1];
    if (next == end || j->depth == 0)
        return true;
    if (key || array)
        return key ? *next == ':' : *next == ',' || *next == ']';
    if (*next == '}') {
        next = solid(next + 1, end);
        return next == end || *next == ',' || *next == '}' || *next == ']';
    }
    if (*next != ',')
        return false;
    next = solid(next + 1, end);
    if (next < end && *next++ != '"')
        return false;
    while (next < end && *next != '"')
        next += *next == '\\' ? 2 : 1;
    next = next < end ? solid(next + 1, end) : end;
    return next >= end || *next == ':';
}

/* The rest of a string that is kept, or (out NULL) not, from p on, past its closing quote. */
static const uint8_t *string_slowly(struct hec_json *j, const uint8_t *p, bool key, char *out, size_t *length) {
    j->doubt_at = -1;
    for (;;) {
        const uint8_t *from = p;
        p = plain_text(p);
        size_t run = (size_t)(p - from);
        if (out) {
            if (run > HEC_JSON_TEXT_MAX - *length)
                run = HEC_JSON_TEXT_MAX - *length;
            memcpy(out + *length, from, run);
            *length += run;
        }
        if (*p == '\\') {
            p = escape(j, p, out, length);
        } else if (p == j->end && !j->input_ended) {
            p = refill(j, p);
        } else if (p == j->end) {
            if (j->doubt_at >= 0)
                invalid(j, j->doubt_at, "what can follow a string");
            else
                fail(j, p, "the end of a string");
            return NULL;
        } else if (!*p) {
            fail(j, p, "no byte of zero, but the rest of a string,");
            return NULL;
        } else {
            if (!(p = ensure(j, p, AHEAD_MAX)))
                return NULL;
            if (*p == '"' && is_last_quote(j, p, key))
                return p + 1;
            if (*p == '"' && j->doubt_at < 0)
                j->doubt_at = j->base + (p + 1 - j->window);
            if (out && *length < HEC_JSON_TEXT_MAX)
                out[(*length)++] = (char)*p;
            j->repaired++;
            p++;
        }
        if (!p)
            return NULL;
    }
}

/* Past a string of which p is the opening quote. NULL on error. */
static inline const uint8_t *skip_string(struct hec_json *j, const uint8_t *p, bool key) {
    p = plain_text(p + 1);
    if (*p == '"' && may_follow(p[1]))
        return p + 1;
    size_t none = 0;
    return string_slowly(j, p, key, NULL, &none);
}

/* Past a string, whose text is given. */
static const uint8_t *read_string(struct hec_json *j, const uint8_t *p, bool key, struct hec_json_text *text) {
    const uint8_t *end = plain_text(p + 1);
    if (*end == '"' && may_follow(end[1]) && end - p - 1 <= HEC_JSON_TEXT_MAX) {
        *text = (struct hec_json_text){(const char *)p + 1, (size_t)(end - p - 1)};
        return end + 1;
    }
    size_t length = 0;
    end = string_slowly(j, p + 1, key, j->scratch, &length);
    *text = (struct hec_json_text){j->scratch, length};
    return end;
}

static bool is_word(const uint8_t *p, const char *word, size_t length) {
    return strncasecmp((const char *)p, word, length) == 0;
}

/* Past a number. NULL on error. */
static const uint8_t *skip_number(struct hec_json *j, const uint8_t *p) {
    if (j->end - p < TOKEN_MAX && !(p = ensure(j, p, TOKEN_MAX)))
        return NULL;
    const uint8_t *from = p;
    if (*p == '-' || *p == '+') /* +: only before the words below */
        p++;
    if (*p > '9') {
        if (is_word(p, "infinity", 8))
            return p + 8;
        if (is_word(p, "inf", 3) || is_word(p, "nan", 3))
            return p + 3;
    }
    const uint8_t *digits = p;
    while (*p >= '0' && *p <= '9')
        p++;
    bool good = p > digits && *from != '+' && (*digits != '0' || p == digits + 1);
    if (good && *p == '.') {
        digits = ++p;
        while (*p >= '0' && *p <= '9')
            p++;
        good = p > digits;
    }
    if (good && (*p | 0x20) == 'e') {
        p++;
        if (*p == '-' || *p == '+')
            p++;
        digits = p;
        while (*p >= '0' && *p <= '9')
            p++;
        good = p > digits;
    }
    if (!good || p - from >= TOKEN_MAX) {
        fail(j, p < j->end ? from : p, good ? "a number of less than 64 characters" : "a number");
        return NULL;
    }
    return p;
}

/* Past true, false, null or a number. */
static const uint8_t *skip_scalar(struct hec_json *j, const uint8_t *p) {
    if ((*p >= '0' && *p <= '9') || *p == '-')
        return skip_number(j, p);
    if (!(p = ensure(j, p, TOKEN_MAX)))
        return NULL;
    if (memcmp(p, "true", 4) == 0 || memcmp(p, "null", 4) == 0)
        return p + 4;
    if (memcmp(p, "false", 5) == 0)
        return p + 5;
    if (*p == '+' || is_word(p, "nan", 3) || is_word(p, "inf", 3))
        return skip_number(j, p);
    const uint8_t *word = p;
    while ((*word | 0x20) >= 'a' && (*word | 0x20) <= 'z')
        word++;
    fail(j, word < j->end ? p : word, "a value");
    return NULL;
}

int hec_json_peek(struct hec_json *j) {
    if (j->error)
        return j->error;
    const uint8_t *p = skip_blanks(j, j->at);
    if (!p)
        return j->error;
    j->at = p;
    switch (*p) {
    case '{':
    case '[':
    case '"':
    case 't':
    case 'f':
        return *p;
    case 'n':
        if (!(p = ensure(j, p, 4)))
            return j->error;
        j->at = p;
        return p[1] == 'u' ? 'n' : '0';
    case 'N':
    case 'i':
    case 'I':
    case '+':
    case '-':
        return '0';
    case 0:
        if (p == j->end && j->depth == 0)
            return 0;
        return fail(j, p, "a value");
    default:
        return *p >= '0' && *p <= '9' ? '0' : fail(j, p, "a value");
    }
}

static int push(struct hec_json *j, const uint8_t *p) {
    long long byte = j->base + (p - j->window);
    if (j->depth == HEC_JSON_DEPTH_MAX)
        return j->error = hec_fail(j->why, HEC_ERR_LIMIT, "%s: values are nested more than %d deep at byte %lld",
                                   hec_import_input_path(j->input), HEC_JSON_DEPTH_MAX, byte);
    j->is_array[j->depth++] = *p == '[';
    return HEC_OK;
}

int hec_json_enter(struct hec_json *j) {
    int err = push(j, j->at);
    if (err < 0)
        return err;
    j->at++;
    j->fresh = true;
    return HEC_OK;
}

/* 1: at the next member or element; 0: past the end of the container. */
static int advance(struct hec_json *j, uint8_t close, const char *what) {
    if (j->error)
        return j->error;
    const uint8_t *p = skip_blanks(j, j->at);
    if (!p)
        return j->error;
    if (*p == close) {
        j->depth--;
        j->fresh = false;
        j->at = p + 1;
        return 0;
    }
    if (!j->fresh) {
        if (*p != ',')
            return fail(j, p, what);
        if (!(p = skip_blanks(j, p + 1)))
            return j->error;
    }
    j->fresh = false;
    j->at = p;
    return 1;
}

int hec_json_element(struct hec_json *j) {
    return advance(j, ']', "a comma or ]");
}

int hec_json_member(struct hec_json *j, struct hec_json_text *key) {
    int more = advance(j, '}', "a comma or }");
    if (more <= 0)
        return more;
    const uint8_t *p = j->at;
    if (*p != '"')
        return fail(j, p, "a key in quotes");
    /* the key and its colon in one piece, so that the text stays where it is */
    if (j->end - p < 128 && !(p = ensure(j, p, 128)))
        return j->error;
    if (!(p = read_string(j, p, true, key)))
        return j->error;
    if (*p != ':') {
        if (key->data != j->scratch) { /* blanks before the colon may need more input */
            memcpy(j->scratch, key->data, key->length);
            key->data = j->scratch;
        }
        if (!(p = skip_blanks(j, p)))
            return j->error;
        if (*p != ':')
            return fail(j, p, "a colon");
    }
    j->at = p + 1;
    return 1;
}

int hec_json_string(struct hec_json *j, struct hec_json_text *text) {
    if (j->error)
        return j->error;
    const uint8_t *p = j->at;
    if (j->end - p < 1024 && !(p = ensure(j, p, 1024))) /* so that most strings need no copy */
        return j->error;
    if (!(p = read_string(j, p, false, text)))
        return j->error;
    j->at = p;
    return HEC_OK;
}

int hec_json_number(struct hec_json *j, struct hec_json_text *digits) {
    if (j->error)
        return j->error;
    const uint8_t *p = ensure(j, j->at, TOKEN_MAX);
    if (!p)
        return j->error;
    const uint8_t *end = skip_number(j, p);
    if (!end)
        return j->error;
    *digits = (struct hec_json_text){(const char *)p, (size_t)(end - p)};
    j->at = end;
    return HEC_OK;
}

/* Reads values until the nesting is back at `floor`; at_value: a value comes first, else what follows one. */
static int run_down(struct hec_json *j, const uint8_t *p, int floor, bool at_value) {
    if (j->error)
        return j->error;
    if (!at_value)
        goto after;
value:
    if (!(p = skip_blanks(j, p)))
        return j->error;
    if (*p == '"') {
        if (!(p = skip_string(j, p, false)))
            return j->error;
    } else if (*p == '{' || *p == '[') {
        uint8_t close = *p == '{' ? '}' : ']';
        if (push(j, p) < 0 || !(p = skip_blanks(j, p + 1)))
            return j->error;
        if (*p == close) {
            j->depth--;
            p++;
        } else if (close == ']') {
            goto value;
        } else {
            goto key;
        }
    } else if (!(p = skip_scalar(j, p))) {
        return j->error;
    }
after:
    if (j->depth == floor) {
        j->at = p;
        return HEC_OK;
    }
    if (!(p = skip_blanks(j, p)))
        return j->error;
    if (*p == ',') {
        p++;
        if (j->is_array[j->depth - 1])
            goto value;
        if (!(p = skip_blanks(j, p)))
            return j->error;
        goto key;
    }
    if (*p != (j->is_array[j->depth - 1] ? ']' : '}'))
        return fail(j, p, j->is_array[j->depth - 1] ? "a comma or ]" : "a comma or }");
    j->depth--;
    p++;
    goto after;
key:
    if (*p != '"')
        return fail(j, p, "a key in quotes");
    if (!(p = skip_string(j, p, true)) || !(p = skip_blanks(j, p)))
        return j->error;
    if (*p != ':')
        return fail(j, p, "a colon");
    p++;
    goto value;
}

int hec_json_skip(struct hec_json *j) {
    return run_down(j, j->at, j->depth, true);
}

int hec_json_leave(struct hec_json *j) {
    if (j->fresh) { /* nothing was read: it may be empty, or a member without a comma comes */
        bool array = j->is_array[j->depth - 1];
        struct hec_json_text key;
        int more = array ? hec_json_element(j) : hec_json_member(j, &key);
        if (more <= 0)
            return more;
        return run_down(j, j->at, j->depth - 1, true);
    }
    return run_down(j, j->at, j->depth - 1, false);
}

int hec_json_finish(struct hec_json *j) {
    if (j->error)
        return j->error;
    const uint8_t *p = skip_blanks(j, j->at);
    if (!p)
        return j->error;
    return p == j->end && j->input_ended ? HEC_OK : fail(j, p, "the end of the file");
}
