#include "top/screen.h"

#include "top/view.h"

#include <ncurses.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ESCAPE_MS 25 /* an Escape that no key's bytes follow within is one */

static SCREEN *screen;
static bool colored;

int hec_screen_open(bool color, struct hec_why *why) {
    const char *term = getenv("TERM");
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "standard input and output are no terminal: --once prints a snapshot, --json lines");
    screen = term && *term ? newterm(NULL, stdout, stdin) : NULL;
    if (!screen)
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "nothing is known of the terminal \"%.40s\" (TERM): --once prints a snapshot",
                        term ? term : "");
    if (!tigetstr("cup")) {
        hec_screen_close();
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "the terminal \"%.40s\" (TERM) cannot move its cursor: --once prints a snapshot", term);
    }
    set_escdelay(ESCAPE_MS);
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    colored = color && has_colors() && start_color() == OK;
    if (colored) {
        use_default_colors();
        init_pair(1, COLOR_GREEN, -1);
        init_pair(2, COLOR_YELLOW, -1);
        init_pair(3, COLOR_RED, -1);
    }
    /* signals that end or stop it are waited for (top.c); ncurses would act in a handler */
    static const int taken[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        signal(taken[i], SIG_DFL);
    return HEC_OK;
}

void hec_screen_close(void) {
    if (!screen)
        return;
    endwin();
    delscreen(screen);
    screen = NULL;
}

void hec_screen_size(int *rows, int *columns) {
    getmaxyx(stdscr, *rows, *columns);
}

/* Without colour, what is bad stands out by weight. */
static attr_t look_of(const struct hec_sheet_cell *cell) {
    static const struct {
        attr_t colored, plain;
        short pair;
    } looks[] = {
        [HEC_TONE_PLAIN] = {A_NORMAL, A_NORMAL, 0}, [HEC_TONE_BOLD] = {A_BOLD, A_BOLD, 0},
        [HEC_TONE_DIM] = {A_DIM, A_NORMAL, 0},      [HEC_TONE_GOOD] = {A_NORMAL, A_NORMAL, 1},
        [HEC_TONE_WARN] = {A_NORMAL, A_BOLD, 2},    [HEC_TONE_BAD] = {A_BOLD, A_BOLD, 3},
    };
    attr_t bar = cell->bar ? A_REVERSE : A_NORMAL;
    if (colored && looks[cell->tone].pair)
        return bar | looks[cell->tone].colored | (attr_t)COLOR_PAIR(looks[cell->tone].pair);
    return bar | (colored ? looks[cell->tone].colored : looks[cell->tone].plain);
}

void hec_screen_draw(const struct hec_sheet *sheet) {
    erase();
    for (int row = 0; row < sheet->rows; row++)
        for (int i = 0; i < sheet->columns;) {
            const struct hec_sheet_cell *cells = &sheet->cells[row * sheet->columns];
            char text[sizeof cells->text * 64];
            size_t length = 0;
            int first = i;
            /* cells that look alike go together */
            for (; i < sheet->columns && look_of(&cells[i]) == look_of(&cells[first]) &&
                   length + sizeof cells->text < sizeof text;
                 i++) {
                size_t more = strlen(cells[i].text);
                memcpy(text + length, cells[i].text, more);
                length += more;
            }
            attrset(look_of(&cells[first]));
            mvaddnstr(row, first, text, (int)length);
        }
    refresh();
}

int hec_screen_key(void) {
    static const struct {
        int from, to;
    } keys[] = {
        {KEY_UP, HEC_TOP_KEY_UP},
        {KEY_DOWN, HEC_TOP_KEY_DOWN},
        {KEY_PPAGE, HEC_TOP_KEY_PAGE_UP},
        {KEY_NPAGE, HEC_TOP_KEY_PAGE_DOWN},
        {KEY_HOME, HEC_TOP_KEY_HOME},
        {KEY_END, HEC_TOP_KEY_END},
        {KEY_LEFT, HEC_TOP_KEY_LEFT},
        {KEY_RIGHT, HEC_TOP_KEY_RIGHT},
        {KEY_BACKSPACE, HEC_TOP_KEY_BACKSPACE},
        {0x7f, HEC_TOP_KEY_BACKSPACE},
        {'\b', HEC_TOP_KEY_BACKSPACE},
        {KEY_ENTER, HEC_TOP_KEY_ENTER},
        {'\r', HEC_TOP_KEY_ENTER},
        {'\n', HEC_TOP_KEY_ENTER},
        {0x1b, HEC_TOP_KEY_ESCAPE},
        {KEY_F(1), '?'},
        {KEY_F(10), 'q'},
    };
    int key = getch();
    if (key == ERR)
        return -1;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].from == key)
            return keys[i].to;
    return key < 0x100 ? key : 0; /* a key that means nothing */
}

void hec_screen_resized(void) {
    struct winsize size;
    if (screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
}

void hec_screen_again(void) {
    if (!screen)
        return;
    reset_prog_mode();
    hec_screen_resized();
    clearok(stdscr, TRUE);
    curs_set(0);
}

/* By the signal's own action, which leaves a process alone that nobody could continue. */
void hec_screen_stop(void) {
    sigset_t stop;
    if (screen)
        endwin();
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP); /* blocked: it comes with the next line */
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    hec_screen_again();
}
