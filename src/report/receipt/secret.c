/* What looks like a secret, and a receipt, made to be shown to others, does not keep: receipt/environment.def. */
#include "report/receipt/secret.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOKEN_LEAST 20u /* characters in a row of which no word of a language has so many of all kinds */
#define HEX_LEAST 32u   /* 128 bits */
#define TOKEN_BITS 3.5  /* a character, of what is drawn at random: 4.1 for 20 of 62; of words in one: 3.3 and less */
#define PREFIX_REST 12u /* characters after a known prefix, with a digit or a capital: hf_hub_download is a function */
#define NUMBER_LEAST 8u /* a name that asks for so many characters is also one of counts: --stop-token 50256 */
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

enum where { IN_ALL, ANYWHERE, AS_WORD, AS_LAST_WORD, AS_ALL };
static const struct {
    const char *text;
    enum where where;
    size_t least;
} names[] = {
#define HEC_RECEIPT_SECRET(part, where, least) {part, where, least},
#include "report/receipt/environment.def"
};
static const char *const prefixes[] = {
#define HEC_RECEIPT_SECRET_PREFIX(text) text,
#include "report/receipt/environment.def"
};
static const char *const addresses[] = {
#define HEC_RECEIPT_SECRET_ADDRESS(text) text,
#include "report/receipt/environment.def"
};
static const char *const phrases[] = {
#define HEC_RECEIPT_SECRET_PHRASE(text) text,
#include "report/receipt/environment.def"
};
static const char *const calls[] = {
#define HEC_RECEIPT_SECRET_CALL(name) name,
#include "report/receipt/environment.def"
};
/* Where a word begins in accountKey. */
static bool is_hump(const char *at) {
    return islower((unsigned char)at[-1]) && isupper((unsigned char)at[0]);
}

/* Whether the words of a name (HF_TOKEN, --api-key) have it as they are to. option: of a command, where a part is not enough:
 * --tokenizer and --max-tokens name no secret. */
static bool has_name(const char *name, size_t length, size_t row, bool option) {
    const char *text = names[row].text;
    size_t size = strlen(text), first = strcspn(name, NAME_CHARACTERS);
    for (size_t i = first; i + size <= length; i++) {
        bool begins = i == first || !isalnum((unsigned char)name[i - 1]) || is_hump(name + i);
        bool ends = i + size == length || !isalnum((unsigned char)name[i + size]) || is_hump(name + i + size);
        if (strncasecmp(name + i, text, size) != 0)
            continue;
        if (names[row].where == IN_ALL || (names[row].where == ANYWHERE && !option))
            return true;
        if (begins && ends && (names[row].where != AS_LAST_WORD || (i + size == length && i > first)) &&
            (names[row].where != AS_ALL || (i + size == length && i == first)))
            return true;
    }
    return false;
}

bool hec_receipt_is_secret(const char *name, size_t length, const char *value, bool option) {
    size_t size = strlen(value);
    bool number = size > 0 && strspn(value, "+-.0123456789eE") == size;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (has_name(name, length, i, option) &&
            (!option || (size >= names[i].least && !(number && names[i].least >= NUMBER_LEAST))))
            return true;
    return false;
}

/* Drawn at random: digits, small and capital letters in a row, or hexadecimal digits. */
static bool is_random(const char *word, size_t length) {
    size_t counts[128] = {0}, digits = 0, small = 0, capital = 0, hex = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)word[i];
        counts[c & 127]++;
        digits += isdigit(c) != 0;
        small += islower(c) != 0;
        capital += isupper(c) != 0;
        hex += isxdigit(c) != 0;
    }
    if (length >= HEX_LEAST && hex == length && digits > 0 && digits < length)
        return true;
    double bits = 0;
    for (int c = 0; c < 128; c++)
        if (counts[c])
            bits -= (double)counts[c] / (double)length * log2((double)counts[c] / (double)length);
    return length >= TOKEN_LEAST && digits > 0 && small > 0 && capital > 0 && bits >= TOKEN_BITS;
}

/* A private key as OpenSSL writes it: all of it, or what there is. */
static size_t pem_at(const char *text) {
    static const char end[] = "-----END";
    if (strncmp(text, "-----BEGIN ", 11) != 0 || strstr(text, "PRIVATE KEY") > text + 40 ||
        !strstr(text, "PRIVATE KEY"))
        return 0;
    const char *last = strstr(text, end);
    return last ? (size_t)(last - text) + strlen(end) + strcspn(last + strlen(end), "\n") : strlen(text);
}

/* The rest of an address of which that is the secret. */
static size_t address_at(const char *text, const char **value) {
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        *value = text + strlen(addresses[i]);
        if (strncmp(text, addresses[i], strlen(addresses[i])) == 0)
            return strspn(*value, NAME_CHARACTERS "/_-:.");
    }
    return 0;
}

/* What follows such words, in quotes or up to a blank. */
static size_t phrase_at(const char *text, const char **value) {
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++) {
        const char *at = text + strlen(phrases[i]);
        if (strncasecmp(text, phrases[i], strlen(phrases[i])) != 0)
            continue;
        size_t quotes = strspn(at, "\\\"'");
        *value = at + quotes;
        return **value == '$' ? 0 : strcspn(*value, quotes ? "\\\"'" : " \t\n;\"'");
    }
    return 0;
}

/* So many characters from here on are a token; 0: none. */
static size_t token_at(const char *text) {
    if (pem_at(text))
        return pem_at(text);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t size = strlen(prefixes[i]);
        size_t rest = strncmp(text, prefixes[i], size) == 0 ? strspn(text + size, NAME_CHARACTERS "_-.") : 0;
        if (rest >= PREFIX_REST && strspn(text + size, "abcdefghijklmnopqrstuvwxyz_-.") < rest)
            return size + rest;
    }
    size_t length = strspn(text, NAME_CHARACTERS "+");
    return is_random(text, length) ? length + strspn(text + length, NAME_CHARACTERS "+/_=-") : 0;
}

/* Before the last "@" of so many characters, which an address may write as "%40". */
static size_t before_at(const char *text, size_t size, bool in_url) {
    size_t length = 0;
    for (size_t i = 0; i < size; i++)
        length = text[i] == '@' || (in_url && strncmp(text + i, "%40", 3) == 0) ? i : length;
    return length;
}

/* "user:password@", and after "://" "token@" too: so many characters; 0: there is none, or no more than a name in small letters. What
 * follows a colon in an address is a port, or a password, where "/", "?" and "#" may stand too. */
static size_t user_at(const char *text, bool in_url) {
    size_t host = strcspn(text, "/?# \t\n\"'"), length = before_at(text, host, in_url),
           port = strcspn(text, ":/?#@ \t\n\"'") + 1;
    if (in_url && length == 0 && port < host && strspn(text + port, "0123456789") < host - port)
        return before_at(text, strcspn(text, " \t\n\"'"), true);
    if (!in_url && (!memchr(text, ':', length) || text[0] == ':' || strncmp(text + length, "@sha256:", 8) == 0))
        return 0;
    return length > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz") < length ? length : 0;
}

/* Where a text has the name of a program: at its beginning, after what ends a command, as what a shell is given. */
static bool starts_at(const struct hec_receipt_reading *reading, const char *value, const char *at) {
    const char *last = at;
    if (reading->program == HEC_RECEIPT_NONE)
        return true;
    while (last > value && strchr(" \t", last[-1]))
        last--;
    if (reading->program == HEC_RECEIPT_CODE)
        return false;
    if (reading->program == HEC_RECEIPT_SHELL && reading->before_length == 2 && strncmp(reading->before, "-c", 2) == 0)
        return true;
    return last > value && strchr(";|&(`\n", last[-1]);
}

/* The character here, and in how many it is written: an address may have "%3D" for "=". */
static char decoded(const char *at, size_t *size) {
    char hex[3] = {at[0] == '%' ? at[1] : '\0'};
    hex[1] = hex[0] ? at[2] : '\0';
    bool is_hex = hex[1] && isxdigit((unsigned char)hex[0]) && isxdigit((unsigned char)hex[1]);
    *size = is_hex ? 3 : 1;
    return is_hex ? (char)strtol(hex, NULL, 16) : at[0];
}

/* So many characters of a text are some of those, as they are or as an address writes them; to: what they stand for, NULL if nobody
 * asks. */
static size_t span(const char *text, const char *of, struct hec_buf *to) {
    size_t length = 0, size;
    for (char c; (c = decoded(text + length, &size)) && strchr(of, c); length += size)
        if (to)
            hec_buf_add(to, &c, 1);
    return length;
}

/* What a function is given in quotes, login('me', 'x'), from its first to its last: so many characters; 0: nothing. text: of "(". */
static size_t given_to_call(const char *text, const char **value) {
    size_t end = strcspn(text, ")\n"), first = strcspn(text, "'\"");
    while (end > first && !strchr("'\"", text[end]))
        end--;
    while (end > first + 1 && text[end - 1] == '\\')
        end--;
    *value = text + first + 1;
    return end > first ? end - first - 1 : 0;
}

static bool is_call(const char *name, size_t length) {
    const char *dot = memrchr(name, '.', length);
    size_t skip = dot ? (size_t)(dot + 1 - name) : 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (strlen(calls[i]) == length - skip && strncmp(name + skip, calls[i], length - skip) == 0)
            return true;
    return false;
}

/* The value of a name, where it begins behind the sign that gives it. So many characters; 0: it is none, or no secret. */
static size_t named_value(const char *name, const char *at, bool header, const char **value) {
    static const char *const schemes[] = {"Bearer ", "Basic ", "Token ", "token "};
    if (*at == '(' && hec_receipt_is_secret(name, strlen(name), "(any value)", true))
        return given_to_call(at, value);
    size_t quotes = span(at, "\\\"'", NULL);
    at += quotes;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        at += strncmp(at, schemes[i], strlen(schemes[i])) == 0 ? strlen(schemes[i]) : 0;
    size_t length = strcspn(at, quotes || header ? "\\\"'\n" : " \t\n\\\"'&;,)}|<>");
    size_t otherwise = strncmp(at, "${", 2) == 0 ? strcspn(at, "-=}") : length; /* ${NAME:-secret} */
    bool is_name = *at == '$' && (otherwise >= length || at[otherwise] == '}');
    char *copy = length > 0 && !is_name ? strndup(at, length) : NULL; /* $NAME is no secret */
    bool secret = copy && hec_receipt_is_secret(name, strlen(name), copy, true);
    free(copy);
    *value = at;
    return secret ? length : 0;
}

/* The value of a name that says so, within a text, such as a command for a shell, a header, JSON or code: name=value, "name": "value",
 * name => value, <name>value<, --name value, name("value"). So many characters of it, and where it begins; 0: there is none. */
static size_t value_at(const char *text, char before, const char **value) {
    struct hec_buf name;
    hec_buf_init(&name, 1u << 16);
    size_t size, length = span(text, NAME_CHARACTERS "_-.", &name), found = 0;
    const char *at = text + length;
    at += span(at, "\\\"'", NULL);
    bool quoted = at > text + length;
    at += quoted && *at == ']';
    const char *sign = at + strspn(at, " ");
    char is = decoded(sign, &size);
    bool assigned = is == '=' || is == ':' || (quoted && is == ',') || (is == '>' && before == '<'),
         header = sign == text + length && sign[0] == ':' && sign[1] == ' ';
    if (length > 0 && *sign == '(' && sign == text + length && is_call(text, length))
        found = given_to_call(sign, value);
    else if (length > 0 && (assigned || (before == '-' && sign > at && *sign != '-'))) {
        at = sign + (assigned ? size : 0);
        at += is == '=' && *at == '>'; /* of a table, in some languages */
        found = named_value(hec_buf_text(&name), at + strspn(at, " "), header, value);
    }
    hec_buf_free(&name);
    return found;
}

char *hec_receipt_without_secrets(const char *value, int *withheld) {
    struct hec_receipt_reading alone = {.before = ""};
    return hec_receipt_read_word(&alone, value, withheld);
}

char *hec_receipt_read_word(struct hec_receipt_reading *reading, const char *value, int *withheld) {
    static const char between[] = " \t\n;|&()`'\"";
    struct hec_buf out;
    hec_buf_init(&out, 64u << 20);
    bool begins = true; /* a word */
    const char *named = value, *of_value = value;
    size_t named_length = 0;
    for (const char *at = value; *at;) {
        bool in_url = (at >= value + 3 && strncmp(at - 3, "://", 3) == 0) ||
                      (at >= value + 9 && strncasecmp(at - 9, "%3A%2F%2F", 9) == 0);
        size_t secret = begins ? token_at(at) : 0, of_name;
        if (begins && at >= named + named_length && (of_name = value_at(at, at > value ? at[-1] : '\0', &of_value))) {
            named = of_value;
            named_length = of_name;
        }
        if (!strchr(between, *at) && (at == value || strchr(between, at[-1]))) {
            char quote[2] = {at > value && strchr("'\"", at[-1]) ? at[-1] : '\0'};
            size_t length = strcspn(at, between), whole = at == value ? strlen(at)
                                                          : quote[0]  ? strcspn(at, quote)
                                                                      : length;
            of_name = hec_receipt_option_value(reading, at, length, whole, starts_at(reading, value, at), &of_value);
            if (of_name > 0 && at >= named + named_length) {
                named = of_value;
                named_length = of_name;
            }
        }
        if (begins && ((of_name = address_at(at, &of_value)) > 0 || (of_name = phrase_at(at, &of_value)) > 0 ||
                       (of_name = hec_receipt_given_value(at, &of_value)) > 0)) {
            named = of_value;
            named_length = of_name;
        }
        if ((begins || in_url) && user_at(at, in_url))
            secret = user_at(at, in_url);
        if (at == named && named_length > 0)
            secret = named_length;
        if (secret) {
            hec_buf_puts(&out, HEC_RECEIPT_WITHHELD);
            ++*withheld;
        } else {
            secret = 1;
            hec_buf_add(&out, at, 1);
        }
        at += secret;
        begins = !isalnum((unsigned char)at[-1]);
    }
    char *text = hec_buf_error(&out) < 0 ? NULL : strdup(hec_buf_text(&out));
    hec_buf_free(&out);
    return text;
}
