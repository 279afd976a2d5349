/* Whom hec believes: folders and files that others may change are refused, whoever they are. */
#include "base/own.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OTHER 65533

static char top[] = "/tmp/hec-own-XXXXXX", folder[64], file[80];

static int make(void **state) {
    (void)state;
    strcpy(top, "/tmp/hec-own-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(folder, sizeof folder, "%s/in", top);
    snprintf(file, sizeof file, "%s/file", folder);
    int fd = mkdir(folder, 0700) == 0 ? open(file, O_WRONLY | O_CREAT, 0600) : -1;
    return fd < 0 ? -1 : close(fd);
}

static int take_away(void **state) {
    (void)state;
    unlink(file);
    rmdir(folder);
    return rmdir(top);
}

/* Of each: mode, owner and group; and whether it is believed. -1: stays. */
static const struct {
    const char *name;
    int top_mode, folder_mode, file_mode, top_uid, folder_uid, file_uid, gid;
    bool folder_own, file_own;
} cases[] = {
    {"private", 0700, 0700, 0600, -1, -1, -1, -1, true, true},
    {"readable", 0755, 0755, 0644, -1, -1, -1, -1, true, true},
    {"everybody's folder", 0755, 0777, 0600, -1, -1, -1, -1, false, true},
    {"sticky is not enough for the folder itself", 0755, 01777, 0600, -1, -1, -1, -1, false, true},
    {"sticky is enough above", 01777, 0700, 0600, -1, -1, -1, -1, true, true},
    {"everybody's above", 0777, 0700, 0600, -1, -1, -1, -1, false, true},
    {"everybody's file", 0755, 0700, 0666, -1, -1, -1, -1, true, false},
    {"a group's folder", 0755, 0770, 0600, -1, -1, -1, OTHER, false, true},
    {"a group's file", 0755, 0700, 0660, -1, -1, -1, OTHER, true, false},
    {"a group that may read", 0755, 0750, 0640, -1, -1, -1, OTHER, true, true},
    {"another's folder", 0755, 0755, 0644, -1, OTHER, -1, -1, false, true},
    {"another's above", 0755, 0700, 0600, OTHER, -1, -1, -1, false, true},
    {"another's file", 0755, 0700, 0600, -1, -1, OTHER, -1, true, false},
};

TEST_WITH(what_others_may_change_is_refused, make, take_away) {
    struct hec_why why;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool owners = cases[i].top_uid >= 0 || cases[i].folder_uid >= 0 || cases[i].file_uid >= 0 || cases[i].gid >= 0;
        if (owners && geteuid() != 0)
            continue;
        if (geteuid() == 0) {
            int gid = cases[i].gid < 0 ? 0 : cases[i].gid;
            assert_int_equal(chown(top, (uid_t)(cases[i].top_uid < 0 ? 0 : cases[i].top_uid), 0), 0);
            assert_int_equal(chown(folder, (uid_t)(cases[i].folder_uid < 0 ? 0 : cases[i].folder_uid), (gid_t)gid), 0);
            assert_int_equal(chown(file, (uid_t)(cases[i].file_uid < 0 ? 0 : cases[i].file_uid), (gid_t)gid), 0);
        }
        assert_int_equal(chmod(top, (mode_t)cases[i].top_mode), 0);
        assert_int_equal(chmod(folder, (mode_t)cases[i].folder_mode), 0);
        assert_int_equal(chmod(file, (mode_t)cases[i].file_mode), 0);
        int fd = open(file, O_RDONLY), of_folder = hec_own_folder(folder, geteuid(), &why);
        int of_file = hec_own_file(fd, file, geteuid(), &why), of_place = hec_own_place(file, NULL);
        close(fd);
        if ((of_folder == HEC_OK) != cases[i].folder_own || (of_file == HEC_OK) != cases[i].file_own ||
            of_place != of_folder)
            fail_msg("%s: folder %d, file %d", cases[i].name, of_folder, of_file);
        if (cases[i].folder_uid == OTHER)
            assert_int_equal(hec_own_folder(folder, OTHER, NULL), HEC_OK);
    }
}

/* What does not exist yet is judged by what does; a link by where it leads. */
TEST_WITH(what_is_not_there_yet_and_links, make, take_away) {
    char deep[128], link[80];
    struct hec_why why;
    snprintf(deep, sizeof deep, "%s/no/such/folder", folder);
    snprintf(link, sizeof link, "%s/link", top);
    assert_int_equal(symlink("in", link), 0);
    assert_int_equal(hec_own_folder(deep, geteuid(), NULL), HEC_OK);
    assert_int_equal(hec_own_folder(link, geteuid(), NULL), HEC_OK);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(hec_own_folder(deep, geteuid(), &why), HEC_ERR_PERMISSION);
    assert_non_null(strstr(why.text, "may be written by everybody"));
    assert_int_equal(hec_own_folder(link, geteuid(), NULL), HEC_ERR_PERMISSION);
    assert_int_equal(unlink(link), 0);
}

static void links(const char *where, const char *leads, uid_t uid) {
    unlink(where);
    assert_int_equal(symlink(leads, where), 0);
    assert_int_equal(lchown(where, uid, (gid_t)-1), 0);
}

/* Of each link: where it stands, where it leads, whose it is, and what the folder is like that it stands in. */
TEST_WITH(links_that_others_may_turn_are_refused, make, take_away) {
    static const struct {
        const char *name, *link, *leads, *path;
        int owner, mode;
        bool own;
    } rows[] = {
        {"its own", "a", "in", "a", 0, 0700, true},
        {"another's", "a", "in", "a", OTHER, 0700, false},
        {"another's in a sticky folder", "a", "in", "a", OTHER, 01777, false},
        {"its own in a sticky folder", "a", "in", "a", 0, 01777, true},
        {"its own in everybody's folder", "a", "in", "a", 0, 0777, false},
        {"another's in the middle", "a", ".", "a/in", OTHER, 0700, false},
        {"another's to the root", "a", "/", "a/etc", OTHER, 0700, false},
        {"another's that leads to nothing", "a", "nowhere", "a", OTHER, 0700, false},
        {"another's before what is not there", "a", "in", "a/no/such", OTHER, 0700, false},
        {"its own through ..", "a", "in", "a/../a/./", 0, 0700, true},
        {"another's through ..", "a", "in", "in/../a", OTHER, 0700, false},
        {"a circle", "a", "a", "a", 0, 0700, false},
        {"its own to the root", "a", "/", "a", 0, 0700, true},
    };
    char link[80], path[128];
    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(link, sizeof link, "%s/%s", top, rows[i].link);
        snprintf(path, sizeof path, "%s/%s", top, rows[i].path);
        links(link, rows[i].leads, (uid_t)rows[i].owner);
        assert_int_equal(chmod(top, (mode_t)rows[i].mode), 0);
        if ((hec_own_folder(path, geteuid(), NULL) == HEC_OK) != rows[i].own)
            fail_msg("%s", rows[i].name);
        if (rows[i].owner == OTHER)
            assert_int_equal(hec_own_folder(path, OTHER, NULL), HEC_OK);
        if (rows[i].mode == 0700 && chdir(top) == 0 &&
            (hec_own_folder(rows[i].path, geteuid(), NULL) == HEC_OK) != rows[i].own)
            fail_msg("%s, from within", rows[i].name);
        assert_int_equal(chdir("/"), 0);
        assert_int_equal(unlink(link), 0);
    }
    /* one that leads to another: that one is another's */
    char second[80];
    snprintf(link, sizeof link, "%s/a", top);
    snprintf(second, sizeof second, "%s/b", top);
    links(link, "b", 0);
    links(second, "in", OTHER);
    assert_int_equal(hec_own_folder(link, geteuid(), NULL), HEC_ERR_PERMISSION);
    assert_int_equal(unlink(link) + unlink(second), 0);
}

/* The rights of a list stand where the group's do, and the owner's own group is trusted with those. */
TEST_WITH(lists_of_rights, make, take_away) {
    struct entry {
        uint16_t tag, rights;
        uint32_t id;
    };
    struct {
        uint32_t version;
        struct entry entry[5];
    } list = {2, {{1, 7, ~0U}, {2, 7, OTHER}, {4, 0, ~0U}, {16, 7, ~0U}, {32, 0, ~0U}}};
    struct hec_why why;
    int fd = open(file, O_RDONLY);
    if (setxattr(folder, "system.posix_acl_access", &list, sizeof list, 0) != 0 ||
        setxattr(file, "system.posix_acl_access", &list, sizeof list, 0) != 0) {
        close(fd);
        skip(); /* this file system has none */
    }
    assert_int_equal(hec_own_folder(folder, geteuid(), &why), HEC_ERR_PERMISSION);
    assert_non_null(strstr(why.text, "list of rights"));
    assert_int_equal(hec_own_file(fd, file, geteuid(), NULL), HEC_ERR_PERMISSION);
    list.entry[1].rights = list.entry[3].rights = 5; /* to read */
    assert_int_equal(setxattr(folder, "system.posix_acl_access", &list, sizeof list, 0), 0);
    assert_int_equal(setxattr(file, "system.posix_acl_access", &list, sizeof list, 0), 0);
    assert_int_equal(hec_own_folder(folder, geteuid(), NULL), HEC_OK);
    assert_int_equal(hec_own_file(fd, file, geteuid(), NULL), HEC_OK);
    close(fd);
}
