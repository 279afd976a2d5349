/* The agent's state file, line by line: what is read of it, what is refused, and in which words. */
#include "agent/state_file.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "tests/unit/folder.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define S HEC_NS_PER_S
#define WALL (INT64_C(1700000000) * S)

static int64_t now_ns;
static int64_t fake_mono(void) {
    return now_ns;
}
static int64_t fake_wall(void) {
    return WALL;
}
static const struct hec_clock_source fake_clock = {fake_mono, fake_wall};

static struct hec_state_file file;
static struct hec_node *node;
static struct hec_why why;

static int set_up(void **state) {
    now_ns = 1000000 * S;
    hec_clock_set_source(&fake_clock);
    node = hec_node_new(S, NULL);
    return node ? folder_make(state) : -1;
}
static int tear_down(void **state) {
    hec_state_file_close(&file);
    hec_node_free(node);
    hec_clock_set_source(NULL);
    return folder_remove(state);
}
EACH_TEST(set_up, tear_down)

static void open_file(void) {
    if (hec_state_file_open(&file, folder, geteuid(), &why) < 0)
        fail_msg("%s", why.text);
}

/* Whose first lines and digest are right. */
static int load(const char *head, const char *lines) {
    static char text[8192];
    char digest[HEC_SHA256_TEXT];
    int length = snprintf(text, sizeof text, "%s%s", head, lines);
    length +=
        snprintf(text + length, sizeof text - (size_t)length, "sha256 %s\n", hec_sha256(digest, text, (size_t)length));
    folder_write("state", text, (size_t)length);
    why.text[0] = '\0';
    return hec_state_file_load(&file, node, &why);
}

#define HEAD "hec-agent-state 1\nsaved 0 0 another-boot\n"
#define SHARE "share 7000 2000 1000 5000000000 12.5 3 4 5\tspace\tpod\tbox\t17\tann\tpython\t0\t3"

TEST(lines_that_mean_nothing) {
    static const char *const cases[] = {
        "saved 1 2\n",
        "saved x 2 boot\n",
        "counter 5\n", /* of no device */
        "share 0 0 0 0 0\ta\tb\tc\td\te\tf\n",
        "floor 1 2\n",
        "xid 13 1\n",
        "device \n",
        "domain psys 0 5\n",
        "domain package x 5\n",
        "domain package 0 -5\n",
        "domain package 0\n",
        "device GPU-1\ncounter\n",
        "device GPU-1\ncounter -1\n",
        "device GPU-1\nenergy x\n",
        "device GPU-1\nxid 13\n",
        "device GPU-1\nxid -1 1\n",
        "device GPU-1\nxid 13 -1\n",
        "device GPU-1\nfloor 1\n",
        "device GPU-1\nshare 0 0 0\ta\tb\tc\td\te\tf\n",
        "device GPU-1\nshare 0 0 0 0 0 1 2\ta\tb\tc\td\te\tf\n", /* six or seven numbers are none of its forms */
        "device GPU-1\nshare 0 0 0 0 0\ta\tb\tc\td\te\n",
        "device GPU-1\nshare 0 0 0 0 0 0 0 0\ta\tb\tc\td\te\tf\tg\th\t1\n",
        "device GPU-1\nshare 0 0 0 0 0 0 0 0\ta\tb\tc\td\te\tf\tg\th\t1 2 idle\n",
    };
    open_file();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int err = load(HEAD, cases[i]);
        if (err != HEC_ERR_CORRUPT || strncmp(why.text, "the kept state has a line that means nothing: \"", 47) != 0)
            fail_msg("%s: %d, %s", cases[i], err, why.text);
        assert_int_equal(node->kept_count + node->domain_count, 0);
        assert_int_equal(access(in_folder("state"), F_OK), -1); /* set aside */
        assert_int_equal(access(in_folder("state.damaged"), F_OK), 0);
    }
    assert_int_equal(load(HEAD, "device GPU-1\nxid 13 x\n"), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "the kept state has a line that means nothing: \"xid 13 x\"");
    assert_int_equal(load("hec-agent-state 2\n", ""), HEC_ERR_VERSION);
    assert_string_equal(why.text, "the kept state is of another version: \"hec-agent-state 2\"");
    assert_int_equal(load("hec-state 1\n", ""), HEC_ERR_VERSION);
    /* what a newer version keeps is left out, be its name like one of these */
    static const char *const newer[] = {"energy", "xenon", "xids", "savings", "domains", "shared", "floors", "devices"};
    for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "device GPU-1\n%s 5\n", newer[i]);
        if (load(HEAD, line) != HEC_OK)
            fail_msg("%s: %s", line, why.text);
        assert_int_equal(node->kept_count, 1);
        hec_node_free(node);
        node = hec_node_new(S, NULL);
    }
}

TEST(what_is_no_state_at_all) {
    static const char cut[] = "hec-agent-state 1\n";
    open_file();
    assert_int_equal(hec_state_file_load(&file, node, &why), HEC_ERR_NOTFOUND);
    folder_write("state", cut, sizeof cut - 1);
    assert_int_equal(hec_state_file_load(&file, node, &why), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "the kept state is cut short");
    char text[200];
    memset(text, 'x', sizeof text);
    text[199] = '\n';
    folder_write("state", text, sizeof text);
    assert_int_equal(hec_state_file_load(&file, node, &why), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "the kept state is damaged: it does not have the digest that it names");
}

TEST(what_is_kept_of_a_device) {
    char lines[1024];
    open_file();
    snprintf(lines, sizeof lines,
             "device GPU-1\ncounter 77\nenergy_mj 10\nresets 2\nfloor 80000 120000\nxid 13 4\nxid 0 2\n" SHARE
             "\t60 40 %s 500 never_heard 600\ndevice GPU-2\nresets 1\ndomain package 1 300\ndomain dram 0 200\n",
             hec_waste_name(HEC_WASTE_UNKNOWN - 1));
    if (load(HEAD, lines) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(node->kept_count, 2);
    const struct hec_node_kept *kept = &node->kept[0];
    assert_string_equal(kept->uuid, "GPU-1");
    assert_int_equal(kept->counter_mj, 0); /* of another boot: it began at 0 */
    assert_int_equal(kept->total[HEC_NODE_RESETS], 3);
    assert_int_equal(kept->total[HEC_NODE_ENERGY_MJ], 10);
    assert_int_equal(kept->xids.count, 1);
    assert_int_equal(kept->xids.seen[0].number, 13);
    assert_int_equal(kept->xids.seen[0].times, 4);
    assert_int_equal(kept->xids.others, 2);
    assert_int_equal(hec_shares_floor(kept->shares).free_mw, 80000);
    assert_int_equal(hec_shares_floor(kept->shares).held_mw, 120000);
    assert_int_equal(node->kept[1].total[HEC_NODE_RESETS], 1);
    assert_int_equal(node->kept[1].counter_mj, -1);
    const struct hec_shares_row *row = hec_shares_row(kept->shares, hec_shares_count(kept->shares) - 1);
    assert_int_equal(row->uj[HEC_SHARES_ACTIVE], 7000);
    assert_int_equal(row->uj[HEC_SHARES_IDLE], 2000);
    assert_int_equal(row->uj[HEC_SHARES_UNATTRIBUTED], 1000);
    assert_near(row->mw_a_permille, 12.5, 1e-9);
    assert_near(row->error.turns_uj2, 3, 1e-9);
    assert_near(row->error.figures_uj, 4, 1e-9);
    assert_near(row->error.floor_uj, 5, 1e-9);
    const struct {
        const char *is, *expected;
    } names[] = {{row->tenant.pod_namespace, "space"},
                 {row->tenant.pod, "pod"},
                 {row->tenant.container, "box"},
                 {row->tenant.job, "17"},
                 {row->tenant.user, "ann"},
                 {row->tenant.command, "python"},
                 {row->tenant.step, "0"},
                 {row->tenant.array_task, "3"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(names[i].is, names[i].expected);
    assert_int_equal(row->use.held_ns, 60);
    assert_int_equal(row->use.worked_ns, 40);
    assert_int_equal(row->use.wasted_uj[HEC_WASTE_UNKNOWN - 1], 500);
    assert_int_equal(row->use.wasted_uj[HEC_WASTE_UNKNOWN], 600); /* of a newer version */
    assert_int_equal(node->domain_count, 2);
    assert_int_equal(node->domains[0].metric, HEC_RAPL_PACKAGE_ENERGY);
    assert_int_equal(node->domains[0].index, 1);
    assert_int_equal(node->domains[0].total_uj, 300);
    assert_int_equal(node->domains[1].metric, HEC_RAPL_DRAM_ENERGY);
    assert_int_equal(node->domains[1].total_uj, 200);
}

/* Of another boot the wall clock says how long the agent was away, of this one the kernel; never less than nothing. */
TEST(how_long_it_was_away) {
    static const struct {
        int64_t before_ns, away_ns; /* the wall clock of the file before that of now */
    } cases[] = {{0, 0}, {3600 * S, 3600 * S}, {-3600 * S, 0}, {WALL, 3650 * 86400 * S}};
    char head[200], boot[64] = "";
    struct timespec ts;
    open_file();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(head, sizeof head, "hec-agent-state 1\nsaved %" PRId64 " 0 another\n", WALL - cases[i].before_ns);
        assert_int_equal(load(head, "device GPU-1\ncounter 5\n"), HEC_OK);
        assert_int_equal(node->kept[node->kept_count - 1].counter_ns, now_ns - cases[i].away_ns);
        assert_int_equal(node->kept[node->kept_count - 1].accounted_ns, now_ns - cases[i].away_ns);
    }
    FILE *id = fopen("/proc/sys/kernel/random/boot_id", "re");
    assert_true(id && fscanf(id, "%63s", boot) == 1);
    fclose(id);
    clock_gettime(CLOCK_BOOTTIME, &ts);
    int64_t boot_ns = ts.tv_sec * S - 500 * S;
    snprintf(head, sizeof head, "hec-agent-state 1\nsaved 0 %" PRId64 " %s\n", boot_ns, boot);
    assert_int_equal(load(head, "device GPU-9\ncounter 5\n"), HEC_OK);
    const struct hec_node_kept *kept = &node->kept[node->kept_count - 1];
    assert_int_equal(kept->counter_mj, 5); /* goes on */
    assert_int_equal(kept->total[HEC_NODE_RESETS], 0);
    assert_in_range(now_ns - kept->counter_ns, 500 * S, 900 * S);
}

TEST(what_does_not_add_up_is_not_believed) {
    open_file();
    assert_int_equal(load(HEAD, "device GPU-1\nenergy_mj 11\n" SHARE "\ndomain dram 0 1\n"), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "the kept state does not add up");
    assert_int_equal(node->kept_count + node->domain_count, 0);
    assert_int_equal(load(HEAD, "device GPU-1\nenergy_mj 10\n" SHARE "\n"), HEC_OK);
}

/* One agent a folder; what is not an agent's own file is not read. */
TEST(folders_and_files) {
    struct hec_state_file second;
    char text[400];
    open_file();
    assert_int_equal(hec_state_file_open(&second, folder, geteuid(), &why), HEC_ERR_BUSY);
    snprintf(text, sizeof text, "another agent keeps its state in %s", folder);
    assert_string_equal(why.text, text);
    assert_int_equal(second.folder, -1);
    assert_int_equal(second.lock, -1);
    assert_int_equal(hec_state_file_save(&second, node, false), HEC_ERR_NOTFOUND);
    assert_int_equal(hec_state_file_save(&file, node, false), HEC_OK);
    assert_true(file.saved);
    assert_int_equal(rename(in_folder("state"), in_folder("other")), 0);
    assert_int_equal(mkdir(in_folder("state"), 0700), 0); /* cannot be replaced */
    assert_true(hec_state_file_save(&file, node, false) < 0);
    assert_false(file.saved);
    assert_int_equal(file.failed, 1);
    assert_int_equal(access(in_folder("state.new"), F_OK), -1);
    assert_int_equal(rmdir(in_folder("state")), 0);
    assert_int_equal(symlink("other", in_folder("state")), 0);
    assert_true(hec_state_file_load(&file, node, &why) < 0);
    assert_int_equal(strncmp(why.text, "the kept state cannot be read: ", 31), 0);
    assert_int_equal(unlink(in_folder("state.damaged")), 0);
    hec_state_file_close(&file);
    folder_text("file", "x\n");
    assert_true(hec_state_file_open(&file, in_folder("file"), geteuid(), &why) < 0);
    assert_true(why.text[0] != '\0' && file.folder == -1);
}

/* As root: the folder and what is in it become another user's, where there is nothing else in it. */
static int save_within(rlim_t bytes) {
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){bytes, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int err = hec_state_file_save(&file, node, false);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    return err;
}

/* A state that does not fit, be it by one byte, is not kept, and what was kept before stays. */
TEST(a_disk_that_is_full) {
    struct stat before, after;
    open_file();
    assert_int_equal(hec_state_file_save(&file, node, false), HEC_OK);
    assert_int_equal(stat(in_folder("state"), &before), 0);
    rlim_t bytes[] = {0, 1, (rlim_t)before.st_size / 2, (rlim_t)before.st_size - 2, (rlim_t)before.st_size - 1};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        assert_true(save_within(bytes[i]) < 0);
        assert_true(!file.saved && file.failed == i + 1);
        assert_int_equal(stat(in_folder("state"), &after), 0);
        assert_true(after.st_ino == before.st_ino && after.st_size == before.st_size);
        assert_int_equal(access(in_folder("state.new"), F_OK), -1);
        assert_int_equal(hec_state_file_load(&file, node, &why), HEC_OK);
    }
    assert_int_equal(save_within((rlim_t)before.st_size), HEC_OK);
    assert_true(file.saved);
}

TEST(it_is_given_to_a_user) {
    struct stat info;
    char text[400];
    if (geteuid() != 0)
        skip();
    open_file();
    assert_int_equal(hec_state_file_save(&file, node, true), HEC_OK);
    folder_text("foreign", "x\n");
    assert_int_equal(hec_state_file_give(&file, folder, 65534, 65534, &why), HEC_ERR_PERMISSION);
    snprintf(text, sizeof text,
             "%s is not that user's and holds other things than an agent's state: the state needs a folder of its own",
             folder);
    assert_string_equal(why.text, text);
    assert_int_equal(unlink(in_folder("foreign")), 0);
    assert_int_equal(link(in_folder("state.synced"), in_folder("state")), 0);
    assert_int_equal(hec_state_file_give(&file, folder, 65534, 65534, &why), HEC_ERR_PERMISSION); /* has another name */
    assert_int_equal(unlink(in_folder("state")), 0);
    assert_int_equal(hec_state_file_give(&file, folder, 65534, 65533, &why), HEC_OK);
    static const char *const given[] = {".", "lock", "state.synced"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(stat(in_folder(given[i]), &info), 0);
        assert_int_equal(info.st_uid, 65534);
        assert_int_equal(info.st_gid, 65533);
    }
    assert_int_equal(hec_state_file_give(&file, folder, 65534, 65533, &why), HEC_OK); /* as it is */
    folder_text("foreign", "x\n"); /* in a folder of his own there may be anything */
    assert_int_equal(hec_state_file_give(&file, folder, 65534, 65533, &why), HEC_OK);
}
