#include "act/failure.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *phrase;
    enum hec_failure failure;
} phrases[] = {
#define HEC_OUT_OF_MEMORY(phrase, whose, source) {phrase, HEC_FAILURE_##whose##_MEMORY},
#include "act/failure.def"
#undef HEC_OUT_OF_MEMORY
};

enum hec_failure hec_failure_of(int exit_status, const char *output) {
    if (exit_status == 0)
        return HEC_FAILURE_NONE;
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (strstr(output, phrases[i].phrase))
            return phrases[i].failure;
    return exit_status == 128 + SIGKILL ? HEC_FAILURE_HOST_MEMORY : HEC_FAILURE_OTHER;
}
