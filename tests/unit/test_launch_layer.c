/* The scratch layer, as root and as another user: what a program sees in it, and that nothing of it is left. */
#include "launch/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534
#define REFUSED 77

static char base[] = "/var/tmp/test-layer-XXXXXX";

static void in_base(char path[256], const char *name) {
    snprintf(path, 256, "%s/%s", base, name);
}

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    int status = system(text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Names, kinds, modes, owners, times and content of all that a trial must not change. */
static void fingerprint(char text[256]) {
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && { find home data tmp -printf '%%p %%y %%m %%U %%G %%T@ %%s %%l\\n' | sort; find home data tmp "
             "-type f -exec sha256sum {} + | sort; } | sha256sum",
             base);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(text, 256, pipe));
    pclose(pipe);
}

struct trial {
    uid_t user;         /* 0: as the test */
    const char *folder; /* the working folder, in base */
    const char *home;   /* in base */
    const char *script; /* of sh; B is base */
    const char *const *shared;
    bool in_memory;
};

static void set(const char *name, const char *folder) {
    char path[256];
    in_base(path, folder);
    setenv(name, path, 1);
}

/* In a process of its own: exit status of the script, or REFUSED. */
static int as_user(const struct trial *t) {
    char folder[256];
    struct hec_layer *layer;
    struct hec_why why;
    struct hec_layer_options options = {.shared = t->shared};
    if (t->user && (setgroups(0, NULL) != 0 || setgid(t->user) != 0 || setuid(t->user) != 0))
        return 101;
    prctl(PR_SET_DUMPABLE, 1); /* as after exec: /proc/self belongs to the user */
    in_base(folder, t->folder);
    set("HOME", t->home);
    set("TMPDIR", "tmp");
    setenv("B", base, 1);
    if (chdir(folder) != 0)
        return 102;
    if (hec_layer_open(&options, &layer, &why) < 0) {
        fprintf(stderr, "no layer for user %u: %s\n", t->user, why.text);
        return REFUSED;
    }
    int status = 103;
    for (int round = 0; round < 2; round++) { /* the second finds what the first did */
        pid_t pid = fork();
        if (pid == 0) {
            struct hec_layer_fault fault;
            if (hec_layer_enter(layer, NULL, &fault) != 0) {
                hec_layer_explain(layer, &fault, &why);
                fprintf(stderr, "%s\n", why.text);
                _exit(104);
            }
            execl("/bin/sh", "sh", "-ec", t->script, NULL);
            _exit(105);
        }
        waitpid(pid, &status, 0);
        status = WIFEXITED(status) ? WEXITSTATUS(status) : 106;
        if (status != 0 || hec_layer_renew(layer, &why) < 0)
            break;
    }
    hec_layer_close(layer);
    return status;
}

static int run(const struct trial *t) {
    char before[256], after[256], left[512];
    fingerprint(before);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(as_user(t));
    int status;
    waitpid(pid, &status, 0);
    fingerprint(after);
    assert_string_equal(after, before);
    in_base(left, "tmp");
    assert_int_equal(
        shell(
            "! ls -d %s/tmp/hec-* /tmp/hec-*/0.work /var/tmp/hec-*/0.work 2>/dev/null && ! grep -q ' %s/' /proc/self/mountinfo",
            base, base),
        0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* As the user of the test and, where that is root, as one who has no rights. */
static void both(struct trial t) {
    int status = run(&t);
    if (status == REFUSED)
        skip();
    assert_int_equal(status, 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(shell("chown -R %d:%d %s", NOBODY, NOBODY, base), 0);
    t.user = NOBODY;
    status = run(&t);
    assert_int_equal(shell("chown -R 0:0 %s", base), 0);
    if (status == REFUSED)
        skip();
    assert_int_equal(status, 0);
}

static void test_everything_is_as_before(void **state) {
    (void)state;
    both((struct trial){
        .folder = "home/project",
        .home = "home",
        .script =
            "test \"$(pwd -P)\" = $B/home/project && test $(cat model) = old\n"
            "echo new >model && test $(cat $B/home/project/model) = new\n"
            "mv model moved && ln -s moved link && chmod 700 moved && rm -r kept && mkdir kept && test -z \"$(ls kept)\"\n"
            "mkdir -p checkpoints && echo 1 >checkpoints/a.tmp && mv checkpoints/a.tmp checkpoints/a\n"
            "mkdir closed && touch closed/x && chmod 000 closed\n"
            "echo log >>$HOME/.log && rm -rf $HOME/.cache && mkdir -p $HOME/.cache/new\n"
            "echo t >$TMPDIR/t && echo t >/tmp/test-layer-$$ && echo t >/var/tmp/test-layer-$$ && touch -d 2001-01-01 $HOME/other\n"});
    assert_int_equal(shell("! ls /tmp/test-layer-[0-9]* /var/tmp/test-layer-[0-9]* 2>/dev/null"), 0);
}

static int build(void **state) {
    (void)state;
    return !mkdtemp(base) ||
           shell(
               "cd %s && chmod 755 . && mkdir -p home/project/kept/sub home/.cache/hub data tmp && chmod 1777 tmp && echo old >home/project/model && "
               "echo x >home/project/kept/sub/f && echo c >home/.cache/hub/c && touch home/other && ln -s ../data home/link",
               base);
}

static int destroy(void **state) {
    (void)state;
    return shell("rm -rf %s", base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_is_as_before),
    };
    return cmocka_run_group_tests(tests, build, destroy);
}
