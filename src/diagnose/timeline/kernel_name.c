/* A reader of mangled names: the part of the Itanium C++ ABI's grammar (5.1) that names of kernels use. Every production
 * returns its text; anything unexpected, too deep or too long fails the whole, and the name stays as recorded or is cut
 * before its template arguments. */
#include "diagnose/timeline/kernel_class.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA 65536
#define SUBSTITUTIONS_MAX 512
#define ARGUMENTS_MAX 64
#define DEPTH_MAX 96

struct piece {
    const char *text;
    size_t length;
};

struct reader {
    const char *at, *end;
    bool failed;
    int depth;
    size_t used, count, arguments;
    struct piece substitutions[SUBSTITUTIONS_MAX];
    struct piece argument[ARGUMENTS_MAX]; /* of the template that is being read: T_, T0_ ... */
    char arena[ARENA];
    struct piece best; /* the outermost name as far as it is known */
};

static struct piece read_type(struct reader *r);
static struct piece read_name(struct reader *r, bool outermost);

static struct piece fail(struct reader *r) {
    r->failed = true;
    return (struct piece){"", 0};
}

static struct piece literal(const char *text) {
    return (struct piece){text, strlen(text)};
}

static struct piece join(struct reader *r, struct piece a, struct piece b, struct piece c) {
    size_t length = a.length + b.length + c.length;
    if (r->failed || length > ARENA - r->used)
        return fail(r);
    char *to = r->arena + r->used;
    memcpy(to, a.text, a.length);
    memcpy(to + a.length, b.text, b.length);
    memcpy(to + a.length + b.length, c.text, c.length);
    r->used += length;
    return (struct piece){to, length};
}

static char peek(const struct reader *r, size_t ahead) {
    return (size_t)(r->end - r->at) > ahead ? r->at[ahead] : '\0';
}

static bool accept(struct reader *r, const char *text) {
    size_t length = strlen(text);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, text, length) != 0)
        return false;
    r->at += length;
    return true;
}

static void remember(struct reader *r, struct piece p) {
    if (r->count == SUBSTITUTIONS_MAX)
        fail(r);
    else
        r->substitutions[r->count++] = p;
}

static bool digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t read_number(struct reader *r) {
    size_t value = 0;
    while (digit(peek(r, 0))) {
        value = value * 10 + (size_t)(*r->at++ - '0');
        if (value > ARENA)
            r->failed = true, value = 0;
    }
    return value;
}

/* "_" is 0, "0_" is 1, in base 36 for substitutions. */
static size_t read_sequence(struct reader *r, size_t base) {
    size_t value = 0;
    if (accept(r, "_"))
        return 0;
    while (digit(peek(r, 0)) || (base == 36 && peek(r, 0) >= 'A' && peek(r, 0) <= 'Z')) {
        char c = *r->at++;
        value = value * base + (size_t)(digit(c) ? c - '0' : c - 'A' + 10);
        if (value > ARENA)
            r->failed = true, value = 0;
    }
    if (!accept(r, "_"))
        fail(r);
    return value + 1;
}

static struct piece read_source_name(struct reader *r) {
    size_t length = read_number(r);
    if (!length || length > (size_t)(r->end - r->at))
        return fail(r);
    struct piece p = {r->at, length};
    r->at += length;
    if (length >= 10 && memcmp(p.text, "_GLOBAL__N", 10) == 0)
        return literal("(anonymous namespace)");
    while (accept(r, "B")) /* an ABI tag */
        read_source_name(r);
    return p;
}

static struct piece read_literal(struct reader *r) {
    if (accept(r, "_Z")) {
        struct piece name = read_name(r, false);
        while (!r->failed && peek(r, 0) != 'E' && r->at < r->end)
            read_type(r);
        return accept(r, "E") ? name : fail(r);
    }
    char kind = peek(r, 0);
    bool builtin = kind >= 'a' && kind <= 'z' && kind != 'u';
    struct piece type = read_type(r);
    bool negative = accept(r, "n");
    const char *from = r->at;
    while (r->at < r->end && *r->at != 'E')
        r->at++;
    struct piece value = {from, (size_t)(r->at - from)};
    if (!accept(r, "E"))
        return fail(r);
    if (kind == 'b')
        return literal(value.length == 1 && *value.text == '0' ? "false" : "true");
    if (negative)
        value = join(r, literal("-"), value, literal(""));
    if (builtin)
        return value;
    return join(r, join(r, literal("("), type, literal(")")), value, literal(""));
}

static struct piece read_argument(struct reader *r);

/* After I or J, to E, joined by commas; outer: these are what T_ stands for from now on. */
static struct piece read_arguments(struct reader *r, bool outer) {
    struct piece all = literal(""), list[ARGUMENTS_MAX];
    size_t n = 0;
    while (!r->failed && !accept(r, "E")) {
        struct piece one = read_argument(r);
        if (r->at >= r->end)
            return fail(r);
        if (n < ARGUMENTS_MAX)
            list[n++] = one;
        if (one.length)
            all = join(r, all, literal(all.length ? ", " : ""), one);
    }
    if (outer && n) {
        memcpy(r->argument, list, n * sizeof *list);
        r->arguments = n;
    }
    return all;
}

static struct piece read_argument(struct reader *r) {
    struct piece p;
    if (++r->depth > DEPTH_MAX)
        return fail(r);
    if (accept(r, "L"))
        p = read_literal(r);
    else if (accept(r, "J"))
        p = read_arguments(r, false);
    else if (peek(r, 0) == 'X')
        p = fail(r); /* expressions */
    else
        p = read_type(r);
    r->depth--;
    return p;
}

static struct piece read_template(struct reader *r, struct piece name) {
    struct piece arguments = read_arguments(r, true);
    return join(r, name, literal("<"), join(r, arguments, literal(">"), literal("")));
}

static struct piece read_substitution(struct reader *r, bool *standard) {
    static const struct {
        const char *code, *text;
    } known[] = {{"t", "std"},          {"a", "std::allocator"}, {"b", "std::basic_string"}, {"s", "std::string"},
                 {"i", "std::istream"}, {"o", "std::ostream"},   {"d", "std::iostream"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (accept(r, known[i].code)) {
            *standard = true;
            return literal(known[i].text);
        }
    *standard = false;
    size_t number = read_sequence(r, 36);
    return number < r->count && !r->failed ? r->substitutions[number] : fail(r);
}

static struct piece read_parameter(struct reader *r) {
    size_t number = read_sequence(r, 10);
    return number < r->arguments ? r->argument[number] : literal("auto"); /* a generic lambda's own */
}

/* A lambda, a type without a name, an operator, a constructor or a plain name. */
static struct piece read_unqualified(struct reader *r, struct piece scope) {
    static const struct {
        const char *code, *text;
    } operators[] = {{"cl", "operator()"}, {"ix", "operator[]"}, {"pl", "operator+"},  {"mi", "operator-"},
                     {"ml", "operator*"},  {"dv", "operator/"},  {"eq", "operator=="}, {"ne", "operator!="},
                     {"lt", "operator<"},  {"gt", "operator>"},  {"aS", "operator="},  {"pp", "operator++"}};
    char number[32];
    if (digit(peek(r, 0)))
        return read_source_name(r);
    if (accept(r, "L")) /* internal linkage */
        return read_source_name(r);
    bool lambda = accept(r, "Ul");
    if (lambda || accept(r, "Ut")) {
        while (lambda && !r->failed && !accept(r, "E")) {
            read_type(r);
            if (r->at >= r->end)
                return fail(r);
        }
        snprintf(number, sizeof number, lambda ? "{lambda#%zu}" : "{unnamed#%zu}", read_sequence(r, 10) + 1);
        return join(r, literal(number), literal(""), literal(""));
    }
    if ((peek(r, 0) == 'C' || peek(r, 0) == 'D') && digit(peek(r, 1))) {
        bool destructor = *r->at == 'D';
        r->at += 2;
        size_t last = scope.length;
        while (last > 0 && scope.text[last - 1] != ':')
            last--;
        struct piece name = {scope.text + last, scope.length - last};
        return destructor ? join(r, literal("~"), name, literal("")) : name;
    }
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (accept(r, operators[i].code))
            return literal(operators[i].text);
    return fail(r);
}

/* After N, to E. */
static struct piece read_nested(struct reader *r, bool outermost) {
    struct piece name = {"", 0};
    while (accept(r, "K") || accept(r, "V") || accept(r, "r") || accept(r, "R") || accept(r, "O"))
        ;
    while (!r->failed && !accept(r, "E")) {
        bool known = false;
        if (r->at >= r->end)
            return fail(r);
        if (accept(r, "S")) {
            bool standard;
            name = read_substitution(r, &standard);
            known = true;
        } else if (accept(r, "I")) {
            name = read_template(r, name);
        } else if (accept(r, "T")) {
            name = read_parameter(r);
        } else {
            struct piece part = read_unqualified(r, name);
            name = name.length ? join(r, name, literal("::"), part) : part;
        }
        if (outermost && !r->failed)
            r->best = name;
        if (!known && peek(r, 0) != 'E')
            remember(r, name);
    }
    return name;
}

/* After Z: a function, then E and what is inside of it. */
static struct piece read_local(struct reader *r) {
    struct piece function = read_name(r, false);
    while (!r->failed && !accept(r, "E")) {
        read_type(r);
        if (r->at >= r->end)
            return fail(r);
    }
    if (accept(r, "s"))
        return function;
    struct piece inside = read_name(r, false);
    if (peek(r, 0) == '_' && digit(peek(r, 1))) /* which of several */
        r->at += 2;
    return join(r, function, literal("::"), inside);
}

static struct piece read_name(struct reader *r, bool outermost) {
    struct piece name;
    bool known = false;
    if (++r->depth > DEPTH_MAX)
        return fail(r);
    if (accept(r, "N")) {
        name = read_nested(r, outermost);
        r->depth--;
        return name;
    }
    if (accept(r, "Z")) {
        name = read_local(r);
    } else if (accept(r, "St")) {
        name = join(r, literal("std::"), read_unqualified(r, literal("")), literal(""));
    } else if (accept(r, "S")) {
        bool standard;
        name = read_substitution(r, &standard);
        known = true;
    } else {
        name = read_unqualified(r, literal(""));
    }
    if (outermost && !r->failed)
        r->best = name;
    if (!r->failed && accept(r, "I")) {
        if (!known)
            remember(r, name);
        name = read_template(r, name);
    }
    r->depth--;
    return name;
}

static const char *builtin_of(char code) {
    static const char *const names['z' - 'a' + 1] = {
        ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
        ['b' - 'a'] = "bool",        ['c' - 'a'] = "char",
        ['a' - 'a'] = "signed char", ['h' - 'a'] = "unsigned char",
        ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
        ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
        ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
        ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
        ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
        ['f' - 'a'] = "float",       ['d' - 'a'] = "double",
        ['e' - 'a'] = "long double", ['g' - 'a'] = "__float128",
        ['z' - 'a'] = "...",
    };
    return code >= 'a' && code <= 'z' ? names[code - 'a'] : NULL;
}

/* Function types: after F, to E. */
static struct piece read_function(struct reader *r) {
    struct piece result = read_type(r), parameters = literal("");
    while (!r->failed && !accept(r, "E")) {
        struct piece one = read_type(r);
        if (r->at >= r->end)
            return fail(r);
        if (one.length != 4 || memcmp(one.text, "void", 4) != 0)
            parameters = join(r, parameters, literal(parameters.length ? ", " : ""), one);
    }
    return join(r, result, literal(" ("), join(r, parameters, literal(")"), literal("")));
}

static struct piece suffixed(struct reader *r, const char *suffix) {
    struct piece type = read_type(r);
    return join(r, type, literal(suffix), literal(""));
}

static struct piece read_compound(struct reader *r) {
    if (accept(r, "P"))
        return suffixed(r, "*");
    if (accept(r, "R"))
        return suffixed(r, "&");
    if (accept(r, "O"))
        return suffixed(r, "&&");
    if (accept(r, "VK"))
        return suffixed(r, " const volatile");
    if (accept(r, "K"))
        return suffixed(r, " const");
    if (accept(r, "V"))
        return suffixed(r, " volatile");
    if (accept(r, "F")) {
        accept(r, "Y");
        return read_function(r);
    }
    if (accept(r, "Dp"))
        return read_type(r);
    if (accept(r, "M")) {
        struct piece of = read_type(r), member = read_type(r);
        return join(r, member, literal(" "), join(r, of, literal("::*"), literal("")));
    }
    if (accept(r, "A")) {
        const char *from = r->at;
        read_number(r);
        struct piece size = {from, (size_t)(r->at - from)};
        if (!accept(r, "_"))
            return fail(r);
        struct piece element = read_type(r);
        return join(r, element, literal(" ["), join(r, size, literal("]"), literal("")));
    }
    if (accept(r, "T")) {
        struct piece parameter = read_parameter(r);
        if (peek(r, 0) != 'I')
            return parameter;
        remember(r, parameter);
        r->at++;
        struct piece arguments = read_arguments(r, false);
        return join(r, parameter, literal("<"), join(r, arguments, literal(">"), literal("")));
    }
    return read_name(r, false);
}

/* Types that are no candidates for substitution. */
static struct piece read_simple(struct reader *r, bool *simple) {
    static const struct {
        const char *code, *text;
    } extended[] = {{"DF16b", "__bf16"}, {"DF16_", "_Float16"}, {"Dh", "half"},     {"Dn", "std::nullptr_t"},
                    {"Da", "auto"},      {"Di", "char32_t"},    {"Ds", "char16_t"}, {"Du", "char8_t"}};
    const char *builtin = builtin_of(peek(r, 0));
    *simple = true;
    if (builtin) {
        r->at++;
        return literal(builtin);
    }
    for (size_t i = 0; i < sizeof extended / sizeof extended[0]; i++)
        if (accept(r, extended[i].code))
            return literal(extended[i].text);
    if (peek(r, 0) == 'S' && peek(r, 1) != 't') {
        bool standard;
        r->at++;
        struct piece known = read_substitution(r, &standard);
        if (!accept(r, "I"))
            return known;
        struct piece arguments = read_arguments(r, false);
        *simple = false;
        return join(r, known, literal("<"), join(r, arguments, literal(">"), literal("")));
    }
    *simple = false;
    return (struct piece){"", 0};
}

static struct piece read_type(struct reader *r) {
    bool simple;
    if (r->failed || ++r->depth > DEPTH_MAX)
        return fail(r);
    struct piece type = read_simple(r, &simple);
    if (!simple) {
        if (!type.length && !r->failed) { /* template arguments of a type do not become what T_ stands for */
            struct piece outer[ARGUMENTS_MAX];
            size_t arguments = r->arguments;
            memcpy(outer, r->argument, arguments * sizeof *outer);
            type = read_compound(r);
            memcpy(r->argument, outer, arguments * sizeof *outer);
            r->arguments = arguments;
        }
        if (!r->failed)
            remember(r, type);
    }
    r->depth--;
    return type;
}

void hec_kernel_readable(const char *name, char *out, size_t size) {
    snprintf(out, size, "%s", name);
    if (strncmp(name, "_Z", 2) != 0)
        return;
    struct reader *r = malloc(sizeof *r);
    if (!r)
        return;
    r->at = name + 2;
    r->end = name + strlen(name);
    r->failed = false;
    r->depth = 0;
    r->used = r->count = r->arguments = 0;
    r->best = (struct piece){"", 0};
    struct piece whole = read_name(r, true);
    if (!r->failed && whole.length)
        snprintf(out, size, "%.*s", (int)whole.length, whole.text);
    else if (r->best.length)
        snprintf(out, size, "%.*s<...>", (int)r->best.length, r->best.text);
    free(r);
}
