/* How often gradients are synchronised for a step of the optimizer, by the marks of PyTorch in a trace. */
#include "tests/unit/import_fixture.h"

/* A trace by letters, each a ms of the host: F DistributedDataParallel.forward; a AccumulateGrad; R an all-reduce of 1000 floats inside of
 * the AccumulateGrad before it, r one of 10, g an all-gather of 1000; O a step of the optimizer. Kernels run half a second later. */
static const char *letters(const char *text) {
    static char events[65536];
    size_t length = 0;
    for (int i = 0; text[i]; i++) {
        const char *range = text[i] == 'F'   ? "DistributedDataParallel.forward"
                            : text[i] == 'O' ? "Optimizer.step#SGD.step"
                            : text[i] == 'a' ? "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
                                             : NULL;
        int at = 1000 * (i + 1);
        if (range)
            length +=
                (size_t)snprintf(events + length, sizeof events - length,
                                 "%s{'ph':'X','cat':'%s','name':'%s','pid':9,'tid':9,'ts':%d,'dur':%d}", i ? "," : "",
                                 text[i] == 'a' ? "cpu_op" : "user_annotation", range, at, text[i] == 'a' ? 1900 : 900);
        else
            length += (size_t)snprintf(
                events + length, sizeof events - length,
                "%s{'ph':'X','cat':'kernel','name':'ncclDevKernel','pid':0,'tid':7,'ts':%d,'dur':100,'args':{'device':0,"
                "'stream':7,'correlation':%d,'Collective name':'%s','In msg nelems':%d,'Out msg nelems':%d,"
                "'dtype':'Float','Group size':2,'Process Group Name':'0'}},{'ph':'X','cat':'cuda_runtime','name':"
                "'cudaLaunchKernel','pid':9,'tid':9,'ts':%d,'dur':5,'args':{'correlation':%d}}",
                i ? "," : "", at + 500000, i + 1, text[i] == 'g' ? "allgather" : "allreduce",
                text[i] == 'r' ? 10 : 1000, text[i] == 'r' ? 10 : 1000, at, i + 1);
    }
    return events;
}

static const char *fact(const char *key) {
    for (int i = 0; i < kept.metas; i++)
        if (strcmp(kept.meta[i].key, key) == 0)
            return kept.meta[i].value;
    return "";
}

TEST(test_synchronisations_of_a_step) {
    static const struct {
        const char *trace, *syncs, *gradients;
    } cases[] = {
        {"FaRO FaRO FaRO", "3 3 3", "4000 4000"},
        {"FaRaRO FaRaRO FaRaRO", "3 3 3", "8000 4000"},
        {"FaRFaRO FaRFaRO FaRFaRO", "6 6 3", "4000 4000"},
        {"FaFaRO FaFaRO FaFaRO", "3 6 3", "4000 4000"},
        {"FarFarFaRO FarFarFaRO", "2 6 2", "4000 4000"}, /* a norm of each is no gradient */
        {"aRO FaRFaRO FaRFaRO", "4 4 2", "4000 4000"},   /* the step in which it begins is not whole */
        {"FaRO FaRFaRO FaRFaRO FaRFaR", "4 4 2", "4000 4000"},
        {"FFaRO FFaRO", "2 2 2", "4000 4000"},       /* two models, or an evaluation */
        {"FaROO FaROO FaROO", "3 3 3", "4000 4000"}, /* two optimizers */
        {"FaRO", "", ""},                            /* one step is no mean */
        {"FaRFaRFaRFaR", "", ""},                    /* no step of an optimizer is seen */
        {"FRRO FRRO FRRO", "", ""},                  /* no backward pass */
        {"aRaRO aRaRO aRaRO", "", ""},               /* of no DistributedDataParallel */
        {"FaRO FaO FaRO", "", ""},                   /* a step without: not all is seen */
        {"FaaO FaaO FaaO", "", ""},
        {"FaFa RO FaFa RO FaFa RO", "", ""}, /* reduced by the program, behind the pass */
        {"FaRgO FaRgO FaRgO", "", ""},       /* as much goes for something else */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char trace[64];
        size_t length = 0;
        for (const char *c = cases[i].trace; *c; c++) /* blanks are for the eye, but for one before a reduction: a ms */
            if (*c != ' ')
                trace[length++] = *c;
            else if (c[1] == 'R')
                trace[length++] = 'r';
        trace[length] = '\0';
        import_events(letters(trace));
        assert_string_equal(fact("python.gradient_syncs"), cases[i].syncs);
        assert_string_equal(fact("python.gradients"), cases[i].gradients);
    }
}

TEST(test_it_is_said_of_the_lowest_rank_that_shows_it) {
    static const char *const traces[] = {"FaRFaRO FaRFaRO", "FaRO FaRO", "FRRO FRRO"};
    const char *paths[3];
    for (int rank = 0; rank < 3; rank++) {
        static char text[70000];
        char name[16], trace[32];
        size_t length = 0;
        for (const char *c = traces[2 - rank]; *c; c++)
            if (*c != ' ')
                trace[length++] = *c;
        trace[length] = '\0';
        snprintf(name, sizeof name, "rank%d.json", rank);
        snprintf(text, sizeof text, "{'distributedInfo':{'rank':%d},'traceEvents':[%s]}", rank, letters(trace));
        paths[rank] = strdup(import_write(name, text));
    }
    const char *const given[] = {paths[2], paths[0], paths[1]};
    assert_int_equal(import_files(given, 3), HEC_OK);
    assert_string_equal(fact("python.gradient_syncs"), "2 2 2");
    for (int rank = 0; rank < 3; rank++)
        free((void *)paths[rank]);
}
