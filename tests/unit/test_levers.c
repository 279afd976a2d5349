/* Levers: their table, sets of them, what they set in an environment, where they place a command, and which are worth a trial. */
#include "act/apply.h"
#include "act/search.h"
#include "tests/unit/folder.h"

static struct hec_why why;
static struct hec_applied applied;

TEST(test_table) {
    for (int i = 0; hec_lever_row(i); i++) {
        const struct hec_lever_row *row = hec_lever_row(i);
        assert_ptr_equal(hec_lever_find(row->name), row);
        assert_true(strlen(row->name) <= 20 && row->what[0] && row->code[0]);
        /* what changes semantics is only suggested, or applied where it is named, so it answers nothing by itself */
        assert_true(row->risk != HEC_LEVER_RISK_SEMANTICS || (!row->answers && !row->always));
        assert_true(!row->named || row->risk == HEC_LEVER_RISK_SEMANTICS);
        if (row->place == HEC_LEVER_PLACE_TORCH &&
            row->risk != HEC_LEVER_RISK_SEMANTICS) /* from which version on: hec_candidates_find reads it */
            assert_int_equal(sscanf(row->needs, "PyTorch %*d.%d", &(int){0}), 1);
        if (row->place == HEC_LEVER_PLACE_PROGRAM && strcmp(row->name, "numa") != 0)
            assert_non_null(hec_lever_variable(row, 0));
    }
}

TEST(test_names) {
    static const char *const places[] = {"program", "device", "pytorch", "jax", "tensorflow", "?"},
                             *const risks[] = {"exact", "ulp", "draws", "numerics", "semantics", "?"};
    for (int i = 0; i <= HEC_LEVER_PLACES; i++)
        assert_string_equal(hec_lever_place_name((enum hec_lever_place)i), places[i]);
    for (int i = 0; i <= HEC_LEVER_RISKS; i++)
        assert_string_equal(hec_lever_risk_name((enum hec_lever_risk)i), risks[i]);
    assert_null(hec_lever_row(-1));
    assert_null(hec_lever_find(""));
}

/* Each takes so many levers and no more, and all of them in words fit. */
TEST(test_many) {
    struct hec_lever_set set = {.count = 0};
    char text[HEC_LEVERS_TEXT];
    int err = HEC_OK;
    for (int i = 0; hec_lever_row(i) && err == HEC_OK; i++) {
        const struct hec_lever_row *row = hec_lever_row(i);
        if (row->risk != HEC_LEVER_RISK_SEMANTICS && !hec_lever_needs_value(row) && !row->family[0])
            err = hec_lever_set_add(&set, row->name, &why);
    }
    for (int i = 0; i < HEC_LEVERS_MAX && err == HEC_OK; i++) {
        char knob[32];
        snprintf(knob, sizeof knob, "knob.k%d=%d", i, i);
        err = hec_lever_set_add(&set, knob, &why);
    }
    assert_int_equal(err, HEC_ERR_USAGE);
    assert_string_equal(why.text, "more than 24 levers");
    assert_int_equal(set.count, 24);
    hec_lever_set_text(&set, text);
    assert_int_equal(strncmp(text, "channels_last,fused_optimizer,", 30), 0);
}

TEST(test_sets) {
    static const char *const wrong[][2] = {
        {"tf33", "there is no lever \"tf33\"; `hec levers` lists them"},
        {"tf32=1", "tf32 takes no value, not \"1\""},
        {"tf32,tf32", "tf32 is there twice"},
        {"compile,cuda_graphs", "compile and cuda_graphs exclude each other"},
        {"threads", "threads needs a value: threads=N"},
        {"accumulate=4",
         "accumulate changes what is computed, so it is yours to make: `hec levers accumulate` shows how"},
        {"batch", "batch needs a value: batch=N"},
        {"micro_batch=8,batch=8", "micro_batch and batch exclude each other"},
        {"threads=0", "threads takes =N, not \"0\""},
        {"threads=-1", "threads takes =N, not \"-1\""},
        {"threads=8x", "threads takes =N, not \"8x\""},
        {"attention=fast", "attention takes =flash|efficient|cudnn|math, not \"fast\""},
        {"attention=flash|efficient", "attention takes =flash|efficient|cudnn|math, not \"flash|efficient\""},
        {"knob.batch=64,knob.batch=32", "knob.batch is there twice"},
        {"knob.batch=", "knob batch as a lever takes a value of 1 to 23 bytes, not \"\""},
        {"knob.batch=123456789012345678901234",
         "knob batch as a lever takes a value of 1 to 23 bytes, not \"123456789012345678901234\""},
        {"knob.batch",
         "a knob is NAME=VALUE, with a name of at most 63 letters, digits, '_', '.' and '-', not \"batch\""},
    };
    char text[HEC_LEVERS_TEXT];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hec_lever_set set = {.count = 0};
        assert_int_equal(hec_lever_set_add(&set, wrong[i][0], &why), HEC_ERR_USAGE);
        assert_string_equal(why.text, wrong[i][1]);
    }
    struct hec_lever_set set = {.count = 0};
    assert_int_equal(hec_lever_set_add(&set, "tf32,,loader_workers=8,", &why), HEC_OK);
    assert_int_equal(hec_lever_set_add(&set, "attention=efficient", &why), HEC_OK);
    hec_lever_set_text(&set, text);
    assert_string_equal(text, "tf32,loader_workers=8,attention=efficient");
    assert_int_equal(hec_lever_set_add(&set, "tf32_override", &why), HEC_ERR_USAGE); /* another of its family */
    assert_int_equal(hec_lever_set_add(&set, "compile", &why), HEC_OK);
}

static const char *variable_of(const char *name) {
    const char *value = hec_environ_get(&applied.environ, name);
    return value ? value : "";
}

static int apply(const char *levers, char **from) {
    struct hec_lever_set set = {.count = 0};
    assert_int_equal(hec_lever_set_add(&set, levers, &why), HEC_OK);
    return hec_apply(&set, from, NULL, &applied, &why);
}

/* What to paste has the value that was proven; without one the name of the value stays. */
TEST(test_code) {
    static const char *const cases[][2] = {
        {"loader_workers=17", "DataLoader(dataset, num_workers=17, persistent_workers=True)"},
        {"loader_workers", "DataLoader(dataset, num_workers=N, persistent_workers=True)"},
        {"threads=4", "OMP_NUM_THREADS=4 MKL_NUM_THREADS=4 OPENBLAS_NUM_THREADS=4"},
        {"nccl_channels=8", "NCCL_MIN_NCHANNELS=8"},
    };
    char code[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_lever_set set = {.count = 0};
        assert_int_equal(hec_lever_set_add(&set, cases[i][0], &why), HEC_OK);
        hec_lever_paste(&set.list[0], code, sizeof code);
        assert_string_equal(code, cases[i][1]);
        hec_lever_paste(&set.list[0], code, 9);
        assert_int_equal(strlen(code), 8);
    }
}

TEST(test_environment) {
    char *from[] = {"HOME=/x", "GLIBC_TUNABLES=glibc.malloc.check=3", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64",
                    "CUDA_MODULE_LOADING=LAZY", NULL};
    struct hec_session_options session = {0};
    assert_int_equal(apply("threads=3,huge_pages,expandable_segments,lazy_modules,tf32", from), HEC_OK);
    assert_string_equal(variable_of("OMP_NUM_THREADS"), "3");
    assert_string_equal(variable_of("HOME"), "/x");
    assert_string_equal(variable_of("GLIBC_TUNABLES"), "glibc.malloc.check=3:glibc.malloc.hugetlb=1");
    assert_string_equal(variable_of("PYTORCH_CUDA_ALLOC_CONF"), "max_split_size_mb:64,expandable_segments:True");
    assert_string_equal(variable_of("HEC_LEVERS"), "threads=3,huge_pages,expandable_segments,lazy_modules,tf32");
    hec_apply_to(&applied, &session);
    assert_string_equal(session.facts[0], "lever.threads.set");
    assert_string_equal(session.facts[1], "OMP_NUM_THREADS=3 MKL_NUM_THREADS=3 OPENBLAS_NUM_THREADS=3");
    assert_string_equal(session.facts[6], "lever.lazy_modules.already");
    assert_string_equal(session.facts[7], "CUDA_MODULE_LOADING=LAZY");
    assert_null(session.facts[8]); /* tf32 says it itself */
    assert_null(session.placement);
    hec_applied_free(&applied);
}

/* Knobs among levers: after those that are set anyway; the hooks get levers alone. */
TEST(test_knobs) {
    char *from[] = {"HEC_KNOBS=lr=0.1", NULL}, *none[] = {NULL}, code[64];
    struct hec_session_options session = {.knobs = "steps=9"};
    struct hec_lever_set set = {.count = 0};
    assert_int_equal(apply("tf32,knob.batch=64,knob.lr=0.5", from), HEC_OK);
    assert_string_equal(variable_of("HEC_LEVERS"), "tf32");
    hec_apply_to(&applied, &session);
    assert_string_equal(session.levers, "tf32,knob.batch=64,knob.lr=0.5");
    assert_string_equal(session.knobs, "lr=0.1;batch=64;lr=0.5");
    assert_null(session.facts[0]); /* what the program read says it */
    hec_applied_free(&applied);
    assert_int_equal(hec_lever_set_add(&set, "knob.a.b-c=x;y", &why), HEC_OK);
    assert_int_equal(hec_apply(&set, none, "steps=9", &applied, &why), HEC_OK);
    hec_apply_to(&applied, &session);
    assert_string_equal(session.knobs, "steps=9;a.b-c=x\\;y");
    hec_applied_free(&applied);
    hec_lever_paste(&set.list[0], code, sizeof code);
    assert_string_equal(code, "hec.knob(\"a.b-c\", \"x;y\")");
    assert_int_equal(apply("tf32", from), HEC_OK);
    session.knobs = "steps=9";
    hec_apply_to(&applied, &session);
    assert_string_equal(session.knobs, "steps=9");
    hec_applied_free(&applied);
}

/* Limits of devices are set by the guard: here they are only said. */
TEST(test_devices) {
    char *from[] = {NULL};
    struct hec_session_options session = {0};
    assert_int_equal(apply("power_cap=400,clock=1500", from), HEC_OK);
    hec_apply_to(&applied, &session);
    assert_string_equal(session.levers, "power_cap=400,clock=1500");
    assert_string_equal(session.facts[0], "lever.power_cap.set");
    assert_string_equal(session.facts[1], "400 W");
    assert_string_equal(session.facts[2], "lever.clock.set");
    assert_string_equal(session.facts[3], "1500 MHz");
    assert_null(session.facts[4]);
    assert_null(session.placement);
    hec_applied_free(&applied);
}

/* Of this machine: beside its devices where it has several NUMA nodes and says where they are, and else it says why not. */
TEST(test_placed_or_refused) {
    char *from[] = {"HOME=/x", NULL};
    struct hec_session_options session = {0};
    int err = apply("numa", from);
    if (err == HEC_OK) {
        hec_apply_to(&applied, &session);
        assert_ptr_equal(session.placement, &applied.placement);
        assert_string_equal(session.facts[0], "lever.numa.set");
    } else {
        assert_int_equal(err, HEC_ERR_UNSUPPORTED);
        assert_non_null(strstr(why.text, "lever numa: "));
    }
    hec_applied_free(&applied);
}

/* What the user has set to something else stays, and is said. */
TEST(test_conflicts) {
    char *from[] = {"OMP_NUM_THREADS=4", "GLIBC_TUNABLES=glibc.malloc.hugetlb=0", NULL};
    assert_int_equal(apply("threads=3", from), HEC_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "would set OMP_NUM_THREADS=3, which is 4 already"));
    hec_applied_free(&applied);
    assert_int_equal(apply("huge_pages", from), HEC_ERR_UNSUPPORTED);
    hec_applied_free(&applied);
    assert_int_equal(apply("threads=4", from), HEC_OK);
    assert_string_equal(variable_of("MKL_NUM_THREADS"), "4");
    hec_applied_free(&applied);
    static char full[5000] = "GLIBC_TUNABLES=glibc.malloc.check=3";
    memset(full + strlen(full), ':', 4095 - strlen(full));
    assert_int_equal(apply("huge_pages", (char *[]){full, NULL}), HEC_ERR_LIMIT);
    assert_string_equal(why.text, "GLIBC_TUNABLES is too long for lever huge_pages");
    hec_applied_free(&applied);
}

/* ---- placement, on machines made of files ---- */

static void put_device(const char *address, const char *vendor, const char *node, const char *cpus) {
    const char *const files[][2] = {
        {"vendor", vendor}, {"class", "0x030200"}, {"numa_node", node}, {"local_cpulist", cpus}};
    for (size_t i = 0; i < 4; i++) {
        char name[200];
        snprintf(name, sizeof name, "bus/pci/devices/%s/%s", address, files[i][0]);
        folder_text(name, "%s\n", files[i][1]);
    }
}

static int place(const char *root, const char *visible, struct hec_placement *out) {
    char variable[64], what[HEC_PLACE_TEXT];
    char *from[] = {variable, NULL};
    struct hec_environ variables;
    snprintf(variable, sizeof variable, "CUDA_VISIBLE_DEVICES=%s", visible);
    assert_int_equal(hec_environ_copy(&variables, from), HEC_OK);
    int err = hec_place_beside_devices(&variables, root, out, what, &why);
    hec_environ_free(&variables);
    return err;
}

TEST_WITH(test_placement, folder_make, folder_remove) {
    struct hec_placement placement;
    folder_text("devices/system/node/node0/cpulist", "0-7\n");
    assert_int_equal(place(folder, "0", &placement), HEC_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "one NUMA node"));
    folder_text("devices/system/node/node1/cpulist", "0\n");
    put_device("0000:01:00.0", "0x8086", "0", "1");
    put_device("0000:31:00.0", "0x10de", "0", "900"); /* the sound of a display */
    folder_text("bus/pci/devices/0000:31:00.0/class", "0x040300\n");
    put_device("0000:41:00.0", "0x10de", "1", "0-1");
    put_device("0000:81:00.0", "0x10de", "0", "900-950");
    assert_int_equal(place(folder, "0", &placement), HEC_OK);
    assert_int_equal(placement.node, 1);
    assert_true(CPU_ISSET(0, &placement.cpus));
    assert_int_equal(place(folder, "0,1", &placement), HEC_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "several nodes"));
    assert_int_equal(place(folder, "1", &placement), HEC_ERR_UNSUPPORTED); /* none of its CPUs is ours */
    assert_string_equal(why.text, "lever numa: no CPU of node 0 may be used here");
    assert_int_equal(place(folder, "GPU-1234", &placement), HEC_ERR_UNSUPPORTED); /* any of them may be meant */
    assert_non_null(strstr(why.text, "several nodes"));
    put_device("0000:81:00.0", "0x10de", "1", "0,x");
    assert_int_equal(place(folder, "1", &placement), HEC_OK);
    assert_int_equal(CPU_COUNT(&placement.cpus), 1);
    assert_int_equal(place(folder, "0,1", &placement), HEC_OK);
    assert_int_equal(placement.node, 1);
    assert_int_equal(place(folder, "7", &placement), HEC_ERR_UNSUPPORTED);
    put_device("0000:81:00.0", "0x10de", "-1", "0");
    assert_int_equal(place(folder, "1", &placement), HEC_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "does not say"));
}

/* ---- candidates ---- */

static bool has(const struct hec_candidates *list, const char *name, const char *value) {
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->list[i].use.row->name, name) == 0)
            return strcmp(list->list[i].use.value, value) == 0;
    return false;
}

static int place_of(const struct hec_candidates *list, const char *name) {
    int at = 0;
    while (at < list->count && strcmp(list->list[at].use.row->name, name) != 0)
        at++;
    return at;
}

/* What answers each finding first, then by what levers mostly save: TF32 beside bf16, and cuDNN's choice, are little. */
TEST(test_order_of_candidates) {
    struct hec_finding findings[] = {
        {.cause = HEC_CAUSE_LAYOUT, .lever = HEC_ANSWER(CHANNELS_LAST)},
        {.cause = HEC_CAUSE_PRECISION, .lever = HEC_ANSWER(TENSOR_CORES)},
        {.cause = HEC_CAUSE_DATA, .lever = HEC_ANSWER(LOADER_WORKERS, 6, 10)},
    };
    static const char *const expected[] = {
        "channels_last",   "bf16_autocast", "loader_workers", "prefetch",     "pin_memory", "cuda_graphs",
        "fused_optimizer", "fuse_written",  "compile",        "pad_products", "tf32",       "cudnn_benchmark"};
    struct hec_device_diagnosis device = {.readings = {.used = true, .device = {.cuda_major = 9}}};
    struct hec_summary run = {.job.findings = {.list = findings, .count = 3}, .devices = &device, .device_count = 1};
    struct hec_candidates list;
    strcpy(run.pytorch, "2.11.0");
    run.steps.source = HEC_STEP_OPTIMIZER;
    hec_candidates_find(&run, &list);
    for (size_t i = 1; i < sizeof expected / sizeof expected[0]; i++)
        if (place_of(&list, expected[i - 1]) >= place_of(&list, expected[i]))
            fail_msg("%s does not come before %s", expected[i - 1], expected[i]);
    assert_int_equal(list.list[place_of(&list, "cudnn_benchmark")].cause, HEC_CAUSE_LAYOUT);
    assert_int_equal(list.list[place_of(&list, "cuda_graphs")].cause, HEC_CAUSE_COUNT);
}

/* Passes that become larger: of a program that has several a step, or whose losses nobody saw. Another batch only where it is named. */
TEST(test_passes_of_a_step) {
    struct hec_finding finding = {.cause = HEC_CAUSE_BATCH, .lever = HEC_ANSWER(LARGER_BATCH, 4)};
    struct hec_step_number losses[40];
    struct hec_summary run = {.job.findings = {.list = &finding, .count = 1},
                              .steps = {.source = HEC_STEP_OPTIMIZER, .pid = 7, .count = 10, .losses = losses}};
    struct hec_candidates list;
    strcpy(run.pytorch, "2.6.0");
    for (int i = 0; i < 40; i++) /* of another process */
        losses[i] = (struct hec_step_number){.pid = i < 20 ? 7 : 8};
    static const struct {
        int losses;
        bool tried;
    } cases[] = {{0, true}, {10, false}, {13, false}, {20, true}, {40, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run.steps.loss_count = cases[i].losses;
        hec_candidates_find(&run, &list);
        assert_int_equal(has(&list, "micro_batch", ""), cases[i].tried);
        assert_int_equal(place_of(&list, "batch"), list.count);
    }
    run.steps.source = HEC_STEP_MODULE;
    hec_candidates_find(&run, &list);
    assert_int_equal(place_of(&list, "micro_batch"), list.count);
    struct hec_lever_set set = {.count = 0};
    assert_int_equal(hec_lever_set_add(&set, "batch=32", &why), HEC_OK);
    hec_candidates_of(&set, &list);
    assert_true(has(&list, "batch", "32"));
}

TEST(test_candidates) {
    struct hec_finding findings[] = {
        {.cause = HEC_CAUSE_DATA, .lever = HEC_ANSWER(LOADER_WORKERS, 6, 10)},
        {.cause = HEC_CAUSE_PRECISION, .lever = HEC_ANSWER(TENSOR_CORES)},
    };
    struct hec_device_diagnosis device = {.readings = {.used = true, .device = {.cuda_major = 9}}};
    struct hec_summary run = {.job.findings = {.list = findings, .count = 2}, .devices = &device, .device_count = 1};
    struct hec_candidates list;
    struct hec_search_plan plan;
    char old[256];
    hec_candidates_find(&run, &list); /* no framework: what any process has */
    assert_true(has(&list, "tf32_override", "") && !has(&list, "tf32", "") && !has(&list, "loader_workers", "6"));
    strcpy(run.pytorch, "2.6.0");
    hec_candidates_find(&run, &list);
    assert_string_equal(list.list[0].use.row->name, "loader_workers"); /* the largest saving first */
    assert_true(has(&list, "loader_workers", "6") && has(&list, "bf16_autocast", "") && has(&list, "compile", ""));
    assert_false(has(&list, "accumulate", "") || has(&list, "tf32_override", "")); /* tf32 covers it */
    assert_true(has(&list, "bf16_weights", ""));
    assert_true(has(&list, "fused_optimizer", ""));
    run.steps.source = HEC_STEP_MODULE;
    hec_candidates_find(&run, &list);
    assert_true(has(&list, "bf16_weights", "") && !has(&list, "fused_optimizer", ""));
    hec_candidates_old(&run, old, sizeof old);
    assert_string_equal(old, "");
    strcpy(run.pytorch, "2.0.1+cu118");
    hec_candidates_find(&run, &list);
    assert_true(has(&list, "tf32", "") && !has(&list, "compile", ""));
    hec_candidates_old(&run, old, sizeof old);
    assert_non_null(strstr(old, "bf16_autocast, channels_last, cuda_graphs, fuse_written, compile"));
    assert_null(strstr(old, "fused_optimizer")); /* it would have nothing to do */
    hec_candidates_old(&run, old, 20);
    assert_true(strlen(old) < 20);
    strcpy(run.pytorch, "2.6.0");
    run.steps.source = HEC_STEP_OPTIMIZER;
    hec_candidates_find(&run, &list);
    assert_false(has(&list, "bf16_weights", "") || has(&list, "inference_mode", ""));
    hec_candidates_plan(&list, &plan);
    for (int i = 0; i < list.count; i++)
        for (int k = 0; k < list.count; k++) {
            const struct hec_lever_row *a = list.list[i].use.row, *b = list.list[k].use.row;
            bool excludes = (plan.excludes[i] >> k) & 1;
            assert_int_equal(excludes, i != k && a->family[0] && strcmp(a->family, b->family) == 0);
        }
    findings[0] = (struct hec_finding){.cause = HEC_CAUSE_HOST, .lever = HEC_ANSWER(MOVE_CODE)};
    for (int cores = 0; cores <= 12;
         cores += 6) { /* threads takes the cores that the program may use, where it is more than one */
        run.host.cores_usable = cores;
        hec_candidates_find(&run, &list);
        assert_int_equal(has(&list, "threads", cores == 6 ? "6" : "12"), cores > 1);
    }
    findings[0] = (struct hec_finding){.cause = HEC_CAUSE_GRADIENT_SYNC, .lever = HEC_ANSWER(SYNC_ONCE)};
    findings[1] = (struct hec_finding){.cause = HEC_CAUSE_BUCKETS, .lever = HEC_ANSWER(LARGER_BUCKETS)};
    for (run.job.size = 1; run.job.size <= 2; run.job.size++) {
        bool several = run.job.size > 1;
        hec_candidates_find(&run, &list);
        assert_true(has(&list, "sync_once", "") == several && has(&list, "ddp_bucket", "") == several);
        assert_false(has(&list, "static_graph", "")); /* a promise of the program's */
        if (several)
            assert_string_equal(list.list[0].use.row->name, "sync_once");
    }
    run.job.findings.solves = true; /* with fewer bits a factorisation is another one */
    hec_candidates_find(&run, &list);
    assert_false(has(&list, "tf32", "") || has(&list, "bf16_autocast", "") || has(&list, "tf32_override", ""));
    assert_true(has(&list, "compile", ""));
    run.job.findings.solves = false;
    device.readings.device.cuda_major = 6; /* Pascal has neither TF32 nor bf16 */
    hec_candidates_find(&run, &list);
    assert_false(has(&list, "tf32", "") || has(&list, "bf16_autocast", ""));
}

/* "256 512 | 64" : the values of a knob, upwards and downwards, each after the one before it. */
static const char *values_of(const struct hec_candidates *list, const char *knob) {
    static char text[256];
    struct hec_search_plan plan;
    uint32_t before = 0;
    size_t length = 0;
    text[0] = '\0';
    hec_candidates_plan(list, &plan);
    for (int i = 0; i < list->count; i++) {
        const struct hec_lever_use *use = &list->list[i].use;
        if (strcmp(use->knob, knob) != 0)
            continue;
        assert_true(plan.after[i] == 0 || plan.after[i] == before);
        assert_true((plan.excludes[i] & before) == before);
        assert_ptr_equal(use->row, hec_lever_knob());
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", length ? " " : "",
                                   length && !plan.after[i] ? "| " : "", use->value);
        before = UINT32_C(1) << i;
    }
    return text;
}

static struct hec_knob_summary knob_of(const char *name, const char *value, bool whole, double least, double most) {
    struct hec_knob_summary knob = {.ranged = least <= most, .whole = whole, .least = least, .most = most};
    snprintf(knob.name, sizeof knob.name, "%s", name);
    snprintf(knob.value, sizeof knob.value, "%s", value);
    knob.fallback = strtod(value, NULL);
    return knob;
}

TEST(test_values_of_knobs) {
    static const struct {
        const char *value, *ask; /* ask: NULL: none */
        bool whole;
        double least, most; /* NAN: the program gives no range */
        const char *values;
    } cases[] = {
        {"128", NULL, true, 32, 512, "256 512 | 64 32"},
        {"96", NULL, true, 32, 512, "192 384 | 48"},
        {"5", NULL, true, 1, 8, "2 1"}, /* 10 is beyond; halves are cut to integers */
        {"1", NULL, true, 1, 1e9, "2 4 8 16 32 64"},
        {"0", NULL, true, 0, 8, "2 4 6 8"},
        {"2", NULL, true, 1, 3, "3 | 1"},
        {"-5", NULL, true, -10, 10, "0 5 10 | -10"},
        {"0.1", NULL, false, 0.05, 0.8, "0.2 0.4 0.8 | 0.05"},
        {"0.5", NULL, false, 0, 1, "0.75 1 | 0.25 0"},
        {"128", "batch=64..1024", true, 32, 512, "256 512 | 64"}, /* within both */
        {"128", "batch=32..512", false, NAN, NAN, "256 512 | 64 32"},
        {"128", "batch=256..600", false, NAN, NAN, "256 342 428 514 600"},
        {"128", "batch=8..32", false, NAN, NAN, "32 16 8"},
        {"1", "batch=0.5..4", false, NAN, NAN, "2 4 | 0.5"},
        {"128", NULL, true, NAN, NAN, ""},
        {"128", NULL, true, 128, 128, ""},
        {"fast", NULL, true, 1, 8, ""},
        {"64.5", NULL, false, 64, 65, "64.75 65 | 64.25 64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_summary run = {.knob_count = 1};
        struct hec_candidates list = {.count = 0};
        struct hec_knob_ask ask;
        run.knobs[0] = knob_of("batch", cases[i].value, cases[i].whole, cases[i].least, cases[i].most);
        if (cases[i].ask)
            assert_int_equal(hec_knob_ask(cases[i].ask, &ask, &why), HEC_OK);
        assert_int_equal(hec_candidates_add_knobs(&run, &ask, cases[i].ask != NULL, !cases[i].ask, &list, &why),
                         HEC_OK);
        assert_string_equal(values_of(&list, "batch"), cases[i].values);
    }
}

TEST(test_knobs_beside_levers) {
    struct hec_summary run = {.knob_count = 3, .blocks.unit = "sample"};
    struct hec_candidates list = {.count = 0};
    struct hec_lever_set set = {.count = 0};
    struct hec_knob_ask ask;
    char words[HEC_LEVERS_TEXT];
    run.knobs[0] = knob_of("batch", "128", true, 32, 512);
    run.knobs[1] = knob_of("workers", "2", true, 0, 8);
    run.knobs[2] = knob_of("lr", "0.1", false, NAN, NAN);
    assert_int_equal(hec_lever_set_add(&set, "tf32,knob.lr=0.2", &why), HEC_OK);
    hec_candidates_of(&set, &list);
    assert_int_equal(hec_candidates_add_knobs(&run, NULL, 0, true, &list, &why), HEC_OK);
    assert_string_equal(values_of(&list, "batch"), "256 512 | 64 32");
    assert_string_equal(values_of(&list, "workers"), "4 6 8 | 0");
    hec_candidates_words(&list, &set, words);
    assert_string_equal(words, "tf32, knob lr=0.2 (was 0.1)");
    assert_true(hec_candidates_units(&run));
    strcpy(run.blocks.unit, "step");
    assert_false(hec_candidates_units(&run));
    strcpy(run.knobs[1].name, "a b,c"); /* which HEC_KNOBS does not set */
    list.count = 0;
    assert_int_equal(hec_candidates_add_knobs(&run, NULL, 0, true, &list, &why), HEC_OK);
    assert_string_equal(values_of(&list, "a b,c"), "");
    run.knobs[0].changed = true; /* nobody knows which one counts */
    list.count = 0;
    assert_int_equal(hec_candidates_add_knobs(&run, NULL, 0, true, &list, &why), HEC_OK);
    assert_string_equal(values_of(&list, "batch"), "");
    static const char *const wrong[][2] = {
        {"", "\"\" is no name of a knob"},
        {"=1..2", "\"=1..2\" is no name of a knob"},
        {"b=64", "\"b=64\" is no NAME=LEAST..MOST; the variable HEC_KNOBS sets a knob for all trials"},
        {"b=8..8", NULL},
        {"b=9..8", NULL},
        {"b=1..x", NULL},
        {"b=..8", NULL},
        {"b=1..8*2", NULL},
        {"b=nan..8", NULL},
        {"b=1..inf", NULL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(hec_knob_ask(wrong[i][0], &ask, &why), HEC_ERR_USAGE);
        if (wrong[i][1])
            assert_string_equal(why.text, wrong[i][1]);
    }
    static const char *const cannot[][2] = {
        {"depth=1..8", "the command read no knob \"depth\""},
        {"lr", "knob lr: the program gives no range: -k lr=LEAST..MOST does"},
        {"batch=1024..2048", "knob batch: no value of its range is in the one that is asked for"},
    };
    for (size_t i = 0; i < sizeof cannot / sizeof cannot[0]; i++) {
        assert_int_equal(hec_knob_ask(cannot[i][0], &ask, &why), HEC_OK);
        assert_int_equal(hec_candidates_add_knobs(&run, &ask, 1, false, &list, &why), HEC_ERR_UNSUPPORTED);
        assert_string_equal(why.text, cannot[i][1]);
    }
}

/* Levers of a framework that the program has not: that there are some is said. */
TEST(test_foreign) {
    static const struct {
        struct hec_lever answer;
        const char *pytorch, *framework;
        bool foreign;
    } cases[] = {
        {HEC_ANSWER(TENSOR_CORES), "", "", true}, {HEC_ANSWER(TENSOR_CORES), "2.6.0", "", true},
        {HEC_ANSWER(PIN_MEMORY), "", "", true},   {HEC_ANSWER(PIN_MEMORY), "2.6.0", "", false},
        {HEC_ANSWER(OVERLAP), "", "jax", true},   {HEC_ANSWER(OVERLAP), "2.6.0", "", true},
        {HEC_ANSWER(SLOW_HOST), "", "", false},   {HEC_ANSWER(FUSE), "2.6.0", "tensorflow", false},
        {HEC_ANSWER(FUSE), "2.6.0", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_finding finding = {.lever = cases[i].answer};
        struct hec_summary run = {.job.findings = {.list = &finding, .count = 1}};
        strcpy(run.pytorch, cases[i].pytorch);
        strcpy(run.framework, cases[i].framework);
        if (hec_candidates_foreign(&run) != cases[i].foreign)
            fail_msg("case %d", (int)i);
    }
}
