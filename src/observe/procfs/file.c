#include "observe/procfs/file.h"

#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_all(int fd, char *text, size_t size) {
    size_t length = 0;
    while (length + 1 < size) {
        ssize_t got = pread(fd, text + length, size - 1 - length, (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        length += (size_t)got;
        /* the kernel fills a page before it cuts; asking again for the end would double the cost of the small ones */
        if (length < 3072)
            break;
    }
    text[length] = '\0';
    return (ssize_t)length;
}

ssize_t hec_proc_read(int dir, const char *path, char *text, size_t size) {
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t length = read_all(fd, text, size);
    close(fd);
    return length;
}

ssize_t hec_proc_reread(int fd, char *text, size_t size) {
    return read_all(fd, text, size);
}

bool hec_proc_error_is_gone(ssize_t error) {
    return error == -ENOENT || error == -ESRCH || error == -ENOTDIR;
}

bool hec_proc_error_is_denied(ssize_t error) {
    return error == -EACCES || error == -EPERM;
}

/* Real, effective, saved and that of files. */
static bool read_users(int dir, int32_t pid, unsigned user[4]) {
    char path[32], text[4096];
    snprintf(path, sizeof path, "%d/status", pid);
    if (hec_proc_read(dir, path, text, sizeof text) < 0)
        return false;
    const char *line = strstr(text, "\nUid:"); /* a name cannot hold a newline here */
    return line && sscanf(line, " Uid: %u %u %u %u", &user[0], &user[1], &user[2], &user[3]) == 4;
}

bool hec_proc_is_users(int dir, int32_t pid, uid_t user) {
    unsigned id[4];
    return read_users(dir, pid, id) && id[0] == user && id[1] == user && id[2] == user && id[3] == user;
}

bool hec_proc_is_of_others(int dir, int32_t pid, uid_t user) {
    unsigned id[4];
    return read_users(dir, pid, id) && id[0] != user && id[1] != user && id[2] != user && id[3] != user;
}

int hec_proc_list_numbers(int dir, const char *path, void (*visit)(void *context, int32_t number), void *context) {
    int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    _Alignas(struct dirent64) char entries[16384];
    ssize_t got;
    while ((got = getdents64(fd, entries, sizeof entries)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            char *end;
            long number = strtol(entry->d_name, &end, 10);
            if (*end == '\0' && number > 0 && number <= INT32_MAX)
                visit(context, (int32_t)number);
        }
    }
    int result = got < 0 ? -errno : 0;
    close(fd);
    return result;
}

void hec_proc_each_number(const char *text, void (*visit)(void *context, int32_t number), void *context) {
    for (const char *at = text;;) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at)
            return;
        if (number > 0 && number <= INT32_MAX)
            visit(context, (int32_t)number);
        at = end;
    }
}

/* A program may give itself any name, and the kernel cuts it at 15 bytes, so in the middle of a character. */
static void copy_name(char *out, size_t size, const char *name, size_t length) {
    hec_text_clean(out, size, name, length, true);
}

static bool next_number(const char **at, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    if (end == *at || (errno && value >= 0 && value != INT64_MAX))
        return false;
    *at = end;
    *out = value;
    return true;
}

bool hec_proc_parse_stat(const char *text, struct hec_proc_stat *out) {
    memset(out, 0, sizeof *out);
    const char *at = text;
    int64_t pid;
    if (!next_number(&at, &pid) || strncmp(at, " (", 2) != 0)
        return false;
    /* the name may hold anything, parentheses and spaces too; after the last ')' there are only numbers */
    const char *name = at + 2;
    const char *close = strrchr(name, ')');
    if (!close || close[1] != ' ' || close[2] == '\0' || close[3] != ' ')
        return false;
    copy_name(out->name, sizeof out->name, name, (size_t)(close - name));
    out->pid = (int32_t)pid;
    out->state = close[2];
    at = close + 3;
    int64_t field[25]; /* by the numbers of proc(5): 4 is ppid, 24 is rss */
    for (int i = 4; i <= 24; i++)
        if (!next_number(&at, &field[i]))
            return false;
    out->parent = (int32_t)field[4];
    out->own_ticks = field[14] + field[15];
    out->waited_ticks = field[16] + field[17];
    out->threads = field[20];
    out->start_ticks = field[22];
    out->rss_pages = field[24];
    return true;
}

int64_t hec_proc_parse_field(const char *text, const char *key) {
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0) {
            const char *at = line + length;
            int64_t value;
            return next_number(&at, &value) && value >= 0 ? value : -1;
        }
    }
    return -1;
}

bool hec_proc_parse_io(const char *text, struct hec_proc_io *out) {
    out->read = hec_proc_parse_field(text, "rchar:");
    out->written = hec_proc_parse_field(text, "wchar:");
    out->disk_read = hec_proc_parse_field(text, "read_bytes:");
    return out->read >= 0 && out->written >= 0 && out->disk_read >= 0;
}

bool hec_proc_parse_status(const char *text, struct hec_proc_status *out) {
    const char *state = strstr(text, "\nState:\t");
    out->state = state ? state[8] : '\0';
    out->voluntary = hec_proc_parse_field(text, "voluntary_ctxt_switches:");
    out->involuntary = hec_proc_parse_field(text, "nonvoluntary_ctxt_switches:");
    out->rss_max_kib = hec_proc_parse_field(text, "VmHWM:");
    return out->state != '\0';
}

bool hec_proc_parse_cpu(const char *text, int64_t *busy_ticks, int64_t *total_ticks) {
    if (strncmp(text, "cpu ", 4) != 0)
        return false;
    const char *at = text + 4;
    /* user nice system idle iowait irq softirq steal; guest time is already in user and nice */
    int64_t field[8] = {0};
    int count = 0;
    while (count < 8 && next_number(&at, &field[count]))
        count++;
    if (count < 4)
        return false;
    *busy_ticks = field[0] + field[1] + field[2] + field[5] + field[6];
    *total_ticks = *busy_ticks + field[3] + field[4] + field[7];
    return true;
}
