#include "store/scrub.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_uuid(const char *text) {
    if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0)
        return false;
    for (int i = 4; i < HEC_SCRUB_UUID_LENGTH; i++) {
        bool dash = i == 12 || i == 17 || i == 22 || i == 27;
        if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
            return false;
    }
    return true;
}

static void put_uuid(struct hec_scrubber *s, const char *text, struct hec_buf *out) {
    if (!s->uuids)
        s->uuids = calloc(HEC_SCRUB_UUIDS_MAX, sizeof *s->uuids);
    int number = 0;
    while (s->uuids && number < s->uuid_count && strncmp(s->uuids[number], text, HEC_SCRUB_UUID_LENGTH) != 0)
        number++;
    if (s->uuids && number == s->uuid_count && number < HEC_SCRUB_UUIDS_MAX - 1)
        memcpy(s->uuids[s->uuid_count++], text, HEC_SCRUB_UUID_LENGTH);
    hec_buf_printf(out, "%.4s00000000-0000-0000-0000-%012d", text, number);
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* A path ends where an argument does. */
static size_t path_length(const char *text) {
    return strcspn(text, " \t\n'\"`;:,=()[]{}<>|&");
}

static bool is_public(const char *path) {
    static const char *const roots[] = {"/dev/", "/etc/", "/lib", "/proc/", "/sys/", "/usr/"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            return true;
    return false;
}

/* Where an installed package, Python's library or HEC's hooks begin in a path: it names nobody, and shows whose code a
 * line is. */
static size_t installed_part(const char *path, size_t length) {
    static const char *const parts[] = {"site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3",
                                        "/hec/_hooks/"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = memmem(path, length, parts[i], strlen(parts[i]));
        if (at)
            return (size_t)(at - path);
    }
    return length;
}

static void put_last_part(const char *path, size_t length, struct hec_buf *out) {
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/')
        start--;
    hec_buf_add(out, path + start, length - start);
}

void hec_scrub_text(struct hec_scrubber *s, const char *text, struct hec_buf *out) {
    const struct hec_store_scrub *scrub = s->scrub;
    size_t host = scrub->hostname && s->hostname ? strlen(s->hostname) : 0;
    for (size_t i = 0; text[i];) {
        bool begins = i == 0 || !is_word(text[i - 1]);
        if (scrub->uuids && begins && is_uuid(text + i)) {
            put_uuid(s, text + i, out);
            i += HEC_SCRUB_UUID_LENGTH;
        } else if (host && begins && strncmp(text + i, s->hostname, host) == 0 && !is_word(text[i + host])) {
            hec_buf_puts(out, "host");
            i += host;
        } else if (scrub->paths && text[i] == '/' && (i == 0 || path_length(text + i - 1) == 0) &&
                   !is_public(text + i)) {
            size_t length = path_length(text + i), installed = installed_part(text + i, length);
            if (installed < length)
                hec_buf_add(out, text + i + installed, length - installed);
            else
                put_last_part(text + i, length, out);
            i += length;
        } else {
            hec_buf_add(out, text + i++, 1);
        }
    }
}

void hec_scrub_arguments(const char *command, struct hec_buf *out) {
    put_last_part(command, path_length(command), out);
}
