/* A folder of a test's own, for its files: it exists while the test runs. */
#pragma once

#include "unit.h"

#include <ftw.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[32];

static inline int folder_make(void **state) {
    (void)state;
    strcpy(folder, "/tmp/hec-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return chmod(folder, 0755);
}

static inline int folder_remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw) {
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

static inline int folder_remove(void **state) {
    (void)state;
    return nftw(folder, folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* FOLDER/NAME, until the fourth call after this one. */
static inline const char *in_folder(const char *name) {
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* With all that it contains. */
static inline void folder_delete(const char *name) {
    nftw(in_folder(name), folder_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A file that is there is rewritten in place, as files of /proc change. */
static inline void file_write(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Its path. */
static inline const char *folder_write(const char *name, const void *bytes, size_t length) {
    const char *path = in_folder(name);
    file_write(path, bytes, length);
    return path;
}

/* With the folders it needs. */
static inline __attribute__((format(printf, 2, 3))) void folder_text(const char *name, const char *format, ...) {
    char path[256], text[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_in_range(length, 0, sizeof text - 1);
    folder_write(name, text, (size_t)length);
}

/* How many bytes the file has, at most `room`. */
static inline size_t file_read(const char *path, void *bytes, size_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(bytes, 1, room, file);
    fclose(file);
    return length;
}

/* Descriptors, so that those that are left open show. */
static inline int open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}
