/* A libcupti that says that it was loaded and ends the process: see test_doctor_trace.py. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

unsigned cuptiGetVersion(unsigned *version);

unsigned cuptiGetVersion(unsigned *version) {
    *version = 130000;
    return 0;
}

__attribute__((constructor)) static void loaded(void) {
    const char *path = getenv("CUPTI_DEADLY_MARK");
    FILE *mark = path ? fopen(path, "w") : NULL;
    if (mark)
        fclose(mark);
    fputs("printed by a library\n", stdout);
    fflush(stdout);
    _exit(3);
}
