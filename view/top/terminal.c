/* SPDX-License-Identifier: MIT */
/* terminal.c - a screen on the terminal, by ncursesw. */
#define _XOPEN_SOURCE_EXTENDED 1
#define NCURSES_WIDECHAR 1

#include "view/top/terminal.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "view/plain.h"

#undef columns /* of term.h */
#undef lines

enum { RESTORE = 512, CRASH_STACK = 16384, ESCAPE_MS = 25 };

static struct {
    SCREEN *screen;
    bool colours;
    struct termios before;
    sigset_t mask; /* of before: the signals are open while the program waits */
    volatile sig_atomic_t ends, stops, goes_on;
    char restore[RESTORE]; /* what makes the terminal as it was */
    size_t restore_size;
} terminal;

static char crash_stack[CRASH_STACK];

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- Is there an entry? ---- */

bool gpv_terminal_is_known(void)
{
    const char *cup;
    int error;

#ifdef GPV_BUNDLED
    /* The library would search where the machine that built it has its entries. */
    (void)setenv("TERMINFO_DIRS",
                 "/etc/terminfo:/lib/terminfo:/usr/share/terminfo:/usr/lib/terminfo", 0);
#endif
    if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
        return false;
    cup = tigetstr("cup");
    return cup && cup != (char *)-1;
}

/* ---- A crash ---- */

static int keep_byte(int c)
{
    if (terminal.restore_size < RESTORE)
        terminal.restore[terminal.restore_size++] = (char)c;
    return c;
}

/* Without padding, which the end of the program does not need. */
static void keep_restore(void)
{
    static const char *const names[] = { "sgr0", "op", "cnorm", "rmkx", "rmcup" };

    terminal.restore_size = 0;
    for (size_t i = 0; i < LENGTH(names); i++) {
        char *text = tigetstr(names[i]);
        if (text && text != (char *)-1)
            (void)tputs(text, 1, keep_byte);
    }
}

/* Only calls that a handler may make: the memory of ncurses may be broken. */
static void on_crash(int number)
{
    ssize_t written = write(STDOUT_FILENO, terminal.restore, terminal.restore_size);

    (void)written;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
    (void)raise(number); /* its handler is that of before again: the program ends by it */
}

/* ---- Signals ---- */

static void on_end(int number)
{
    terminal.ends = number;
}

static void on_stop(int number)
{
    (void)number;
    terminal.stops = 1;
}

static void on_continue(int number)
{
    (void)number;
    terminal.goes_on = 1;
}

/* A signal that is ignored, as under nohup, stays so. */
static void handle(int number, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler }, now;

    if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        (void)sigaction(number, &action, NULL);
}

/* All handlers, also that of ncurses for WINCH, run in gpv_terminal_wait, where the program is in no
 * function of ncurses.  It has none for TSTP where there is one before newterm: its own one would
 * lose a signal that arrives while it writes. */
static void handle_all(void)
{
    struct sigaction crash = { .sa_handler = on_crash,
                               .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND) };
    stack_t stack = { .ss_sp = crash_stack, .ss_size = sizeof crash_stack };
    sigset_t blocked;

    sigemptyset(&blocked);
    for (size_t i = 0; i < LENGTH(ending); i++) {
        handle(ending[i], on_end);
        sigaddset(&blocked, ending[i]);
    }
    handle(SIGCONT, on_continue);
    sigaddset(&blocked, SIGCONT);
    sigaddset(&blocked, SIGTSTP);
    sigaddset(&blocked, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &blocked, &terminal.mask);
    if (sigaltstack(&stack, NULL) == 0)
        for (size_t i = 0; i < LENGTH(crashes); i++)
            (void)sigaction(crashes[i], &crash, NULL);
}

static void unhandle_all(void)
{
    for (size_t i = 0; i < LENGTH(crashes); i++)
        (void)signal(crashes[i], SIG_DFL);
    for (size_t i = 0; i < LENGTH(ending); i++)
        handle(ending[i], SIG_DFL);
    handle(SIGCONT, SIG_DFL);
    handle(SIGTSTP, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &terminal.mask, NULL);
}

int gpv_terminal_signal(void)
{
    return terminal.ends;
}

/* ---- Open and close ---- */

static void start_colours(void)
{
    const char *no = getenv("NO_COLOR");

    terminal.colours = false;
    if ((no && *no) || !has_colors() || start_color() != OK)
        return;
    (void)use_default_colors();
    (void)init_pair(1, COLOR_GREEN, -1);
    (void)init_pair(2, COLOR_RED, -1);
    terminal.colours = true;
}

int gpv_terminal_open(void)
{
    if (tcgetattr(STDIN_FILENO, &terminal.before))
        return -1;
    handle(SIGTSTP, on_stop);
    terminal.screen = newterm(NULL, stdout, stdin);
    if (!terminal.screen) {
        handle(SIGTSTP, SIG_DFL);
        return -1;
    }
    keep_restore();
    handle_all();
    start_colours();
    (void)cbreak();
    (void)noecho();
    (void)nonl(); /* Enter differs from ^J */
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)set_escdelay(ESCAPE_MS);
    (void)curs_set(0);
    return 0;
}

void gpv_terminal_close(void)
{
    if (!terminal.screen)
        return;
    (void)endwin();
    delscreen(terminal.screen);
    terminal.screen = NULL;
    unhandle_all();
}

void gpv_terminal_size(int *ret_columns, int *ret_lines)
{
    *ret_columns = COLS;
    *ret_lines = LINES;
}

/* ---- Showing ---- */

static attr_t look_of(const struct gpv_cell *cell)
{
    static const attr_t looks[GPV_STYLES] = {
        [GPV_STYLE_HEAD] = A_BOLD, [GPV_STYLE_DIM] = A_DIM, [GPV_STYLE_BAD] = A_BOLD
    };

    return looks[cell->style % GPV_STYLES] | (cell->chosen ? A_REVERSE : 0);
}

static short pair_of(const struct gpv_cell *cell)
{
    if (!terminal.colours)
        return 0;
    return cell->style == GPV_STYLE_GOOD ? 1 : cell->style == GPV_STYLE_BAD ? 2 : 0;
}

/* A cell has valid characters only (screen.h). */
static void show_cell(const struct gpv_cell *cell, int line, int column)
{
    wchar_t text[CCHARW_MAX + 1] = { 0 };
    const char *at = cell->text;
    cchar_t shown;

    for (int i = 0; i < CCHARW_MAX - 1 && *at; i++) {
        uint32_t c = ' ';
        size_t n = gpv_character(at, &c);
        text[i] = (wchar_t)c;
        at += n ? n : 1;
    }
    if (setcchar(&shown, text, look_of(cell), pair_of(cell), NULL) == OK)
        (void)mvadd_wchnstr(line, column, &shown, 1); /* it leaves the cursor, also at the end */
}

void gpv_terminal_show(const struct gpv_screen *s)
{
    (void)erase();
    for (int line = 0; line < s->lines; line++)
        for (int column = 0; column < s->columns; column++) {
            const struct gpv_cell *cell = &s->cell[line * s->columns + column];
            if (*cell->text)
                show_cell(cell, line, column);
        }
    (void)refresh();
}

/* ---- Keys ---- */

static uint32_t key_of(wint_t key)
{
    static const struct {
        wint_t key;
        uint32_t is;
    } keys[] = {
        { KEY_UP, GPV_KEY_UP },         { KEY_DOWN, GPV_KEY_DOWN },
        { KEY_LEFT, GPV_KEY_LEFT },     { KEY_RIGHT, GPV_KEY_RIGHT },
        { KEY_PPAGE, GPV_KEY_PAGE_UP }, { KEY_NPAGE, GPV_KEY_PAGE_DOWN },
        { KEY_HOME, GPV_KEY_HOME },     { KEY_END, GPV_KEY_END },
        { KEY_BTAB, GPV_KEY_BACK_TAB }, { KEY_BACKSPACE, GPV_KEY_ERASE },
        { KEY_ENTER, GPV_KEY_ENTER },
    };

    for (size_t i = 0; i < LENGTH(keys); i++)
        if (keys[i].key == key)
            return keys[i].is;
    return GPV_KEY_OTHER;
}

uint32_t gpv_terminal_key(void)
{
    wint_t key = 0;

    switch (get_wch(&key)) {
    case KEY_CODE_YES:
        return key_of(key);
    case OK:
        break;
    default:
        return 0;
    }
    if (key == '\r' || key == '\n')
        return GPV_KEY_ENTER;
    if (key == 27)
        return GPV_KEY_ESCAPE;
    if (key == 127 || key == 8)
        return GPV_KEY_ERASE;
    return key ? (uint32_t)key : GPV_KEY_OTHER;
}

/* ---- Waiting ---- */

/* It returns when the program is continued. */
static void stop(void)
{
    sigset_t tstp;

    terminal.stops = 0;
    (void)endwin();
    sigemptyset(&tstp);
    sigaddset(&tstp, SIGTSTP);
    handle(SIGTSTP, SIG_DFL);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &tstp, NULL); /* here it stops */
    (void)sigprocmask(SIG_BLOCK, &tstp, NULL);
    handle(SIGTSTP, on_stop);
    terminal.goes_on = 1;
}

/* A shell may have changed the terminal meanwhile. */
static void go_on(void)
{
    terminal.goes_on = 0;
    (void)reset_prog_mode();
    (void)clearok(curscr, TRUE);
}

int gpv_terminal_wait(struct pollfd *other, size_t n, int64_t timeout_ns)
{
    struct timespec left = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
    struct pollfd fds[8] = { { .fd = STDIN_FILENO, .events = POLLIN } };
    int ready;

    for (size_t i = 0; i < n && i < 7; i++)
        fds[i + 1] = other[i];
    ready = ppoll(fds, n + 1, timeout_ns < 0 ? NULL : &left, &terminal.mask);
    for (size_t i = 0; i < n && i < 7; i++)
        other[i].revents = ready > 0 ? fds[i + 1].revents : 0;
    if (terminal.stops)
        stop();
    if (terminal.goes_on)
        go_on();
    if (terminal.ends)
        return -1;
    if (ready < 0)
        return errno == EINTR ? 1 : -1;
    if (ready > 0 && (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
        return -1;
    return ready > 0;
}
