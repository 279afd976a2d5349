/* Whom hec believes: folders and files that others may change are refused, whoever they are. */
#include "base/own.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
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
