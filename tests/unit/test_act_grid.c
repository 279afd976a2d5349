/* The settings of a sweep from the words of a command line, and why a trial failed from what it printed. */
#include "act/trials.h"
#include "act/grid.h"
#include "unit.h"

static struct hec_grid grid;
static struct hec_why why;

static int add(const char *text) {
    why.text[0] = '\0';
    return hec_grid_add(&grid, text, &why);
}

static void assert_values(int parameter, const char *expected) {
    char joined[512] = "";
    for (int i = 0; i < grid.parameter[parameter].count; i++) {
        strcat(joined, i ? " " : "");
        strcat(joined, grid.parameter[parameter].value[i]);
    }
    assert_string_equal(joined, expected);
}

TEST(test_values) {
    static const struct {
        const char *text, *values;
        bool ordered;
    } cases[] = {
        {"batch=32,64,128", "32 64 128", true},
        {"batch=32..1024*2", "32 64 128 256 512 1024", true},
        {"batch=32..1000*2", "32 64 128 256 512", true},
        {"workers=0..16+4", "0 4 8 12 16", true},
        {"w=1..3", "1 2 3", true},
        {"lr=0.1..0.3+0.1", "0.1 0.2 0.3", true},
        {"x=0,2..8*2,100", "0 2 4 8 100", true},
        {"dtype=fp32,bf16", "fp32 bf16", false},
        {"path=../a,b..c", "../a b..c", false},
        {"n=-2..2+2", "-2 0 2", true},
        {"power=700..300-100", "700 600 500 400 300", true},
        {"w=5..2-2", "5 3", true},
        {"lr=0.3..0-0.1", "0.3 0.2 0.1 0", true},
        {"n=2..-2-2", "2 0 -2", true},
        {"t=1e3,2e3", "1e3 2e3", true},
        {"m=nan,1", "nan 1", false},
        {"one=7", "7", true},
        {"say=a b", "a b", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (add(cases[i].text) != HEC_OK)
            fail_msg("%s: %s", cases[i].text, why.text);
        assert_values(0, cases[i].values);
        assert_int_equal(grid.parameter[0].ordered, cases[i].ordered);
        hec_grid_free(&grid);
    }
}

TEST(test_bad_values) {
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", "no NAME=VALUE"},
        {"batch", "no NAME=VALUE"},
        {"=1", "no NAME=VALUE"},
        {"1x=1", "no NAME=VALUE"},
        {"a b=1", "no NAME=VALUE"},
        {"abcdefghijklmnopqrstuvwxyzabcdefgh=1", "no NAME=VALUE"},
        {"batch=", "empty value"},
        {"batch=1,,2", "empty value"},
        {"batch=1,", "empty value"},
        {"batch=1,1", "twice"},
        {"batch=1..4,2", "twice"},
        {"batch=4..1", "does not go up"},
        {"batch=1..8*1", "does not go up"},
        {"batch=0..8*2", "does not go up"},
        {"batch=1..8+0", "does not go up"},
        {"batch=1..8-1", "does not go down"},
        {"batch=8..1-0", "does not go down"},
        {"batch=8..1+1", "does not go up"},
        {"batch=100..0-1", "more than 64 values"},
        {"batch=1..8*x", "is none of A..B"},
        {"batch=8..1-x", "is none of A..B"},
        {"batch=0..1e9", "more than 64 values"},
        {"batch=1..1e300*1.0000001", "more than 64 values"},
        {"batch=1..2*1.00000000000001", "twice"},
        {"accumulate=1,2", "follows from"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(add(cases[i].text) < 0);
        if (!strstr(why.text, cases[i].sentence))
            fail_msg("%s: %s", cases[i].text, why.text);
        hec_grid_free(&grid);
    }
    assert_int_equal(add("a=0..9"), HEC_OK);
    assert_int_equal(add("b=0..6"), HEC_ERR_USAGE); /* 70 */
    assert_non_null(strstr(why.text, "70 settings"));
    hec_grid_free(&grid);
    assert_int_equal(add("a=1"), HEC_OK);
    assert_int_equal(add("a=2"), HEC_ERR_USAGE);
    hec_grid_free(&grid);
    for (int i = 0; i < HEC_GRID_PARAMETERS_MOST; i++)
        assert_int_equal(add((char[]){'a' + (char)i, '=', '1', 0}), HEC_OK);
    assert_int_equal(add("z=1"), HEC_ERR_USAGE);
    hec_grid_free(&grid);
}

/* {NAME} anywhere in a word, any number of times; other braces are the command's. */
TEST(test_words) {
    char *words[] = {"train", "--batch={batch}", "{\"a\": {b}}", "{dtype}-{batch}-{batch}", "{batch", NULL};
    char **made;
    assert_int_equal(add("batch=32,64"), HEC_OK);
    assert_int_equal(add("dtype=fp32,{batch},bf16"), HEC_OK);
    assert_int_equal(grid.arms, 6);
    assert_int_equal(hec_grid_words(&grid, 5, words, &made), HEC_OK);
    assert_string_equal(made[0], "train");
    assert_string_equal(made[1], "--batch=64");
    assert_string_equal(made[2], "{\"a\": {b}}");
    assert_string_equal(made[3], "bf16-64-64");
    assert_string_equal(made[4], "{batch");
    assert_null(made[5]);
    hec_grid_free_words(made);
    assert_int_equal(hec_grid_words(&grid, 1, words, &made), HEC_OK); /* a value is not looked into */
    assert_string_equal(made[3], "{batch}-32-32");
    hec_grid_free_words(made);
    assert_string_equal(hec_grid_value(&grid, 3, 0), "64");
    assert_string_equal(hec_grid_value(&grid, 3, 1), "fp32");
    assert_int_equal(hec_grid_check(&grid, words, &why), HEC_OK);
    char *without[] = {"train", "{batch}", NULL};
    assert_int_equal(hec_grid_check(&grid, without, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "dtype changes nothing"));
    assert_int_equal(hec_grid_set_knob(&grid, "dtype", &why), HEC_OK);
    assert_int_equal(hec_grid_check(&grid, without, &why), HEC_OK);
    assert_int_equal(hec_grid_set_knob(&grid, "other", &why), HEC_ERR_USAGE);
    hec_grid_free(&grid);
}

/* Limits of the GPU are levers: they are in no word. */
TEST(test_levers) {
    char *words[] = {"true", NULL};
    assert_int_equal(add("power=300..700+200"), HEC_OK);
    assert_int_equal(add("clock=1000"), HEC_OK);
    assert_string_equal(grid.parameter[0].lever, "power_cap");
    assert_string_equal(grid.parameter[1].lever, "clock");
    assert_int_equal(hec_grid_check(&grid, words, &why), HEC_OK);
    hec_grid_free(&grid);
}

TEST(test_effective_batch) {
    char *words[] = {"{batch}", "x{accumulate}", NULL}, *without[] = {"{batch}", NULL};
    char **made;
    assert_int_equal(add("n=1,2"), HEC_OK);
    assert_int_equal(add("batch=32,64,256"), HEC_OK);
    assert_int_equal(hec_grid_check(&grid, words, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "n changes nothing: the command has no {n}, and it is no knob (-k n)");
    assert_int_equal(hec_grid_set_knob(&grid, "n", &why), HEC_OK);
    assert_int_equal(hec_grid_check(&grid, words, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "{accumulate} needs --effective-batch and --batch");
    assert_int_equal(hec_grid_check(&grid, without, &why), HEC_OK);
    assert_int_equal(hec_grid_accumulate(&grid, "batch", 500, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "batch=32 does not divide"));
    assert_int_equal(hec_grid_accumulate(&grid, "batch", 128, &why), HEC_ERR_USAGE); /* 256 is more */
    assert_int_equal(hec_grid_accumulate(&grid, "size", 512, &why), HEC_ERR_USAGE);
    assert_int_equal(hec_grid_accumulate(&grid, "batch", 512, &why), HEC_OK);
    assert_int_equal(hec_grid_words(&grid, 4, words, &made), HEC_OK);
    assert_string_equal(made[0], "64");
    assert_string_equal(made[1], "x8");
    hec_grid_free_words(made);
    assert_int_equal(hec_grid_check(&grid, words, &why), HEC_OK);
    assert_int_equal(hec_grid_check(&grid, without, &why), HEC_ERR_USAGE);
    assert_string_equal(why.text, "--effective-batch needs {accumulate} in the command");
    hec_grid_free(&grid);
}

TEST(test_failures) {
    static const struct {
        int status;
        const char *output;
        enum hec_failure failure;
    } cases[] = {
        {0, "CUDA out of memory, caught, and tried again with less", HEC_FAILURE_NONE},
        {1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has",
         HEC_FAILURE_DEVICE_MEMORY},
        {1, "torch.cuda.OutOfMemoryError: CUDA out of memory.", HEC_FAILURE_DEVICE_MEMORY},
        {1, "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might", HEC_FAILURE_DEVICE_MEMORY},
        {1, "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while", HEC_FAILURE_DEVICE_MEMORY},
        {1, "cupy: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", HEC_FAILURE_DEVICE_MEMORY},
        {134, "terminate called after throwing an instance of 'std::bad_alloc'", HEC_FAILURE_HOST_MEMORY},
        {1, "Traceback\nMemoryError", HEC_FAILURE_HOST_MEMORY},
        {137, "Epoch 1\n", HEC_FAILURE_HOST_MEMORY},
        {139, "", HEC_FAILURE_OTHER},
        {1, "AssertionError: batch of 7", HEC_FAILURE_OTHER},
        {2, "usage: train.py", HEC_FAILURE_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(hec_failure_of(cases[i].status, cases[i].output), cases[i].failure);
}

/* What is refused leaves nothing of it in the next one. */
TEST(test_refused_ones_leave_nothing) {
    assert_int_equal(add("parameter=1,2"), HEC_OK);
    assert_int_equal(add("parameter=3"), HEC_ERR_USAGE);
    assert_string_equal(why.text, "parameter is given twice");
    assert_int_equal(add("accumulate=3"), HEC_ERR_USAGE);
    assert_int_equal(grid.parameters, 1);
    assert_int_equal(grid.arms, 2);
    assert_int_equal(add("b=x"), HEC_OK);
    assert_string_equal(grid.parameter[1].name, "b");
    assert_int_equal(grid.parameter[1].count, 1);
    assert_false(grid.parameter[1].ordered || grid.parameter[1].knob);
    assert_null(grid.parameter[1].lever);
    assert_int_equal(add("power=400,300"), HEC_OK);
    assert_string_equal(grid.parameter[2].lever, "power_cap");
    assert_int_equal(grid.arms, 4);
    assert_string_equal(hec_grid_value(&grid, 3, 0), "2");
    assert_string_equal(hec_grid_value(&grid, 3, 1), "x");
    assert_string_equal(hec_grid_value(&grid, 3, 2), "300");
    assert_string_equal(hec_grid_value(&grid, 1, 0), "1");
    assert_string_equal(hec_grid_value(&grid, 1, 2), "300");
    hec_grid_free(&grid);
    assert_int_equal(grid.parameters + grid.arms, 0);
}
