/* Which command lines of Python keep HEC's hooks out, and how often that is reported. */
#include "launch/session.h"
#include "tests/unit/kept.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Words are separated by spaces here, a space in front of the end included. */
static char isolated(const char *line) {
    char words[256];
    size_t length = strlen(line);
    for (size_t i = 0; i <= length; i++)
        words[i] = line[i];
    for (size_t i = 0; i < length; i++)
        if (words[i] == ' ')
            words[i] = '\0';
    return hec_python_isolated(words, length);
}

TEST(test_command_lines) {
    static const struct {
        const char *line;
        char letter;
    } cases[] = {
        {"python -I train.py ", 'I'},
        {"/usr/bin/python3.11 -E -m train ", 'E'},
        {"pypy3 -uE train.py ", 'E'},
        {"python3 -W ignore -X dev -sI train.py ", 'I'},
        {"python3 -Wignore::E -Xfrozen_modules=I -I a.py ", 'I'},
        {"python3 --check-hash-based-pycs never -I a.py ", 'I'},
        {"python3 train.py -I -E ", 0},
        {"python3 -c print(-E) -I ", 0},
        {"python3 -uc -I ", 0},
        {"python3 -m train -E ", 0},
        {"python3 -W E train.py ", 0},
        {"python3 -Wignore::E train.py ", 0},
        {"python3 -X I train.py ", 0},
        {"python3 -S -u train.py ", 0},
        {"python3 - -I ", 0},
        {"python3 -- -I ", 0},
        {"python3 ", 0},
        {"python3", 0},
        {"python3 -I", 0}, /* the word is cut off */
        {"grep -E python ", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (isolated(cases[i].line) != cases[i].letter)
            fail_msg("\"%s\" is told as %d", cases[i].line, isolated(cases[i].line));
}

TEST(test_environments) {
    static const struct {
        const char *entries; /* separated by spaces */
        bool replaced;
    } cases[] = {
        {"HEC_HOOKS=1 PYTHONPATH=/hec/hooks A=b ", false},
        {"A=b PYTHONPATH=/mine:/hec/hooks:/other HEC_HOOKS=1 ", false},
        {"HEC_HOOKS=1 PYTHONPATH=/mine ", true},
        {"HEC_HOOKS=1 PYTHONPATH=/hec/hooks/more:/hec/hook ", true},
        {"HEC_HOOKS=1 PYTHONPATH= ", true},
        {"HEC_HOOKS=1 MY_PYTHONPATH=/hec/hooks ", true},
        {"HEC_HOOKS=1 ", true},
        {"HEC_HOOKS=0 PYTHONPATH=/mine ", false}, /* it wants none */
        {"PYTHONPATH=/mine ", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        size_t length = strlen(cases[i].entries);
        for (size_t at = 0; at < length; at++)
            text[at] = cases[i].entries[at];
        for (size_t at = 0; at < length; at++)
            if (text[at] == ' ')
                text[at] = '\0';
        if (hec_python_replaced(text, length, "/hec/hooks") != cases[i].replaced)
            fail_msg("\"%s\"", cases[i].entries);
    }
}

TEST(test_each_process_is_reported_once) {
    struct hec_python_watch watch = {.sink = &keeping, .folder = "/hec/hooks"}, off = {0};
    int hold[2], started[2];
    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe2(started, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) { /* a process called "python -E": it reads until this one closes the pipe */
        dup2(hold[0], 0);
        close(hold[1]);
        execl("/bin/cat", "python", "-E", (char *)NULL);
        _exit(1);
    }
    char byte;
    close(started[1]);
    assert_int_equal(read(started[0], &byte, 1), 0); /* exec has closed the other end */
    struct hec_tracer tracer = {.pid = pid, .driver_version = -1};
    hec_python_watch_tracer(&watch, &tracer);
    assert_int_equal(kept.events, 0);
    tracer.driver_version = 13000;
    hec_python_watch_tracer(&off, &tracer);
    assert_int_equal(kept.events, 0);
    for (int i = 0; i < 3; i++)
        hec_python_watch_tracer(&watch, &tracer);
    assert_int_equal(kept.events, 1);
    assert_non_null(kept_event(HEC_EVENT_HOOKS_OUT, "python -E, which reads no PYTHONPATH"));
    tracer.pid = getpid();
    hec_python_watch_tracer(&watch, &tracer);
    assert_int_equal(kept.events, 1);
    close(hold[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}
