#include "cli/live.h"
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Which terminal it is, whatever name it was opened by (/dev/tty is a name of several); 0: none. */
static unsigned terminal_of(int fd) {
    unsigned device = 0;
    return isatty(fd) == 1 && ioctl(fd, TIOCGDEV, &device) == 0 ? device : 0;
}

/* Terminals that show a title and keep it apart from the screen. Others could print it. */
static bool has_title(void) {
    static const char *const names[] = {"xterm",   "screen", "tmux",  "rxvt", "alacritty", "foot",    "kitty",
                                        "konsole", "vte",    "gnome", "st-",  "wezterm",   "contour", "putty"};
    const char *term = getenv("TERM");
    for (size_t i = 0; term && i < sizeof names / sizeof names[0]; i++)
        if (strncmp(term, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool is_the_commands(int fd) {
    unsigned terminal = terminal_of(fd);
    return terminal && (terminal_of(STDOUT_FILENO) == terminal || terminal_of(STDERR_FILENO) == terminal);
}

static int open_given(const char *where, struct hec_why *why) {
    int fd = hec_output_there(where, O_CREAT | O_APPEND);
    if (fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "--live=%s: %s", where,
                        errno == ELOOP ? "it is a link, and lines are appended to none" : strerror(errno));
    if (isatty(fd) ==
        1) /* a part of a control sequence would take the program's text with it: all of it, or it waits */
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

int hec_live_place_open(const char *where, struct hec_live_place *out, struct hec_why *why) {
    int fd = -1;
    *out = (struct hec_live_place){.fd = -1};
    if (where && where[0])
        fd = open_given(where, why);
    else if (isatty(STDERR_FILENO) == 1)
        fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    else if (isatty(STDOUT_FILENO) == 1)
        fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    else
        fd = open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && where && where[0])
        return fd;
    if (fd < 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "--live: there is no terminal; --live=FILE writes lines there");
    out->fd = fd;
    out->how = isatty(fd) != 1 ? HEC_LIVE_FILE : is_the_commands(fd) ? HEC_LIVE_TITLE : HEC_LIVE_LINE;
    if (out->how != HEC_LIVE_TITLE || has_title())
        return HEC_OK;
    close(fd);
    out->fd = -1;
    return hec_fail(
        why, HEC_ERR_UNSUPPORTED,
        "--live: this terminal has no title, and its lines are the command's; --live=FILE, or another terminal, takes it");
}

/* One call of write: the terminal lets nothing of the program's between its bytes. */
static void put(const struct hec_live_place *place, const char *bytes) {
    pid_t foreground = place->how == HEC_LIVE_FILE ? -1 : tcgetpgrp(place->fd);
    if (foreground >= 0 && foreground != getpgrp()) /* the terminal is somebody else's just now */
        return;
    if (write(place->fd, bytes, strlen(bytes)) < 0)
        return; /* there is nobody to tell */
}

void hec_live_place_show(struct hec_live_place *place, const char *text) {
    char bytes[HEC_LIVE_TEXT + 40];
    struct winsize size = {0};
    int width = HEC_LIVE_TEXT;
    if (place->how == HEC_LIVE_LINE && ioctl(place->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
        width = size.ws_col - 1;
    if (place->how == HEC_LIVE_FILE)
        snprintf(bytes, sizeof bytes, "%s\n", text);
    else if (place->how == HEC_LIVE_LINE)
        snprintf(bytes, sizeof bytes, "\r\033[K%.*s", width, text);
    else /* the title that there was is put on the terminal's own stack first */
        snprintf(bytes, sizeof bytes, "%s\033]2;%s\033\\", place->shown ? "" : "\033[22;2t", text);
    put(place, bytes);
    place->shown = true;
}

void hec_live_place_close(struct hec_live_place *place) {
    if (place->fd < 0)
        return;
    if (place->shown && place->how != HEC_LIVE_FILE)
        put(place, place->how == HEC_LIVE_LINE ? "\r\033[K" : "\033[23;2t");
    close(place->fd);
    place->fd = -1;
}
