#include "launch/guard.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trace.h"
#include "launch/facts.h"
#include "launch/kept_file.h"
#include "launch/paths.h"

#include <jansson.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA_FAMILY "hec.guard/"
#define FILE_BYTES_MAX (256 << 10) /* 64 entries have about 30 KiB */

static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS};

bool hec_guard_is_crash(int signal) {
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        if (crashes[i] == signal)
            return true;
    return false;
}

/* ---- the driver ---- */

/* Where NVIDIA's kernel module gives its version, as the first word that has a dot between digits. */
static const char *const version_files[] = {"/sys/module/nvidia/version", "/proc/driver/nvidia/version"};

static bool version_word(char *line, char driver[48]) {
    char *rest = line, *word;
    while ((word = strsep(&rest, " \t\n"))) {
        size_t length = strspn(word, "0123456789.");
        if (length < 3 || length >= 48 || word[length] || !strchr(word, '.'))
            continue;
        memcpy(driver, word, length + 1);
        return true;
    }
    return false;
}

void hec_guard_driver(bool simulated, char driver[48]) {
    snprintf(driver, 48, "%s", simulated ? HEC_GUARD_SIMULATED : "");
    for (size_t i = 0; !driver[0] && i < sizeof version_files / sizeof version_files[0]; i++) {
        FILE *file = fopen(version_files[i], "re");
        char line[256];
        if (file && fgets(line, sizeof line, file))
            version_word(line, driver);
        if (file)
            fclose(file);
    }
}

/* ---- where ---- */

int hec_guard_path(char path[PATH_MAX], struct hec_why *why) {
    return hec_path_state("guard.json", path, why);
}

/* ---- the entries ---- */

/* One field of an entry: as text, or as a number within its bounds. */
enum field_kind { TEXT, INT, LONG };
#define FIELD_TEXT(name)                                                                                               \
    { #name, TEXT, offsetof(struct hec_guard_entry, name), sizeof((struct hec_guard_entry *)0)->name, 0, 0 }
#define FIELD_INT(name, least, most)                                                                                   \
    { #name, INT, offsetof(struct hec_guard_entry, name), 0, least, most }
#define FIELD_LONG(name)                                                                                               \
    { #name, LONG, offsetof(struct hec_guard_entry, name), 0, -1, INT64_MAX }
static const struct field {
    const char *name;
    enum field_kind kind;
    size_t offset, size;
    int64_t least, most;
} fields[] = {
    FIELD_TEXT(driver),
    FIELD_INT(cuda, -1, 1000000),
    FIELD_INT(cupti, 1, 100000000),
    FIELD_INT(mode, 0, HEC_TRACE_MODE_COUNT - 1),
    FIELD_INT(signal, 1, 64),
    FIELD_TEXT(program),
    FIELD_TEXT(date),
    FIELD_TEXT(library),
    FIELD_LONG(bytes),
    FIELD_LONG(mtime_s),
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static json_t *entry_json(const struct hec_guard_entry *entry) {
    json_t *object = json_object();
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const void *at = (const char *)entry + fields[i].offset;
        json_object_set_new(object, fields[i].name,
                            fields[i].kind == TEXT  ? json_string(at)
                            : fields[i].kind == INT ? json_integer(*(const int *)at)
                                                    : json_integer(*(const int64_t *)at));
    }
    return object;
}

static bool take_entry(const json_t *object, struct hec_guard_entry *entry) {
    memset(entry, 0, sizeof *entry);
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const struct field *field = &fields[i];
        const json_t *value = json_object_get(object, field->name);
        void *at = (char *)entry + field->offset;
        int64_t number = json_integer_value(value);
        if (field->kind == TEXT ? !json_is_string(value)
                                : !json_is_integer(value) || number < field->least || number > field->most)
            return false;
        if (field->kind == TEXT)
            hec_text_clean(at, field->size, json_string_value(value), json_string_length(value), true);
        else if (field->kind == INT)
            *(int *)at = (int)number;
        else
            *(int64_t *)at = number;
    }
    return true;
}

static int parse(const json_t *root, const char *path, struct hec_guard *guard, struct hec_why *why) {
    const json_t *schema = json_object_get(root, "schema"), *list = json_object_get(root, "deaths");
    const char *name = json_is_string(schema) ? json_string_value(schema) : "";
    if (strncmp(name, SCHEMA_FAMILY, strlen(SCHEMA_FAMILY)) == 0 && strcmp(name, HEC_GUARD_SCHEMA) != 0)
        return hec_fail(why, HEC_ERR_VERSION, "%s is of another version of HEC", path);
    if (!name[0] || !json_is_array(list) || json_array_size(list) > HEC_GUARD_MAX)
        return hec_fail(why, HEC_ERR_CORRUPT, "%s is damaged", path);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!take_entry(json_array_get(list, i), &guard->entries[guard->count++]))
            return hec_fail(why, HEC_ERR_CORRUPT, "%s is damaged: entry %zu", path, i + 1);
    return HEC_OK;
}

int hec_guard_read(struct hec_guard *guard, struct hec_why *why) {
    char path[PATH_MAX], *text = NULL;
    size_t length = 0;
    json_error_t reason;
    guard->count = 0;
    int err = hec_guard_path(path, why);
    if (err == HEC_OK)
        err = hec_kept_file_read(path, FILE_BYTES_MAX, &text, &length, why);
    if (err == HEC_ERR_NOTFOUND)
        return HEC_OK;
    if (err == HEC_OK) {
        json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
        err = root ? parse(root, path, guard, why)
                   : hec_fail(why, HEC_ERR_CORRUPT, "%s is damaged: line %d is no JSON", path, reason.line);
        json_decref(root);
    }
    free(text);
    if (err < 0)
        guard->count = 0;
    return err;
}

int hec_guard_write(const struct hec_guard *guard, struct hec_why *why) {
    char path[PATH_MAX];
    int err = hec_guard_path(path, why);
    if (err < 0)
        return err;
    json_t *root = json_object(), *list = json_array();
    json_object_set_new(root, "schema", json_string(HEC_GUARD_SCHEMA));
    for (int i = 0; i < guard->count; i++)
        json_array_append_new(list, entry_json(&guard->entries[i]));
    json_object_set_new(root, "deaths", list);
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    err = text ? hec_kept_file_write(path, text, why) : hec_fail(why, HEC_ERR_NOMEM, "no memory for %s", path);
    free(text);
    return err;
}

static void drop(struct hec_guard *guard, int at) {
    guard->count--;
    memmove(&guard->entries[at], &guard->entries[at + 1], (size_t)(guard->count - at) * sizeof guard->entries[0]);
}

static bool same(const struct hec_guard_entry *a, const struct hec_guard_entry *b) {
    return a->cupti == b->cupti && a->mode == b->mode && strcmp(a->driver, b->driver) == 0 &&
           strcmp(a->program, b->program) == 0;
}

static void identify(const char *library, int64_t *bytes, int64_t *mtime_s) {
    struct stat status;
    bool known = library[0] == '/' && stat(library, &status) == 0;
    *bytes = known ? (int64_t)status.st_size : -1;
    *mtime_s = known ? (int64_t)status.st_mtime : -1;
}

void hec_guard_add(struct hec_guard *guard, const struct hec_guard_entry *entry) {
    for (int i = guard->count - 1; i >= 0; i--)
        if (same(&guard->entries[i], entry))
            drop(guard, i);
    if (guard->count == HEC_GUARD_MAX)
        drop(guard, 0);
    struct hec_guard_entry *added = &guard->entries[guard->count++];
    *added = *entry;
    identify(added->library, &added->bytes, &added->mtime_s);
}

bool hec_guard_is_simulated(const struct hec_guard_entry *entry) {
    return strcmp(entry->driver, HEC_GUARD_SIMULATED) == 0;
}

/* The CUPTI that the next program will load is not known before it runs. An entry stands until its libcupti was
 * replaced. */
bool hec_guard_matches(const struct hec_guard_entry *entry, const char *driver) {
    bool simulated = strcmp(driver, HEC_GUARD_SIMULATED) == 0;
    if (simulated != hec_guard_is_simulated(entry))
        return false;
    if (driver[0] && entry->driver[0] && strcmp(driver, entry->driver) != 0)
        return false;
    int64_t bytes, mtime_s;
    identify(entry->library, &bytes, &mtime_s);
    return bytes < 0 || entry->bytes < 0 || (bytes == entry->bytes && mtime_s == entry->mtime_s);
}

const struct hec_guard_entry *hec_guard_find(const struct hec_guard *guard, const char *driver) {
    for (int i = guard->count - 1; i >= 0; i--)
        if (hec_guard_matches(&guard->entries[i], driver))
            return &guard->entries[i];
    return NULL;
}

int hec_guard_forget(struct hec_guard *guard, bool simulated) {
    int before = guard->count;
    for (int i = guard->count - 1; i >= 0; i--)
        if (hec_guard_is_simulated(&guard->entries[i]) == simulated)
            drop(guard, i);
    return before - guard->count;
}

/* From CUDA 13 on the version is that of CUDA (130001); before it counted (18 to 28 are CUDA 11.8 to 12.9). */
static void cupti_words(int version, char text[24]) {
    if (version >= 100000)
        snprintf(text, 24, "%d.%d", version / 10000, version / 100 % 100);
    else
        snprintf(text, 24, "version %d", version);
}

void hec_guard_words(const struct hec_guard_entry *entry, char words[200]) {
    char cupti[24], driver[64] = "unknown driver";
    cupti_words(entry->cupti, cupti);
    if (hec_guard_is_simulated(entry))
        snprintf(driver, sizeof driver, "simulated driver");
    else if (entry->driver[0])
        snprintf(driver, sizeof driver, "driver %s", entry->driver);
    else if (entry->cuda > 0)
        snprintf(driver, sizeof driver, "driver of CUDA %d.%d", entry->cuda / 1000, entry->cuda % 1000 / 10);
    snprintf(words, 200, "%.63s died by signal %d with CUPTI %s attached on %.10s (%.48s)", entry->program,
             entry->signal, cupti, entry->date, driver);
}

void hec_guard_watch_begin(struct hec_guard_watch *watch, int mode, bool simulated) {
    struct hec_guard guard;
    struct hec_why why;
    char words[200];
    memset(watch, 0, sizeof *watch);
    hec_guard_driver(simulated, watch->driver);
    if (mode == HEC_TRACE_OFF)
        return;
    if (hec_guard_read(&guard, &why) < 0)
        hec_info("whether a program died with CUPTI attached is not known: %s", why.text);
    const struct hec_guard_entry *entry = hec_guard_find(&guard, watch->driver);
    if (!entry)
        return;
    hec_guard_words(entry, words);
    if (mode == HEC_TRACE_AUTO)
        snprintf(watch->out, sizeof watch->out, "CUPTI stays out: %.180s; " HEC_GUARD_FORGET, words);
    else
        hec_warn("%s; --trace=auto would stay without CUPTI", words);
}

/* Whether the process may have died of CUPTI: it was attached. In full that is so from cuInit on, in the other modes from
 * the first window; a program of under a second may die before it could report one. */
static bool may_have_died_of_it(const struct hec_tracer *tracer) {
    bool from_the_start = tracer->mode == HEC_TRACE_FULL && !tracer->why[0] && !tracer->holder[0];
    return tracer->cupti_version > 0 && (from_the_start || tracer->windows > 0 || tracer->traced_ns > 0);
}

/* The executable, not the name of the main thread: PyTorch calls that pt_main_thread. */
static void name_of(pid_t pid, char name[64]) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(link, path, sizeof path);
    name[0] = '\0';
    if (length <= 0)
        return;
    const char *slash = memrchr(path, '/', (size_t)length), *from = slash ? slash + 1 : path;
    hec_text_clean(name, 64, from, (size_t)(path + length - from), true);
}

void hec_guard_watch_tracer(void *context, const struct hec_tracer *tracer) {
    struct hec_guard_watch *watch = context;
    pid_t root = __atomic_load_n(&watch->root, __ATOMIC_ACQUIRE);
    watch->traced = watch->traced || tracer->driver_version > 0; /* a row that nobody used CUDA has none */
    bool known = watch->attached && watch->tracer.pid == tracer->pid;
    if (!may_have_died_of_it(tracer)) {
        watch->attached = watch->attached && !known; /* it runs another program now, which has no CUPTI */
        return;
    }
    if (watch->attached && !known && watch->tracer.pid == root)
        return;
    if (!known)
        name_of(tracer->pid, watch->program);
    watch->attached = true;
    watch->tracer = *tracer;
}

static void report(const struct hec_sink *sink, int64_t t_ns, const char *text) {
    sink->event(sink->context, HEC_EVENT_TRACE_GUARD, HEC_DEVICE_NONE, t_ns, text);
}

static int remember(const struct hec_guard_entry *entry, struct hec_why *why) {
    struct hec_guard guard;
    int err = hec_guard_read(&guard, why);
    if (err == HEC_ERR_VERSION) /* a newer HEC's memory is not replaced; a damaged one is */
        return err;
    hec_guard_add(&guard, entry);
    return hec_guard_write(&guard, why);
}

void hec_guard_watch_end(const struct hec_guard_watch *watch, const struct hec_child *child, const char *command,
                         const struct hec_sink *sink) {
    if (watch->out[0] && watch->traced)
        report(sink, child->start_ns, watch->out);
    /* 128+N: a shell or a launcher passes on how its child, the traced process, ended */
    int signal = child->exit_code - 128;
    if (!watch->attached || !hec_guard_is_crash(signal))
        return;
    const struct hec_tracer *tracer = &watch->tracer;
    const char *slash = strrchr(command, '/');
    struct hec_guard_entry entry = {
        .cuda = tracer->driver_version, .cupti = tracer->cupti_version, .mode = tracer->mode, .signal = signal};
    memcpy(entry.driver, watch->driver, sizeof entry.driver);
    memcpy(entry.program, watch->program, sizeof entry.program);
    if (!entry.program[0]) {
        command = slash ? slash + 1 : command;
        hec_text_clean(entry.program, sizeof entry.program, command, strlen(command), true);
    }
    hec_text_clean(entry.library, sizeof entry.library, tracer->library, strlen(tracer->library), true);
    hec_facts_wall_time(hec_clock_wall_ns(), entry.date);
    struct hec_why why;
    char text[700];
    int err = remember(&entry, &why);
    int used = snprintf(text, sizeof text, "the command %s signal %d with CUPTI attached to %s: ",
                        child->signal ? "died by" : "ended with the status of", signal, entry.program);
    if (err < 0)
        snprintf(text + used, sizeof text - (size_t)used, "not remembered: %s", why.text);
    else
        snprintf(text + used, sizeof text - (size_t)used,
                 "remembered, --trace=auto stays without CUPTI from now on; " HEC_GUARD_FORGET);
    report(sink, child->end_ns, text);
}
