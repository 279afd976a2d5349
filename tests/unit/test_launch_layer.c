/* The scratch layer, as root and as another user: what a program sees in it, and that nothing of it is left. */
#include "launch/layer.h"
#include "tests/e2e/user_folders.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define REFUSED 77

static char base[200]; /* in the folder of the test: /tmp and /var/tmp are covered themselves */

static void in_base(char path[256], const char *name) {
    snprintf(path, 256, "%s%s%s", name[0] == '/' ? "" : base, name[0] == '/' ? "" : "/", name);
}

struct trial {
    uid_t user;          /* 0: as the test */
    const char *folder;  /* the working folder, in base */
    const char *home;    /* in base */
    const char *tmp;     /* in base; NULL: tmp */
    const char *script;  /* of sh; $B is base */
    const char *mounts;  /* of sh, as root, in a mount namespace: made before */
    const char *scratch; /* the parent of the scratch folder, in base; NULL: chosen */
    bool share_data;     /* the folder data is written for real */
    bool root_without_mounts;
    bool in_memory;     /* that is where the layer is to be */
    const char *socket; /* in base: instead of the script, connect to it */
    bool refused;
    bool again; /* a second trial must find what the first did */
};

static void set(const char *name, const char *folder) {
    char path[256];
    in_base(path, folder);
    setenv(name, path, 1);
}

static struct sockaddr_un socket_address(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[256];
    in_base(path, name);
    assert_true(strlen(path) < sizeof address.sun_path);
    strcpy(address.sun_path, path);
    return address;
}

static void be(const struct trial *t) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[2];
    if (t->mounts && (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
                      shell("B=%s; set -e\n%s", base, t->mounts) != 0))
        _exit(100);
    if (t->user && (setgroups(0, NULL) != 0 || setgid(t->user) != 0 || setuid(t->user) != 0))
        _exit(101);
    if (t->root_without_mounts) {
        syscall(SYS_capget, &header, caps);
        caps[0].effective &= ~(1U << CAP_SYS_ADMIN);
        caps[0].permitted &= ~(1U << CAP_SYS_ADMIN);
        if (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN) != 0 || syscall(SYS_capset, &header, caps) != 0)
            _exit(101);
    }
    prctl(PR_SET_DUMPABLE, 1); /* as after exec: /proc/self belongs to the user */
}

static int one_trial(const struct hec_layer *layer, const struct trial *t) {
    struct hec_layer_fault fault;
    struct hec_why why;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (hec_layer_enter(layer, NULL, &fault) != 0) {
            hec_layer_explain(layer, &fault, &why);
            fprintf(stderr, "%s\n", why.text);
            _exit(104);
        }
        if (t->socket) {
            struct sockaddr_un address = socket_address(t->socket);
            int fd = socket(AF_UNIX, SOCK_STREAM, 0);
            _exit(connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno);
        }
        execl("/bin/sh", "sh", "-ec", t->script, NULL);
        _exit(105);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 106;
}

/* In a process of its own: exit status of the script, or REFUSED. */
static int as_user(const struct trial *t) {
    char folder[256], data[256], scratch[256], rights[64];
    struct hec_layer *layer;
    struct hec_why why;
    in_base(data, "data");
    in_base(scratch, t->scratch ? t->scratch : "");
    struct hec_layer_options options = {.shared = t->share_data ? (const char *[]){data, NULL} : NULL,
                                        .scratch_parent = t->scratch ? scratch : NULL};
    be(t);
    in_base(folder, t->folder);
    set("HOME", t->home);
    set("TMPDIR", t->tmp ? t->tmp : "tmp");
    setenv("B", base, 1);
    if (chdir(folder) != 0)
        return 102;
    FILE *pipe = popen("grep CapEff /proc/self/status; id -u; id -g", "r");
    size_t length = pipe ? fread(rights, 1, sizeof rights - 1, pipe) : 0;
    rights[length ? length - 1 : 0] = '\0';
    pclose(pipe);
    setenv("RIGHTS", rights, 1);
    if (hec_layer_open(&options, &layer, &why) < 0) {
        fprintf(stderr, "no layer for user %u: %s\n", t->user, why.text);
        return REFUSED;
    }
    int status = t->in_memory == (hec_layer_scratch(layer).path[0] == '\0') ? 0 : 107;
    for (int round = 0; round <= t->again && status == 0; round++) {
        status = one_trial(layer, t);
        if (hec_layer_renew(layer, &why) < 0)
            status = 108;
    }
    hec_layer_close(layer);
    return status;
}

static int run(const struct trial *t) {
    char before[256], after[256];
    int status;
    assert_true(fingerprint(base, before));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(as_user(t));
    waitpid(pid, &status, 0);
    assert_true(fingerprint(base, after));
    assert_string_equal(after, before);
    assert_int_equal(
        shell("! ls -d %s/tmp/hec-* %s/scratch/hec-* 2>/dev/null && ! grep -q ' %s/' /proc/self/mountinfo && "
              "! ls /tmp/test-layer-[0-9]* /var/tmp/test-layer-[0-9]* /dev/shm/test-layer-[0-9]* 2>/dev/null",
              base, base, base),
        0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Somebody has mounted something in /tmp, which only root can cover. */
static bool is_mounted_in(void) {
    return shell("grep -E ' /(var/)?tmp/' /proc/self/mountinfo | grep -vq ' %s/'", base) == 0;
}

static void one(const struct trial *t) {
    int status = run(t);
    if (!t->refused && status == REFUSED &&
        (is_mounted_in() || shell("unshare %s true", geteuid() || t->root_without_mounts ? "-Um" : "-m") != 0))
        skip(); /* what was said above is so */
    assert_int_equal(status, t->refused ? REFUSED : 0);
}

/* As the user of the test and, where that is root, as one who has no rights. */
static void both(struct trial t) {
    one(&t);
    if (geteuid() != 0)
        return;
    assert_int_equal(shell("chown -R %d:%d %s", NOBODY, NOBODY, base), 0);
    t.user = NOBODY;
    int status = run(&t);
    assert_int_equal(shell("chown -R 0:0 %s", base), 0);
    if (status == REFUSED && (is_mounted_in() || shell("setpriv --reuid=%d --regid=%d --clear-groups unshare -Um true",
                                                       NOBODY, NOBODY) != 0))
        return; /* as in a chroot; root had its layer */
    assert_int_equal(status, 0);
}

static const char change_all[] =
    "test \"$(pwd -P)\" = $B/home/project && test $(cat model) = old\n"
    "test \"$(grep CapEff /proc/self/status; id -u; id -g)\" = \"$RIGHTS\"\n"
    "echo new >model && test $(cat $B/home/project/model) = new\n"
    "mv model moved && ln -s moved link && chmod 700 moved && rm -r kept && mkdir kept && test -z \"$(ls kept)\"\n"
    "mkdir -p checkpoints && echo 1 >checkpoints/a.tmp && mv checkpoints/a.tmp checkpoints/a\n"
    "mkdir closed && touch closed/x && chmod 000 closed\n"
    "echo log >>$HOME/.log && rm -rf $HOME/.cache && mkdir -p $HOME/.cache/new && touch -d 2001-01-01 $HOME/other\n"
    "test ! -e /dev/shm/test-layer-1 && echo t >/dev/shm/test-layer-1\n"
    "for f in /tmp /var/tmp ${TMPDIR#$B/none}; do test ! -e $f/test-layer-1; echo t >$f/test-layer-1; done\n";

TEST(test_everything_is_as_before) {
    both((struct trial){.folder = "home/project", .home = "home", .script = change_all, .again = true});
}

TEST(test_folders_in_each_other) {
    const char *script =
        "cd $B/home/project && test $(cat model) = old && echo new >model && rm -r kept && echo x >$HOME/x\n";
    both((struct trial){.folder = "home", .home = "home/project", .script = script});
    both((struct trial){.folder = "home", .home = "home", .script = script});
    both((struct trial){.folder = "home/project", .home = "to_home", .script = script});     /* a link */
    both((struct trial){.folder = "to_home/project", .home = "home", .script = change_all}); /* another */
    both((struct trial){.folder = "home/project", .home = "home", .tmp = "home/tmp", .script = change_all});
    both((struct trial){.folder = "home/project", .home = "home", .tmp = "none", .script = change_all});
}

/* A scratch folder that would lie in what it is for: the kernel refuses it; another is used there. */
TEST(test_scratch_folder_by_choice) {
    both((struct trial){
        .folder = "home/project", .home = "home", .scratch = "scratch", .script = change_all, .tmp = "tmp"});
}

TEST(test_shared_folders_are_written_for_real) {
    char before[256];
    assert_true(fingerprint(base, before));
    const struct trial t = {
        .folder = ".",
        .home = "home",
        .share_data = true,
        .script = "echo r >>data/real; echo x >home/x; echo y >$B/y; mv data/real data/moved; mv data/moved data/real"};
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(as_user(&t));
    waitpid(pid, &status, 0);
    assert_int_equal(
        shell(
            "cd %s && test $(wc -l <data/real) = 1 && test ! -e home/x -a ! -e y && rm data/real && touch -r tmp data",
            base),
        0);
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Of servers that were there before, in covered folders. */
TEST(test_sockets_lead_outside) {
    struct sockaddr_un address = socket_address("home/s");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    both((struct trial){.folder = "home/project", .home = "home", .socket = "home/s"});
    close(fd);
    unlink(address.sun_path);
}

/* Each of them would be hidden by an overlay of what it lies in. */
TEST(test_mounts_below) {
    if (geteuid() != 0)
        skip();
    struct trial t = {
        .folder = "home/project",
        .home = "home",
        .mounts =
            "mount -t tmpfs tmpfs $B/home/project/kept; echo m >$B/home/project/kept/m; mkdir $B/home/project/kept/s\n"
            "mount -t tmpfs tmpfs $B/home/project/kept/s; echo s >$B/home/project/kept/s/s\n"
            "mount --bind $B/data $B/home/.cache; mount -o remount,bind,ro $B/home/.cache\n"
            "mount --bind $B/home/other $B/home/project/model\n",
        .script =
            "test $(cat kept/m) = m; echo x >kept/m; test $(cat kept/s/s) = s; echo x >kept/s/s; touch kept/s/new\n"
            "! touch $HOME/.cache/x 2>/dev/null; ls $HOME/.cache; test -z \"$(cat model)\"\n"};
    one(&t);
    t.root_without_mounts = true; /* the kernel does not let what is beneath them be seen */
    t.refused = true;
    one(&t);
}

TEST(test_root_without_the_right_to_mount) {
    if (geteuid() != 0)
        skip();
    const struct trial t = {
        .folder = "home/project", .home = "home", .root_without_mounts = true, .script = change_all};
    assert_int_equal(shell("chown 1234:4321 %s/home/project/model", base), 0);
    one(&t);
    assert_int_equal(shell("chown 0:0 %s/home/project/model", base), 0);
}

/* No folder for temporary files is on a file system that can hold a layer, as in most containers. */
TEST(test_in_memory) {
    if (geteuid() != 0)
        skip();
    struct trial t = {
        .folder = "home/project",
        .home = "home",
        .in_memory = true,
        .mounts =
            "exec 9<$B; mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /var/tmp; chmod 1777 /tmp /var/tmp; mkdir -p $B; mount -c "
            "--bind /proc/self/fd/9 $B; mount -t tmpfs tmpfs $B/tmp; chmod 1777 $B/tmp",
        .script = change_all};
    one(&t);
}

/* Some clusters have it as the folder for temporary files. */
TEST(test_temporary_files_in_shared_memory) {
    char path[] = "/dev/shm/layer-test-XXXXXX", file[64];
    if (!mkdtemp(path))
        skip();
    assert_int_equal(chmod(path, 0777), 0);
    snprintf(file, sizeof file, "%s/old", path);
    assert_int_equal(shell("echo old >%s; chmod 666 %s", file, file), 0);
    char script[512];
    snprintf(script, sizeof script,
             "test $(cat %s) = old; rm %s; echo t >%s/test-layer-1; touch /dev/shm/test-layer-1; %s", file, file, path,
             "ls /dev/shm/test-layer-1; rm -r $B/home/project/kept");
    struct trial t = {.folder = "home/project", .home = "home", .tmp = path, .script = script};
    one(&t);
    assert_int_equal(shell("test $(cat %s) = old && test $(ls %s | wc -l) = 1 && rm -r %s", file, path, path), 0);
}

static int write_to(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
    close(fd);
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

/* The limit is that of this user namespace, and of nobody else. */
TEST(test_what_forbids_it_is_named) {
    if (geteuid() != 0)
        skip();
    int words[2], status;
    char found[512] = "";
    assert_int_equal(pipe(words), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const struct trial without = {.root_without_mounts = true};
        struct hec_layer *layer;
        struct hec_why why = {""};
        if (unshare(CLONE_NEWUSER) != 0 || write_to("/proc/self/uid_map", "0 0 1") != 0 ||
            write_to("/proc/self/setgroups", "deny") != 0 || write_to("/proc/self/gid_map", "0 0 1") != 0)
            _exit(REFUSED);
        if (write_to("/proc/sys/user/max_user_namespaces", "0") != 0)
            _exit(100);
        be(&without);
        status = hec_layer_open(&(struct hec_layer_options){0}, &layer, &why);
        _exit(write(words[1], why.text, strlen(why.text)) < 0 || status >= 0);
    }
    close(words[1]);
    assert_true(read(words[0], found, sizeof found - 1) >= 0);
    close(words[0]);
    waitpid(pid, &status, 0);
    if (WEXITSTATUS(status) == REFUSED)
        skip();
    assert_int_equal(status, 0);
    assert_string_equal(
        found, "cannot make a namespace: user namespaces are switched off (sysctl user.max_user_namespaces is 0)");
}

TEST(test_files_of_others_are_refused) {
    if (geteuid() != 0)
        skip();
    assert_int_equal(shell("chown -R %d:%d %s && chgrp 0 %s/home/project/kept", NOBODY, NOBODY, base, base), 0);
    const struct trial t = {
        .user = NOBODY, .folder = "home/project", .home = "home", .refused = true, .script = "true"};
    int status = run(&t);
    assert_int_equal(shell("chown -R 0:0 %s", base), 0);
    assert_int_equal(status, REFUSED);
}

static int build(void **state) {
    (void)state;
    if (!getcwd(base, sizeof base - 16))
        return 1;
    if (shell("setpriv --reuid %d ls '%s' >/dev/null", geteuid() ? geteuid() : NOBODY, base) != 0)
        strcpy(base, "/srv");
    strcat(base, "/layer-XXXXXX");
    return !mkdtemp(base) ||
           shell(
               "cd %s && chmod 755 . && mkdir -p home/project/kept/sub home/.cache/hub home/tmp data tmp scratch && "
               "ln -s home to_home && chmod 1777 tmp && echo old >home/project/model && "
               "echo x >home/project/kept/sub/f && echo c >home/.cache/hub/c && touch home/other && ln -s ../data home/link",
               base);
}

static int destroy(void **state) {
    (void)state;
    return shell("rm -rf %s", base);
}

ALL_TESTS(build, destroy)
