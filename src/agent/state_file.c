#include "agent/state_file.h"

#include "base/clock.h"
#include "base/live.h"
#include "base/own.h"
#include "base/sha256.h"
#include "launch/kept_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "hec-agent-state"
#define VERSION 1
#define NAMES_FIRST 6 /* of a tenant, in every version */
#define LENGTH_MAX (8u << 20)
#define LOCK "lock"
#define STATE "state"
#define SYNCED "state.synced"
#define FRESH "state.new"
#define AWAY_MAX_NS (INT64_C(3650) * 86400 * HEC_NS_PER_S) /* a clock that was wrong */
#define DIGEST "sha256 "
#define TAIL (sizeof DIGEST - 1 + HEC_SHA256_TEXT) /* with its newline */

static void boot_id(char id[64]) {
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, id, 63);
    if (fd >= 0)
        close(fd);
    id[length > 0 ? length : 0] = '\0';
    id[strcspn(id, "\n")] = '\0';
    if (!id[0])
        strcpy(id, "-");
}

/* Time that goes on while the machine sleeps. */
static int64_t boot_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

int hec_state_file_open(struct hec_state_file *file, const char *folder, uid_t owner, struct hec_why *why) {
    *file = (struct hec_state_file){.folder = -1, .lock = -1, .owner = owner};
    hec_buf_init(&file->text, LENGTH_MAX);
    int err = hec_own_folder(folder, owner, why);
    if (err < 0)
        return err;
    if (hec_kept_file_folders(folder) < 0 || (mkdir(folder, 0700) != 0 && errno != EEXIST))
        return hec_fail(why, hec_err_from_errno(errno), "cannot make %s: %s", folder, strerror(errno));
    file->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->folder >= 0)
        file->lock = openat(file->folder, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->lock < 0) {
        int errnum = errno;
        hec_state_file_close(file);
        return hec_fail(why, hec_err_from_errno(errnum), "cannot keep state in %s: %s", folder, strerror(errnum));
    }
    if (!hec_live_hold(file->lock) && hec_live_held(file->lock)) {
        hec_state_file_close(file);
        return hec_fail(why, HEC_ERR_BUSY, "another agent keeps its state in %s", folder);
    }
    return HEC_OK;
}

void hec_state_file_close(struct hec_state_file *file) {
    if (file->lock >= 0)
        close(file->lock);
    if (file->folder >= 0)
        close(file->folder);
    hec_buf_free(&file->text);
    file->folder = file->lock = -1;
}

static const char *const files[] = {LOCK, STATE, SYNCED, FRESH, STATE ".damaged"};
#define FILE_COUNT (sizeof files / sizeof files[0])

static bool holds_nothing_else(int folder) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    bool nothing = entries != NULL;
    for (struct dirent *entry; nothing && (entry = readdir(entries)) != NULL;) {
        bool known = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        for (size_t i = 0; i < FILE_COUNT; i++)
            known = known || strcmp(entry->d_name, files[i]) == 0;
        nothing = known;
    }
    if (entries)
        closedir(entries);
    else if (fd >= 0)
        close(fd);
    return nothing;
}

/* Only a file that is here alone: not what a link in a folder of that user would make his. */
static int give_file(int folder, const char *name, uid_t user, gid_t group) {
    struct stat info;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    int failed = fstat(fd, &info);
    if (failed == 0 && (info.st_uid != user || info.st_gid != group)) {
        errno = EPERM;
        failed = S_ISREG(info.st_mode) && info.st_nlink == 1 ? fchown(fd, user, group) : -1;
    }
    int error = errno;
    close(fd);
    errno = error;
    return failed;
}

int hec_state_file_give(struct hec_state_file *file, const char *folder, uid_t user, gid_t group, struct hec_why *why) {
    struct stat info;
    int failed = fstat(file->folder, &info);
    if (failed == 0 && info.st_uid != user && (info.st_uid != geteuid() || !holds_nothing_else(file->folder)))
        return hec_fail(
            why, HEC_ERR_PERMISSION,
            "%s is not that user's and holds other things than an agent's state: the state needs a folder of "
            "its own",
            folder);
    for (size_t i = 0; i < FILE_COUNT && failed == 0; i++)
        failed = give_file(file->folder, files[i], user, group);
    if (failed == 0 && info.st_uid != user)
        failed = fchown(file->folder, user, group);
    return failed == 0
               ? HEC_OK
               : hec_fail(why, hec_err_from_errno(errno), "cannot give %s to that user: %s", folder, strerror(errno));
}

/* ---- reading ---- */

struct reading {
    struct hec_node *node;
    struct hec_node_kept *device; /* the latest line "device" */
    int64_t saved_ns;             /* monotonic */
    bool same_boot;
};

static bool take_saved(struct reading *r, const char *line) {
    char id[64], here[64];
    int64_t wall, boot;
    if (sscanf(line, "saved %" SCNd64 " %" SCNd64 " %63s", &wall, &boot, id) != 3)
        return false;
    boot_id(here);
    r->same_boot = strcmp(id, here) == 0;
    int64_t away = r->same_boot ? boot_ns() - boot : hec_clock_wall_ns() - wall;
    r->saved_ns = hec_clock_mono_ns() - (away < 0 ? 0 : away > AWAY_MAX_NS ? AWAY_MAX_NS : away);
    return true;
}

static bool take_device(struct reading *r, const char *uuid) {
    struct hec_node *node = r->node;
    if (node->kept_count == HEC_DEVICE_MAX || !*uuid || strlen(uuid) >= sizeof node->kept->uuid)
        return false;
    r->device = &node->kept[node->kept_count++];
    *r->device = (struct hec_node_kept){.counter_mj = -1, .counter_ns = r->saved_ns, .accounted_ns = r->saved_ns};
    strcpy(r->device->uuid, uuid);
    return hec_shares_create(&r->device->shares) == HEC_OK;
}

static bool take_domain(struct hec_node *node, const char *line) {
    char name[32];
    struct hec_node_domain domain = {0};
    if (sscanf(line, "domain %31s %d %" SCNd64, name, &domain.index, &domain.total_uj) != 3 || domain.total_uj < 0 ||
        node->domain_count == HEC_NODE_DOMAINS_MAX)
        return false;
    bool dram = strcmp(name, "dram") == 0;
    domain.metric = dram ? HEC_RAPL_DRAM_ENERGY : HEC_RAPL_PACKAGE_ENERGY;
    node->domains[node->domain_count++] = domain;
    return dram || strcmp(name, "package") == 0;
}

static bool take_number(struct reading *r, const char *line) {
    char name[64];
    int64_t value;
    if (!r->device || sscanf(line, "%63s %" SCNd64, name, &value) != 2 || value < 0)
        return false;
    if (strcmp(name, "counter") == 0) {
        /* a driver's counter begins at 0 with the machine: all of it was drawn since */
        r->device->counter_mj = r->same_boot ? value : 0;
        r->device->total[HEC_NODE_RESETS] += !r->same_boot;
        return true;
    }
    for (int i = 0; i < HEC_NODE_TOTAL_COUNT; i++)
        if (strcmp(name, hec_node_total_name((enum hec_node_total)i)) == 0) {
            r->device->total[i] += value;
            return true;
        }
    return true; /* of a newer version that keeps more */
}

/* "HELD WORKED CAUSE UJ CAUSE UJ ..."; a cause of a newer version is not known, and of no cause. */
static bool take_use(const char *text, struct hec_use_made *use) {
    char name[64];
    int64_t uj;
    int length = 0;
    if (sscanf(text, "%" SCNd64 " %" SCNd64 "%n", &use->held_ns, &use->worked_ns, &length) != 2)
        return false;
    for (text += length; *text; text += length) {
        if (sscanf(text, " %63s %" SCNd64 "%n", name, &uj, &length) != 2)
            return false;
        int cause = hec_waste_find(name);
        use->wasted_uj[cause < HEC_WASTE_COUNT ? cause : HEC_WASTE_UNKNOWN] += uj;
    }
    return true;
}

static void put_use(struct hec_buf *out, const struct hec_use_made *use) {
    hec_buf_printf(out, "\t%" PRId64 " %" PRId64, use->held_ns, use->worked_ns);
    for (int cause = 0; cause < HEC_WASTE_COUNT; cause++)
        if (use->wasted_uj[cause])
            hec_buf_printf(out, " %s %" PRId64, hec_waste_name(cause), use->wasted_uj[cause]);
    hec_buf_puts(out, "\n");
}

static bool take_share(struct reading *r, const char *line) {
    struct hec_shares_row row = {0};
    struct hec_tenant *tenant = &row.tenant;
    const struct {
        char *text;
        size_t size;
    } names[] = {
        {tenant->pod_namespace, sizeof tenant->pod_namespace},
        {tenant->pod, sizeof tenant->pod},
        {tenant->container, sizeof tenant->container},
        {tenant->job, sizeof tenant->job},
        {tenant->user, sizeof tenant->user},
        {tenant->command, sizeof tenant->command},
        {tenant->step, sizeof tenant->step}, /* from here on of newer versions */
        {tenant->array_task, sizeof tenant->array_task},
    };
    int64_t age_ns;
    if (!r->device || !r->device->shares)
        return false;
    int got = sscanf(line, "share %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %lf %lf %lf %lf",
                     &row.uj[HEC_SHARES_ACTIVE], &row.uj[HEC_SHARES_IDLE], &row.uj[HEC_SHARES_UNATTRIBUTED], &age_ns,
                     &row.mw_a_permille, &row.error.turns_uj2, &row.error.figures_uj, &row.error.floor_uj);
    if (got != 8 && got != 5)
        return false;
    if (got == 5 && row.uj[HEC_SHARES_ACTIVE] > 0) /* of a version that noted none */
        row.error = hec_share_error_unknown();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *tab = strchr(line, '\t');
        if (!tab && i < NAMES_FIRST)
            return false;
        if (!tab)
            break;
        line = tab + 1;
        snprintf(names[i].text, names[i].size, "%.*s", (int)strcspn(line, "\t"), line);
    }
    const char *use = strchr(line, '\t');
    if (use && !take_use(use + 1, &row.use))
        return false;
    row.held_ns = r->saved_ns - age_ns;
    return hec_shares_restore(r->device->shares, &row) == HEC_OK;
}

static bool take_floor(struct reading *r, const char *line) {
    struct hec_shares_floor floor;
    if (!r->device || !r->device->shares ||
        sscanf(line, "floor %" SCNd64 " %" SCNd64, &floor.free_mw, &floor.held_mw) != 2)
        return false;
    hec_shares_restore_floor(r->device->shares, floor);
    return true;
}

static bool take_xid(struct reading *r, const char *line) {
    int64_t number, times;
    if (!r->device || sscanf(line, "xid %" SCNd64 " %" SCNd64, &number, &times) != 2 || number < 0 || times < 0)
        return false;
    hec_xids_add(&r->device->xids, number, times);
    return true;
}

static bool take_line(struct reading *r, const char *line) {
    if (strncmp(line, "saved ", 6) == 0)
        return take_saved(r, line);
    if (strncmp(line, "device ", 7) == 0)
        return take_device(r, line + 7);
    if (strncmp(line, "domain ", 7) == 0)
        return take_domain(r->node, line);
    if (strncmp(line, "share ", 6) == 0)
        return take_share(r, line);
    if (strncmp(line, "floor ", 6) == 0)
        return take_floor(r, line);
    if (strncmp(line, "xid ", 4) == 0)
        return take_xid(r, line);
    return take_number(r, line);
}

static int parse(char *text, size_t length, struct hec_node *node, struct hec_why *why) {
    char digest[HEC_SHA256_TEXT];
    int version;
    if (length < TAIL || text[length - 1] != '\n' || strlen(text) != length)
        return hec_fail(why, HEC_ERR_CORRUPT, "the kept state is cut short");
    size_t body = length - TAIL;
    hec_sha256(digest, text, body);
    if (strncmp(text + body, DIGEST, sizeof DIGEST - 1) != 0 ||
        strncmp(text + body + sizeof DIGEST - 1, digest, HEC_SHA256_TEXT - 1) != 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "the kept state is damaged: it does not have the digest that it names");
    text[body] = '\0';
    struct reading r = {.node = node};
    char *line = strsep(&text, "\n");
    if (sscanf(line, MAGIC " %d", &version) != 1 || version != VERSION)
        return hec_fail(why, HEC_ERR_VERSION, "the kept state is of another version: \"%.40s\"", line);
    while ((line = strsep(&text, "\n")) != NULL)
        if (*line && !take_line(&r, line))
            return hec_fail(why, HEC_ERR_CORRUPT, "the kept state has a line that means nothing: \"%.80s\"", line);
    return HEC_OK;
}

static int read_all(const struct hec_state_file *file, const char *name, char **out, size_t *length) {
    int fd = openat(file->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return hec_err_from_errno(errno);
    if (hec_own_file(fd, name, file->owner, NULL) < 0) {
        close(fd);
        return HEC_ERR_PERMISSION;
    }
    char *text = malloc(LENGTH_MAX + 1);
    ssize_t got = 0;
    *length = 0;
    while (text && *length < LENGTH_MAX && (got = read(fd, text + *length, LENGTH_MAX - *length)) > 0)
        *length += (size_t)got;
    int err = !text ? HEC_ERR_NOMEM : got < 0 ? hec_err_from_errno(errno) : HEC_OK;
    close(fd);
    if (err < 0) {
        free(text);
        return err;
    }
    text[*length] = '\0';
    *out = text;
    return HEC_OK;
}

static int load(const struct hec_state_file *file, const char *name, struct hec_node *node, struct hec_why *why) {
    char *text = NULL;
    size_t length = 0;
    int err = read_all(file, name, &text, &length);
    if (err < 0)
        return hec_fail(why, err, "the kept state cannot be read: %s", hec_err_text(err));
    err = parse(text, length, node, why);
    free(text);
    for (int i = 0; err == HEC_OK && i < node->kept_count; i++)
        if (hec_shares_total_uj(node->kept[i].shares) != 1000 * node->kept[i].total[HEC_NODE_ENERGY_MJ])
            err = hec_fail(why, HEC_ERR_CORRUPT, "the kept state does not add up");
    if (err < 0) { /* nothing of it is believed */
        while (node->kept_count > 0)
            hec_shares_free(node->kept[--node->kept_count].shares);
        memset(node->kept, 0, sizeof node->kept);
        node->domain_count = 0;
    }
    return err;
}

int hec_state_file_load(struct hec_state_file *file, struct hec_node *node, struct hec_why *why) {
    int err = load(file, STATE, node, why);
    if (err == HEC_OK || load(file, SYNCED, node, NULL) == HEC_OK)
        return HEC_OK;
    renameat(file->folder, STATE, file->folder, STATE ".damaged");
    return err;
}

/* ---- writing ---- */

/* Names hold no tab and no newline: they are clean (agent/identity.h). */
static void put_shares(struct hec_buf *out, const struct hec_shares *shares) {
    int64_t now_ns = hec_clock_mono_ns();
    struct hec_shares_floor floor = hec_shares_floor(shares);
    hec_buf_printf(out, "floor %" PRId64 " %" PRId64 "\n", floor.free_mw, floor.held_mw);
    for (size_t i = 0; i < hec_shares_count(shares); i++) {
        const struct hec_shares_row *row = hec_shares_row(shares, i);
        const struct hec_tenant *tenant = &row->tenant;
        hec_buf_printf(out,
                       "share %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                       " %.6g %.6g %.6g %.6g\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s",
                       row->uj[HEC_SHARES_ACTIVE], row->uj[HEC_SHARES_IDLE], row->uj[HEC_SHARES_UNATTRIBUTED],
                       now_ns - row->held_ns, row->mw_a_permille, row->error.turns_uj2, row->error.figures_uj,
                       row->error.floor_uj, tenant->pod_namespace, tenant->pod, tenant->container, tenant->job,
                       tenant->user, tenant->command, tenant->step, tenant->array_task);
        put_use(out, &row->use);
    }
}

/* Number 0: those that are counted together. */
static void put_xids(struct hec_buf *out, const struct hec_xids *xids) {
    for (int i = 0; i < xids->count; i++)
        hec_buf_printf(out, "xid %" PRId64 " %" PRId64 "\n", xids->seen[i].number, xids->seen[i].times);
    if (xids->others)
        hec_buf_printf(out, "xid 0 %" PRId64 "\n", xids->others);
}

static void put_device(struct hec_buf *out, const char *uuid, int64_t counter_mj,
                       const int64_t total[HEC_NODE_TOTAL_COUNT], const struct hec_xids *xids,
                       const struct hec_shares *shares) {
    if (!uuid[0])
        return; /* one without a name cannot be known again */
    hec_buf_printf(out, "device %s\n", uuid);
    if (counter_mj >= 0)
        hec_buf_printf(out, "counter %" PRId64 "\n", counter_mj);
    for (int i = 0; i < HEC_NODE_TOTAL_COUNT; i++)
        if (total[i])
            hec_buf_printf(out, "%s %" PRId64 "\n", hec_node_total_name((enum hec_node_total)i), total[i]);
    put_xids(out, xids);
    if (shares)
        put_shares(out, shares);
}

static void put_node(struct hec_buf *out, struct hec_node *node) {
    char id[64], digest[HEC_SHA256_TEXT];
    boot_id(id);
    hec_buf_clear(out);
    hec_buf_printf(out, MAGIC " %d\n", VERSION);
    hec_buf_printf(out, "saved %" PRId64 " %" PRId64 " %s\n", hec_clock_wall_ns(), boot_ns(), id);
    pthread_mutex_lock(&node->lock);
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        if (node->devices[i] && node->devices[i]->seen) {
            const struct hec_node_device *device = node->devices[i];
            put_device(out, device->info.uuid, device->counter_ns == INT64_MIN ? -1 : device->settled_mj, device->total,
                       &device->xids, device->shares);
        }
    for (int i = 0; i < node->kept_count; i++)
        put_device(out, node->kept[i].uuid, node->kept[i].counter_mj, node->kept[i].total, &node->kept[i].xids,
                   node->kept[i].shares);
    for (int i = 0; i < node->domain_count; i++)
        hec_buf_printf(out, "domain %s %d %" PRId64 "\n",
                       node->domains[i].metric == HEC_RAPL_DRAM_ENERGY ? "dram" : "package", node->domains[i].index,
                       node->domains[i].total_uj);
    pthread_mutex_unlock(&node->lock);
    if (hec_buf_error(out) == HEC_OK)
        hec_buf_printf(out, DIGEST "%s\n", hec_sha256(digest, out->data, out->length));
}

static int write_all(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return hec_err_from_errno(written < 0 ? errno : ENOSPC);
        text += written;
        length -= (size_t)written;
    }
    return HEC_OK;
}

static int replace(const struct hec_state_file *file, const char *name, bool sync) {
    int fd = openat(file->folder, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return hec_err_from_errno(errno);
    int err = write_all(fd, file->text.data, file->text.length);
    if (err == HEC_OK && sync && fdatasync(fd) != 0)
        err = hec_err_from_errno(errno);
    close(fd);
    if (err == HEC_OK && renameat(file->folder, FRESH, file->folder, name) != 0)
        err = hec_err_from_errno(errno);
    if (err < 0)
        unlinkat(file->folder, FRESH, 0);
    else if (sync)
        fsync(file->folder);
    return err;
}

int hec_state_file_save(struct hec_state_file *file, struct hec_node *node, bool synced) {
    if (file->folder < 0)
        return HEC_ERR_NOTFOUND;
    put_node(&file->text, node);
    int err = hec_buf_error(&file->text);
    if (err == HEC_OK)
        err = replace(file, synced ? SYNCED : STATE, synced);
    file->saved = err == HEC_OK;
    file->failed += err < 0;
    return err;
}
