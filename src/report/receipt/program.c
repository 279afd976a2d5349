/* Values of options by the program that reads them, as a receipt keeps them. Options that name a password in one program alone are rows of
 * receipt/environment.def. Of a program that no row names nobody knows what -p is, so it goes by what may be kept of a value. */
#include "report/receipt/secret.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum part { WHOLE, AFTER_COLON, AFTER_SLASH, AFTER_EQUALS };
static const struct {
    const char *program, *option;
    enum part part;
} options[] = {
#define HEC_RECEIPT_SECRET_OPTION(program, option, part) {program, option, part},
#include "report/receipt/environment.def"
};
_Static_assert(sizeof options / sizeof options[0] <= 64, "a bit each in hec_receipt_reading");

static const struct {
    const char *program, *after; /* "": the program's name */
    size_t first;
    enum part part;
} arguments[] = {
#define HEC_RECEIPT_SECRET_ARGUMENT(program, after, first, part) {program, after, first, part},
#include "report/receipt/environment.def"
};

static const struct {
    const char *name;
    enum hec_receipt_program program;
} programs[] = {
#define HEC_RECEIPT_PROGRAM(name, program) {name, HEC_RECEIPT_##program},
#include "report/receipt/environment.def"
};
static const struct {
    const char *letters;
    enum part part;
} unknown_options[] = {
#define HEC_RECEIPT_UNKNOWN_OPTION(letters, part) {letters, part},
#include "report/receipt/environment.def"
};
static const char *const logins[] = {
#define HEC_RECEIPT_LOGIN(name) name,
#include "report/receipt/environment.def"
};
static const char *const plain[] = {
#define HEC_RECEIPT_PLAIN(word) word,
#include "report/receipt/environment.def"
};
static const char *const setters[] = {
#define HEC_RECEIPT_SETTER(word) word,
#include "report/receipt/environment.def"
};
static const char *const readers[] = {
#define HEC_RECEIPT_SECRET_READER(text) text,
#include "report/receipt/environment.def"
};

static bool is_word(const char *word, size_t length, const char *text) {
    return strlen(text) == length && strncasecmp(word, text, length) == 0;
}

static bool is_one_of(const char *word, size_t length, const char *const *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_word(word, length, texts[i]))
            return true;
    return false;
}

/* ---- which program ---- */

static enum hec_receipt_program program_of(const char *name, size_t length) {
    while (length > 0 && strchr("0123456789.", name[length - 1])) /* python3.11 */
        length--;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (is_word(name, length, programs[i].name))
            return programs[i].program;
    return HEC_RECEIPT_UNKNOWN;
}

/* Of somebody's own: ./train, a file that an interpreter runs. */
static bool is_script(const char *word, size_t length) {
    static const char *const ends[] = {".py", ".sh", ".pl", ".rb", ".js", ".jl", ".R", ".lua", ".php", ".ts"};
    if (word[0] == '-' || length < 3)
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t size = strlen(ends[i]);
        if (length > size && strncmp(word + length - size, ends[i], size) == 0)
            return true;
    }
    return strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0;
}

static bool is_number(const char *text, size_t length) {
    size_t digits = 0;
    for (size_t i = 0; i < length; i++) {
        digits += isdigit((unsigned char)text[i]) != 0;
        if (!strchr("0123456789.,:;/+-%*^xeEKMGTkmgBbs", text[i]))
            return false;
    }
    return digits > 0 && !isalpha((unsigned char)text[0]);
}

/* The row of arguments whose words come next. */
static void see_arguments(struct hec_receipt_reading *reading, const char *word, size_t length, const char *name,
                          size_t size, bool starts) {
    reading->words += word[0] != '-';
    if (starts || (reading->argument > 0 && word[0] == '-' && reading->words >= arguments[reading->argument - 1].first))
        reading->argument = 0;
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        bool is_program = strlen(arguments[i].program) == size && strncmp(name, arguments[i].program, size) == 0;
        bool is_after = reading->argument > 0 &&
                        strcmp(arguments[reading->argument - 1].program, arguments[i].program) == 0 &&
                        strlen(arguments[i].after) == length && strncmp(word, arguments[i].after, length) == 0;
        if (!is_program && !is_after)
            continue;
        reading->argument = i + 1;
        reading->words = 0;
        reading->counts = is_after || !arguments[i].after[0];
        return;
    }
}

static void see_program(struct hec_receipt_reading *reading, const char *word, size_t length, bool starts) {
    const char *name = memrchr(word, '/', length);
    bool is_option = word[0] == '-' || memchr(word, '=', length);
    name = name ? name + 1 : word;
    size_t size = (size_t)(word + length - name);
    see_arguments(reading, word, length, name, size, starts);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strlen(options[i].program) == size && strncmp(name, options[i].program, size) == 0)
            reading->programs |= UINT64_C(1) << i;
    if (starts || (reading->program == HEC_RECEIPT_WRAPPER && !is_option && !is_number(word, length)))
        reading->program = is_option ? HEC_RECEIPT_WRAPPER : program_of(name, size); /* NAME=value program */
    else if (reading->program == HEC_RECEIPT_INTERPRETER && is_word(word, length, "-e"))
        reading->program = HEC_RECEIPT_CODE;
    else if ((reading->program == HEC_RECEIPT_INTERPRETER || reading->program == HEC_RECEIPT_SHELL) && !is_option)
        reading->program = program_of(name, size); /* -m pytest */
    else if (reading->program == HEC_RECEIPT_KNOWN && is_script(word, length))
        reading->program = HEC_RECEIPT_UNKNOWN;
    if (reading->program == HEC_RECEIPT_INTERPRETER && is_word(word, length, "-c"))
        reading->program = HEC_RECEIPT_CODE;
}

/* ---- what may be kept ---- */

/* What is no secret by its form: another option, a variable, a number, a path, a file's name, a word that options have as a value. */
static bool may_be_kept(const char *value, size_t length) {
    size_t stem = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."), end = length;
    if (length == 0 || strchr("-${[<", value[0]) || is_number(value, length))
        return true;
    if (value[0] == '/' || strncmp(value, "./", 2) == 0 || strncmp(value, "../", 3) == 0 ||
        strncmp(value, "~/", 2) == 0)
        return true;
    while (end > 0 && isalpha((unsigned char)value[end - 1]))
        end--;
    if (stem >= length && end > 1 && value[end - 1] == '.' && length - end <= 5 && end < length)
        return true;
    return is_one_of(value, length, plain, sizeof plain / sizeof plain[0]);
}

/* Of user:password, user%password, user,password: so many characters are the secret; 0: there is none, or numbers alone. */
static size_t after_user(const char *value, size_t length, const char *signs, const char **secret) {
    size_t user = strcspn(value, signs);
    if (user + 1 >= length || is_number(value, length) || is_number(value + user + 1, length - user - 1) ||
        strchr("/$", value[user + 1]))
        return 0;
    *secret = value + user + 1;
    return length - user - 1;
}

static size_t part_of(const char *value, size_t length, enum part part, const char **secret) {
    static const char *const signs[] = {[AFTER_COLON] = ":", [AFTER_SLASH] = "/", [AFTER_EQUALS] = "="};
    *secret = value;
    return part == WHOLE ? length : after_user(value, length, signs[part], secret);
}

/* Whether an option speaks of who logs in: --login, --db-user. */
static bool is_login(const char *option, size_t length) {
    for (size_t at = strspn(option, "-"); at < length;) {
        size_t word = strcspn(option + at, "-_.=");
        word = word < length - at ? word : length - at;
        if (is_one_of(option + at, word, logins, sizeof logins / sizeof logins[0]))
            return true;
        at += word + 1;
    }
    return false;
}

/* Of an option of one letter that no row names, in a program that none does. */
static size_t unknown_value(char letter, const char *value, size_t length, const char **secret) {
    for (size_t i = 0; i < sizeof unknown_options / sizeof unknown_options[0]; i++) {
        if (!strchr(unknown_options[i].letters, letter))
            continue;
        if (unknown_options[i].part == AFTER_COLON)
            return after_user(value, length, ":%,", secret);
        *secret = value;
        return may_be_kept(value, length) ? 0 : length;
    }
    return 0;
}

static bool is_letters(const char *text, size_t length) {
    size_t letters = 0;
    while (letters < length && (isalpha((unsigned char)text[letters]) || strchr("-_=", text[letters])))
        letters++;
    return letters == length;
}

static size_t row_value(struct hec_receipt_reading *reading, const char *word, size_t length, size_t whole, bool starts,
                        const char **value) {
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        size_t size = strlen(options[i].option), found;
        bool is_word_itself = options[i].option[0] != '-',
             is_next =
                 reading->before_length == size && !starts && strncmp(reading->before, options[i].option, size) == 0;
        bool is_here = !is_word_itself && length > size && strncmp(word, options[i].option, size) == 0;
        if (!(reading->programs >> i & 1) || !(is_next || is_here) || (is_word_itself && word[0] == '-') ||
            (is_here && size > 2 && word[size] != '='))
            continue;
        const char *from = is_here ? word + size + (word[size] == '=') : word;
        *value = from;
        found = whole - (size_t)(from - word);
        found = part_of(from, found, options[i].part, value);
        if (found > 0 && size == 2)
            reading->programs &= ~(UINT64_C(1) << i); /* sshpass -p PASSWORD ssh -p 22 */
        if (found > 0)
            return found;
    }
    return 0;
}

/* Words that no option names: htpasswd -b FILE USER PASSWORD. */
static size_t argument_value(const struct hec_receipt_reading *reading, const char *word, size_t whole,
                             const char **value) {
    if (reading->argument == 0 || !reading->counts || word[0] == '-' || word[0] == '$')
        return 0;
    size_t row = reading->argument - 1;
    return reading->words + 1 >= arguments[row].first ? part_of(word, whole, arguments[row].part, value) : 0;
}

/* The word after the name of a secret, where the one before says that it gets a value: setenv HF_TOKEN x. */
static size_t set_value(const struct hec_receipt_reading *reading, const char *word, size_t whole, const char **value) {
    if (!reading->sets || !reading->before_length || may_be_kept(word, whole))
        return 0;
    char *copy = strndup(word, whole);
    bool secret = copy && hec_receipt_is_secret(reading->before, reading->before_length, copy, true);
    free(copy);
    *value = word;
    return secret ? whole : 0;
}

size_t hec_receipt_option_value(struct hec_receipt_reading *reading, const char *word, size_t length, size_t whole,
                                bool starts, const char **value) {
    const char *before = reading->before, *equals = memchr(word, '=', length);
    bool unknown = reading->program == HEC_RECEIPT_UNKNOWN && !starts;
    size_t found = row_value(reading, word, length, whole, starts, value);
    if (!found && before[0] == '-' && is_login(before, reading->before_length))
        found = after_user(word, whole, ":%", value);
    if (!found && word[0] == '-' && equals && is_login(word, (size_t)(equals - word)))
        found = after_user(equals + 1, whole - (size_t)(equals + 1 - word), ":%", value);
    if (!found && unknown && reading->before_length == 2 && before[0] == '-')
        found = unknown_value(before[1], word, whole, value);
    if (!found && unknown && word[0] == '-' && length > 2 && word[1] != '-' && !is_letters(word + 1, length - 1))
        found = unknown_value(word[1], word + 2 + (word[2] == '='), whole - 2 - (word[2] == '='), value);
    if (!found && !starts)
        found = argument_value(reading, word, whole, value);
    if (!found && !starts)
        found = set_value(reading, word, whole, value);
    see_program(reading, word, length, starts);
    if (is_one_of(word, length, setters, sizeof setters / sizeof setters[0]))
        reading->sets = 3; /* set -gx NAME VALUE */
    else if (reading->sets > 0)
        reading->sets--;
    reading->before = word;
    reading->before_length = length;
    return found;
}

/* One word in a here-document: docker login --password-stdin <<EOF. */
static size_t here_document(const char *text, const char **value) {
    const char *at = text + 2 + (text[2] == '-');
    at += strspn(at, " '\"");
    size_t name = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    const char *line = strchr(at, '\n');
    if (name == 0 || !line)
        return 0;
    size_t length = strcspn(line + 1, " \n");
    *value = line + 1;
    return line[1 + length] == '\n' && strncmp(line + 2 + length, at, name) == 0 ? length : 0;
}

/* echo WORD | docker login --password-stdin; su <<< WORD. */
size_t hec_receipt_given_value(const char *text, const char **value) {
    static const char *const givers[] = {"echo ", "printf ", "<<<"};
    if (strncmp(text, "<<", 2) == 0 && text[2] != '<')
        return here_document(text, value);
    for (size_t i = 0; i < sizeof givers / sizeof givers[0]; i++) {
        size_t size = strlen(givers[i]);
        if (strncmp(text, givers[i], size) != 0)
            continue;
        const char *from = text + size + strspn(text + size, " "), *pipe = strchr(from, '|');
        bool here = givers[i][0] == '<';
        if (!here && !pipe)
            return 0;
        bool reads = here;
        for (size_t r = 0; r < sizeof readers / sizeof readers[0] && !reads; r++)
            reads = strstr(pipe, readers[r]) != NULL;
        size_t length = !here ? (size_t)(pipe - from) : strcspn(from, "\n;|&");
        while (length > 0 && from[length - 1] == ' ')
            length--;
        *value = from;
        return reads && from[0] != '$' ? length : 0;
    }
    return 0;
}
