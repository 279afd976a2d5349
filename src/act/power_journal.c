#include "act/power_journal.h"

#include "base/own.h"
#include "base/live.h"
#include "base/sha256.h"
#include "base/text.h"
#include "launch/descendants.h"
#include "launch/kept_file.h"
#include "launch/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POWER_SCHEMA "hec.power/1"

#define SCHEMA_FAMILY "hec.power/"
#define LIMIT_MAX INT64_C(100000000) /* 100 kW in mW, and far beyond any clock */
#define UUID_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

static const char *const knobs[HEC_POWER_KNOB_COUNT] = {"cap", "clock"};

/* "cap" */
static const char *power_knob_name(enum hec_power_knob knob) {
    return knobs[knob];
}

enum field_kind { TEXT, NUMBER };
#define FIELD_TEXT(name)                                                                                               \
    { #name, TEXT, offsetof(struct hec_power_entry, name), sizeof((struct hec_power_entry *)0)->name, 0 }
#define FIELD_NUMBER(name, least)                                                                                      \
    { #name, NUMBER, offsetof(struct hec_power_entry, name), 0, least }
static const struct field {
    const char *name;
    enum field_kind kind;
    size_t offset, size;
    int64_t least;
} fields[] = {
    FIELD_TEXT(uuid),        FIELD_TEXT(machine),     FIELD_TEXT(boot),
    FIELD_TEXT(driver),      FIELD_NUMBER(prior, 0),  FIELD_NUMBER(value, 1),
    FIELD_NUMBER(before, 0), FIELD_NUMBER(holder, 1), FIELD_NUMBER(holder_start, 0),
    FIELD_TEXT(program),
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

int hec_power_entry_print(const struct hec_power_entry *entry, struct hec_buf *out) {
    json_t *root = json_object();
    json_object_set_new(root, "schema", json_string(POWER_SCHEMA));
    json_object_set_new(root, "knob", json_string(knobs[entry->knob]));
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const void *at = (const char *)entry + fields[i].offset;
        json_object_set_new(root, fields[i].name,
                            fields[i].kind == TEXT ? json_string(at) : json_integer(*(const int64_t *)at));
    }
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    int err = text ? hec_buf_puts(out, text) : HEC_ERR_NOMEM;
    free(text);
    return err;
}

static bool take_field(const json_t *root, const struct field *field, struct hec_power_entry *entry) {
    const json_t *value = json_object_get(root, field->name);
    void *at = (char *)entry + field->offset;
    int64_t number = json_integer_value(value);
    int64_t most = field->offset >= offsetof(struct hec_power_entry, holder) ? INT64_MAX : LIMIT_MAX;
    if (field->kind == NUMBER) {
        *(int64_t *)at = number;
        return json_is_integer(value) && number >= field->least && number <= most;
    }
    if (!json_is_string(value) || json_string_length(value) >= field->size)
        return false;
    hec_text_clean(at, field->size, json_string_value(value), json_string_length(value), true);
    return strcmp(at, json_string_value(value)) == 0 || field->offset == offsetof(struct hec_power_entry, program);
}

static int read_fields(const json_t *root, struct hec_power_entry *entry, struct hec_why *why) {
    const json_t *schema = json_object_get(root, "schema"), *knob = json_object_get(root, "knob");
    const char *name = json_is_string(schema) ? json_string_value(schema) : "";
    char key[HEC_POWER_KEY];
    if (strncmp(name, SCHEMA_FAMILY, strlen(SCHEMA_FAMILY)) == 0 && strcmp(name, POWER_SCHEMA) != 0)
        return hec_fail(why, HEC_ERR_VERSION, "it is of another version of HEC");
    bool good = strcmp(name, POWER_SCHEMA) == 0 && json_is_string(knob);
    int found = 0;
    while (good && found < HEC_POWER_KNOB_COUNT && strcmp(knobs[found], json_string_value(knob)) != 0)
        found++;
    good = good && found < HEC_POWER_KNOB_COUNT;
    for (size_t i = 0; good && i < FIELD_COUNT; i++)
        good = take_field(root, &fields[i], entry);
    entry->knob = good ? (enum hec_power_knob)found : HEC_POWER_CAP;
    /* a cap of nothing was never there; of clocks, only "not locked" can be put back */
    good = good && (entry->knob == HEC_POWER_CAP ? entry->prior > 0 : entry->prior == 0);
    if (!good || hec_power_entry_key(entry->uuid, entry->machine, key) < 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "it is damaged");
    return HEC_OK;
}

int hec_power_entry_parse(const char *text, size_t length, struct hec_power_entry *entry, struct hec_why *why) {
    json_error_t reason;
    *entry = (struct hec_power_entry){0};
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    int err = root ? read_fields(root, entry, why)
                   : hec_fail(why, HEC_ERR_CORRUPT, "it is damaged: line %d is no JSON", reason.line);
    json_decref(root);
    return err;
}

int hec_power_entry_key(const char *uuid, const char *machine, char key[HEC_POWER_KEY]) {
    size_t length = strlen(uuid);
    if (length < 8 || length > 90 || strspn(uuid, UUID_CHARACTERS) != length)
        return HEC_ERR_USAGE;
    const char *state = machine[0] ? strstr(machine, "state=") : NULL;
    if (machine[0] && !state)
        return HEC_ERR_USAGE;
    char digest[HEC_SHA256_TEXT] = "";
    if (state)
        hec_sha256(digest, state, strlen(state)); /* however many devices a run asked for */
    snprintf(key, HEC_POWER_KEY, state ? "%s-%.16s" : "%s", uuid, digest);
    return HEC_OK;
}

#define FILE_BYTES_MAX (16 << 10)
#define PREFIX "power-"
/* A guardian needs milliseconds to put back, a driver that wakes a device seconds. */
#define LOCK_ATTEMPTS 300
#define LOCK_ATTEMPT_NS 10000000L

#define FOLDERS 3
static const char *const system_folders[FOLDERS - 1] = {"/var/lib/hec", "/run/hec"};

static bool is_root_without_choice(void) {
    const char *given = getenv("HEC_STATE_DIR");
    return geteuid() == 0 && !(given && given[0]);
}

/* Those where entries may be, number by number; false: not one of this user's. */
static bool folder_at(int number, char path[PATH_MAX]) {
    if (number < FOLDERS - 1) {
        snprintf(path, PATH_MAX, "%s", system_folders[number]);
        return is_root_without_choice();
    }
    if (hec_path_state("", path, NULL) < 0)
        return false;
    path[strlen(path) - 1] = '\0'; /* the slash */
    return true;
}

static int journal_folder(bool simulated, char path[PATH_MAX], struct hec_why *why) {
    if (simulated || !is_root_without_choice()) {
        int err = hec_path_state("", path, why);
        if (err == HEC_OK)
            path[strlen(path) - 1] = '\0';
        return err;
    }
    folder_at(access("/var/lib", W_OK) == 0 ? 0 : 1, path);
    return HEC_OK;
}

static int path_of(const char *uuid, const char *machine, const char *end, char path[PATH_MAX], struct hec_why *why) {
    char key[HEC_POWER_KEY], folder[PATH_MAX];
    if (hec_power_entry_key(uuid, machine, key) < 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the device has no UUID by which its limit could be remembered");
    int err = journal_folder(machine[0] != '\0', folder, why);
    if (err == HEC_OK && snprintf(path, PATH_MAX, "%s/" PREFIX "%s%s", folder, key, end) >= PATH_MAX)
        err = hec_fail(why, HEC_ERR_LIMIT, "the state folder's name is too long");
    return err;
}

static int entry_path(const struct hec_power_entry *entry, char path[PATH_MAX], struct hec_why *why) {
    char end[24];
    snprintf(end, sizeof end, "-%s.json", power_knob_name(entry->knob));
    return path_of(entry->uuid, entry->machine, end, path, why);
}

/* That a name has come or gone is on disk, too. */
static int settle(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return result == 0 || errno == EINVAL || errno == EROFS ? HEC_OK : HEC_ERR_IO; /* not every file system can */
}

int hec_power_journal_write(const struct hec_power_entry *entry, struct hec_why *why) {
    char path[PATH_MAX];
    struct hec_buf text;
    int err = entry_path(entry, path, why);
    if (err < 0)
        return err;
    hec_buf_init(&text, FILE_BYTES_MAX);
    err = hec_power_entry_print(entry, &text);
    err = err < 0 ? hec_fail(why, err, "no memory") : hec_kept_file_write(path, hec_buf_text(&text), why);
    hec_buf_free(&text);
    return err == HEC_OK && settle(path) < 0 ? hec_fail(why, HEC_ERR_IO, "cannot write %s", path) : err;
}

int hec_power_journal_remove(const struct hec_power_entry *entry, struct hec_why *why) {
    char path[PATH_MAX];
    int err = entry_path(entry, path, why);
    if (err == HEC_OK && unlink(path) != 0 && errno != ENOENT)
        err = hec_fail(why, hec_err_from_errno(errno), "cannot remove %s: %s", path, strerror(errno));
    return err == HEC_OK ? settle(path) : err;
}

static int read_entry(const char *path, struct hec_power_entry *entry, struct hec_why *why) {
    char *text = NULL, expected[PATH_MAX];
    size_t length;
    struct hec_why reason = {""};
    int err = hec_kept_file_read(path, FILE_BYTES_MAX, &text, &length, why);
    if (err < 0)
        return err;
    err = hec_power_entry_parse(text, length, entry, &reason);
    if (err == HEC_OK &&
        (entry_path(entry, expected, &reason) < 0 || strcmp(strrchr(expected, '/'), strrchr(path, '/')) != 0))
        err = hec_fail(&reason, HEC_ERR_CORRUPT, "it is of another device");
    free(text);
    return err < 0 ? hec_fail(why, err, "%s: %s", path, reason.text) : HEC_OK;
}

int hec_power_journal_read(const char *uuid, const char *machine, enum hec_power_knob knob,
                           struct hec_power_entry *entry, struct hec_why *why) {
    char path[PATH_MAX], end[24];
    snprintf(end, sizeof end, "-%s.json", power_knob_name(knob));
    int err = path_of(uuid, machine, end, path, why);
    return err < 0 ? err : read_entry(path, entry, why);
}

/* Who locks a device, by its journal. */
static bool find_holder(const char *uuid, const char *machine, struct hec_power_entry *entry) {
    for (int k = 0; k < HEC_POWER_KNOB_COUNT; k++)
        if (hec_power_journal_read(uuid, machine, (enum hec_power_knob)k, entry, NULL) == HEC_OK)
            return true;
    return false;
}

static bool is_alive(const struct hec_power_entry *holder) {
    return hec_process_start((pid_t)holder->holder) == (unsigned long long)holder->holder_start;
}

/* Holders remove the file before they let it go: what was locked has to be what is there. */
static bool is_there(int fd, const char *path) {
    struct stat mine, theirs;
    return fstat(fd, &mine) == 0 && stat(path, &theirs) == 0 && mine.st_ino == theirs.st_ino &&
           mine.st_dev == theirs.st_dev;
}

/* -1 with errno: EAGAIN where another process has it. */
static int try_lock(const char *path) {
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return -1;
        bool held = hec_live_hold(fd), foreign = !held && hec_live_held(fd);
        if (held && is_there(fd, path))
            return fd;
        close(fd);
        errno = foreign ? EAGAIN : ENOLCK;
        if (!held)
            return -1;
    }
}

/* The guardian of a process that is gone is putting back, or is just dying itself. */
static int wait_for_lock(const char *path, const char *uuid, const char *machine) {
    struct hec_power_entry holder;
    int fd = -1;
    for (int i = 0; i < LOCK_ATTEMPTS && (fd = try_lock(path)) < 0 && errno == EAGAIN; i++) {
        bool leased = find_holder(uuid, machine, &holder) && is_alive(&holder);
        if (!leased)
            nanosleep(&(struct timespec){.tv_nsec = LOCK_ATTEMPT_NS}, NULL);
        errno = EAGAIN;
        if (leased)
            break;
    }
    return fd;
}

int hec_power_journal_lock(const char *uuid, const char *machine, int *fd, struct hec_why *why) {
    char path[PATH_MAX];
    struct hec_power_entry holder;
    int err = path_of(uuid, machine, ".lock", path, why);
    if (err < 0)
        return err;
    if ((err = hec_own_place(path, why)) < 0)
        return err;
    *fd = hec_kept_file_folders(path) != 0 ? -1 : wait_for_lock(path, uuid, machine);
    if (*fd >= 0)
        return HEC_OK;
    if (errno == ENOLCK)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "the file system of %s has no locks", path);
    if (errno != EAGAIN)
        return hec_fail(why, hec_err_from_errno(errno), "cannot open %s: %s", path, strerror(errno));
    if (!find_holder(uuid, machine, &holder))
        return hec_fail(why, HEC_ERR_BUSY, "another hec is about to change the limits of %s", uuid);
    return hec_fail(why, HEC_ERR_BUSY, "process %lld (%s)%s already holds the limits of %s", (long long)holder.holder,
                    holder.program, is_alive(&holder) ? "" : ", which has ended and whose guardian puts them back,",
                    uuid);
}

void hec_power_journal_unlock(const char *uuid, const char *machine, int fd) {
    char path[PATH_MAX];
    if (path_of(uuid, machine, ".lock", path, NULL) == HEC_OK)
        unlink(path);
    close(fd);
}

static bool is_entry(const char *name) {
    size_t length = strlen(name);
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

/* What a process that was killed has left while it wrote: its name has not become that of an entry. */
static void tidy(const char *folder, const char *name) {
    char path[PATH_MAX];
    const char *end = strstr(name, ".json.");
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || !end)
        return;
    while (end > name && *end != '-')
        end--;
    if (snprintf(path, sizeof path, "%s/%.*s.lock", folder, (int)(end - name), name) >= PATH_MAX)
        return;
    int fd = try_lock(path);
    if (fd < 0)
        return;
    unlink(path);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_MAX)
        unlink(path);
    close(fd);
}

static void each_in(const char *folder, hec_power_seen seen, void *context) {
    DIR *list = opendir(folder);
    for (struct dirent *file; list && (file = readdir(list));) {
        char path[PATH_MAX];
        struct hec_power_entry entry;
        struct hec_why why = {""};
        tidy(folder, file->d_name);
        if (!is_entry(file->d_name) || snprintf(path, sizeof path, "%s/%s", folder, file->d_name) >= PATH_MAX)
            continue;
        int err = read_entry(path, &entry, &why);
        if (err != HEC_ERR_NOTFOUND) /* its holder has just removed it */
            seen(context, path, err, &entry, why.text);
    }
    if (list)
        closedir(list);
}

void hec_power_journal_each(hec_power_seen seen, void *context) {
    char path[PATH_MAX], last[PATH_MAX] = "";
    for (int i = 0; i < FOLDERS; i++)
        if (folder_at(i, path) && strcmp(path, last) != 0) {
            each_in(path, seen, context);
            snprintf(last, sizeof last, "%s", path);
        }
}
