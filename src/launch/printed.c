#include "launch/printed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPY_BYTES (1 << 20) /* what hec has not read yet; the kernel may allow less */
#define CHUNK 65536
#define SETTLE_MS 1000
#define FREE_FD 3 /* the first that is none of the three */

static const char *const stream_name[] = {"stdin", "stdout", "stderr"};

/* ---- the process that passes bytes on ---- */

/* false: nobody takes them any more, or nothing more comes. */
static bool pass(size_t count) {
    while (count > 0) {
        ssize_t passed = splice(STDIN_FILENO, NULL, STDOUT_FILENO, NULL, count, SPLICE_F_MOVE);
        if (passed > 0)
            count -= (size_t)passed;
        else if (passed < 0 && errno == EAGAIN) /* somebody else made the pipe one that does not block */
            poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
        else if (passed == 0 || errno != EINTR)
            return false;
    }
    return true;
}

/* How many of the bytes that wait are in the copy now. What it lacks is marked there by a NUL. 0: none are; the copy is full, or hec
 * is gone. */
static size_t copy_some(bool *lost) {
    if (*lost && write(STDERR_FILENO, "", 1) != 1)
        return 0;
    ssize_t count = tee(STDIN_FILENO, STDERR_FILENO, CHUNK, SPLICE_F_NONBLOCK);
    *lost = count < 0;
    return count > 0 ? (size_t)count : 0;
}

/* From 0 to 1, with a copy to 2. */
static void pass_on(void) {
    bool lost = false;
    for (;;) {
        struct pollfd ends[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = STDOUT_FILENO}};
        int waiting = 0;
        if (poll(ends, 2, -1) <= 0)
            continue;
        if (ends[1].revents & (POLLERR | POLLNVAL) || ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0 || waiting <= 0)
            return;
        size_t copied = copy_some(&lost);
        if (!pass(copied ? copied : (size_t)waiting))
            return;
    }
}

/* With nothing of this process but these three. */
static _Noreturn void be_passer(int in, int out, int copy) {
    int high[3] = {fcntl(in, F_DUPFD, 16), fcntl(out, F_DUPFD, 16), fcntl(copy, F_DUPFD, 16)};
    for (int i = 0; i < 3; i++)
        dup2(high[i], i);
    if (syscall(SYS_close_range, FREE_FD, ~0u, 0) != 0)
        for (int fd = FREE_FD; fd < 4096; fd++)
            close(fd);
    static const int ignored[] = {SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    setsid(); /* what the terminal sends is for the command */
    pass_on();
    _exit(0);
}

/* It is no child of this process, which waits for all that it has. */
static int start_passer(int in, int out, int copy) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t passer = fork();
        if (passer == 0)
            be_passer(in, out, copy);
        _exit(passer < 0);
    }
    if (pid > 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    return pid > 0 && status == 0 ? 0 : -1;
}

/* ---- what begins and ends it ---- */

static const char *kind_of(mode_t mode, int fd) {
    return S_ISSOCK(mode)  ? "a socket, which is not read"
           : isatty(fd)    ? "a terminal, which is not read"
           : S_ISREG(mode) ? "a file that cannot be read"
                           : "a device, which is not read";
}

static bool begin_file(int fd, struct hec_observe_printed *from) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct stat status;
    int flags = fcntl(fd, F_GETFL);
    *from = (struct hec_observe_printed){.fd = open(path, O_RDONLY | O_CLOEXEC), .file = true, .replaced = -1};
    if (from->fd < 0)
        return false;
    from->offset = flags & O_APPEND && fstat(fd, &status) == 0 ? status.st_size : lseek(fd, 0, SEEK_CUR);
    return true;
}

/* fd becomes a pipe to the process that passes on to what it was. */
static bool begin_pipe(int fd, struct hec_observe_printed *from) {
    int given[2], copy[2], first = fcntl(fd, F_DUPFD_CLOEXEC, FREE_FD);
    bool given_made = first >= 0 && pipe2(given, O_CLOEXEC) == 0;
    bool copy_made = given_made && pipe2(copy, O_CLOEXEC | O_NONBLOCK) == 0;
    if (copy_made)
        fcntl(copy[1], F_SETPIPE_SZ, COPY_BYTES);
    bool begun = copy_made && start_passer(given[0], first, copy[1]) == 0 && dup2(given[1], fd) >= 0;
    if (begun)
        *from = (struct hec_observe_printed){.fd = copy[0], .replaced = fd, .first = first};
    else if (first >= 0)
        close(first);
    for (int i = 0; i < 2 && given_made; i++)
        close(given[i]);
    if (copy_made)
        close(copy[1]);
    if (copy_made && !begun)
        close(copy[0]);
    return begun;
}

int hec_printed_begin(struct hec_printed_output *output, int file, struct hec_why *why) {
    struct stat status[3];
    char not_read[160] = "", read[32] = "";
    *output = (struct hec_printed_output){.said = "stdout, stderr"};
    if (file && begin_file(file, &output->from[0])) {
        output->count = 1;
        return HEC_OK;
    }
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct hec_observe_printed *from = &output->from[output->count];
        bool there = fstat(fd, &status[fd]) == 0;
        bool same = there && fd == STDERR_FILENO && output->count &&
                    status[fd].st_dev == status[STDOUT_FILENO].st_dev &&
                    status[fd].st_ino == status[STDOUT_FILENO].st_ino;
        bool begun = there && !same &&
                     (S_ISREG(status[fd].st_mode)    ? begin_file(fd, from)
                      : S_ISFIFO(status[fd].st_mode) ? begin_pipe(fd, from)
                                                     : false);
        output->count += begun;
        if (same && !output->from[0].file)
            output->also = dup2(STDOUT_FILENO, fd) == fd;
        if (begun || same)
            snprintf(read + strlen(read), sizeof read - strlen(read), "%s%s", read[0] ? ", " : "", stream_name[fd]);
        else
            snprintf(not_read + strlen(not_read), sizeof not_read - strlen(not_read), "%s%s: %s",
                     not_read[0] ? "; " : "", stream_name[fd], there ? kind_of(status[fd].st_mode, fd) : "closed");
    }
    snprintf(output->said, sizeof output->said, "%s%s%.100s%s", read, not_read[0] ? " (" : "", not_read,
             not_read[0] ? ")" : "");
    return output->count
               ? HEC_OK
               : hec_fail(
                     why, HEC_ERR_USAGE,
                     "--unit reads what the command prints where that goes to a file or a pipe, which needs no change of the "
                     "command (%s): end the line with `2>&1 | tee LOG`",
                     not_read);
}

void hec_printed_settle(const struct hec_printed_output *output) {
    for (int i = 0; i < output->count; i++) {
        int waiting = 1;
        if (output->from[i].file)
            continue;
        for (int waited_ms = 0; waited_ms < SETTLE_MS; waited_ms++)
            if (ioctl(output->from[i].replaced, FIONREAD, &waiting) != 0 || !waiting)
                break;
            else
                usleep(1000);
    }
}

void hec_printed_end(struct hec_printed_output *output) {
    for (int i = 0; i < output->count; i++) {
        struct hec_observe_printed *from = &output->from[i];
        if (!from->file) { /* whoever ends up with the new pipe keeps its other end alive */
            dup2(from->first, from->replaced);
            if (output->also)
                dup2(from->first, STDERR_FILENO);
            close(from->first);
        }
        close(from->fd);
    }
    output->count = 0;
}
