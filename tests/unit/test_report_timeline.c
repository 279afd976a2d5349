/* The timeline in the reports: what is said, that it fits, and names of kernels that are shortened. */
#include "base/trace.h"
#include "recorded_run.h"
#include "report/run/report.h"
#include "report/words/timeline.h"
#include "report_json.h"

#define MS INT64_C(1000000)

static struct hec_report_style style;

static void print(void) {
    summarise();
    assert_int_equal(hec_report_terminal(&summary, &style, page()), 0);
}

static const char *second_kernel;

/* A minute of steps of 100 ms: 60 ms of compute, 20 of communication (half behind compute), 10 of copies. */
static void fill(int device) {
    struct fake_timeline *t = &timeline;
    uint32_t stream = fake_tl_track(t, HEC_TRACK_STREAM, 4321, device, 7);
    uint32_t side = fake_tl_track(t, HEC_TRACK_STREAM, 4321, device, 20);
    uint32_t gemm =
        fake_tl_kernel(t,
                       "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5Array"
                       "IPcLi1EEEEEviT0_T1_",
                       256);
    uint32_t nccl = fake_tl_kernel(t, second_kernel, 544);
    for (int64_t at = 0; at < 60000 * MS; at += 100 * MS) {
        struct hec_activity *a = fake_tl_copy(t, stream, at, at + 10 * MS, 5e7, HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE);
        a->launch_ns = at - 2 * MS;
        fake_tl_add(t, HEC_ACTIVITY_KERNEL, stream, at + 10 * MS, at + 70 * MS)->name = gemm;
        fake_tl_add(t, HEC_ACTIVITY_KERNEL, side, at + 60 * MS, at + 80 * MS)->name = nccl;
    }
}

static void fill_steps(void) {
    struct fake_timeline *t = &timeline;
    uint32_t process = fake_tl_track(t, HEC_TRACK_PROCESS, 4321, -1, 0);
    uint32_t thread = fake_tl_track(t, HEC_TRACK_THREAD, 4321, -1, 4321);
    for (int64_t at = 0; at < 60000 * MS; at += 100 * MS) {
        struct hec_activity *a = fake_tl_add(t, HEC_ACTIVITY_STEP, process, at, at + 100 * MS);
        a->detail = HEC_STEP_OPTIMIZER;
        a->amount = 128;
        a->name = fake_tl_name(t, "sample");
        fake_tl_add(t, HEC_ACTIVITY_PHASE, thread, at + 80 * MS, at + 100 * MS)->name = fake_tl_name(t, "data");
        a = fake_tl_add(t, HEC_ACTIVITY_VALUE, process, at + MS, at + MS);
        a->name = fake_tl_name(t, "loss");
        a->amount = 7 - (double)at / 1e10;
    }
    t->tracers[t->tracer_count++] = (struct hec_tracer){.pid = 4321,
                                                        .mode = HEC_TRACE_AUTO,
                                                        .cupti_version = 130000,
                                                        .first_ns = 0,
                                                        .last_ns = 60000 * MS,
                                                        .traced_ns = 6000 * MS,
                                                        .windows = 12,
                                                        .records = 1800,
                                                        .dropped = 5,
                                                        .lost = 7,
                                                        .estimate_ppm = 4000,
                                                        .budget_ppm = 10000,
                                                        .holder = "torch.profiler",
                                                        .holder_ns = 3000 * MS,
                                                        .why = "stood down for torch.profiler"};
}

static int setup(void **state) {
    (void)state;
    run_begin(60);
    fake_tl_init(&timeline);
    style = (struct hec_report_style){.utf8 = true};
    second_kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    return 0;
}

static void fill_all(void) {
    fake_worker(&run, 0, 620, 1000, 920, 450);
    fake_used(&run, 0, 4321);
    fill(0);
    fill_steps();
}

TEST(measured) {
    fill_all();
    run.devices[0].cuda_major = 9;
    style.all = true;
    print();
    lines(80);
    SAYS("timeline busy 80 % of 60.0 s: compute 60 %, comm 10 %, copies 10 %",
         "behind compute: 50 % of the communication, 0.0 % of the copies", "1200 kernels, 600 copies in 2 streams",
         "gaps     599: median 20.0 ms, p99 20.0 ms, longest 20.0 ms",
         "launches start after 2.00 ms (p99 2.00 ms); queue 0.12 deep, at most 1",
         "copies   host to device, pageable: 600, 30.0 GB at 5.00 GB/s",
         "   36.0 s    75 %     600  60.0 ms    100 %  vectorized_elemen...<FillFunctor>",
         "   12.0 s    25 %     600  20.0 ms     80 %  ncclDevKernel_AllRe",
         "Steps        600 of the optimizer: median 100 ms, p99 100 ms",
         "128 samples each; busy 80 %; loader 20 %; loss 7 to",
         "Trace        auto: 10 % of the time, 1800 records, 1 process",
         "slowdown unknown: no steps were timed before CUPTI was on",
         "missing: 5 dropped by CUPTI, 7 lost on the way, 0 made no sense",
         "stood down for torch.profiler, which used CUPTI for 3.00 s", "\u2588\u2593");
    SAYS_NOT("nan");
    style.columns = 120;
    print();
    lines(120);
    SAYS("vectorized_elementwise_kernel<4, FillFunctor<float>, Array<char*, 1>>");
    style = (struct hec_report_style){.columns = 40};
    print();
    SAYS("####");
    for (const char *c = hec_buf_text(&out); *c; c++)
        assert_true((unsigned char)*c < 0x80);
    style = (struct hec_report_style){.brief = true};
    print();
    assert_true(lines(80) <= 15);
    SAYS("597 steps of the optimizer", "trust      ", "CUPTI was in use by torch.profiler");
}

TEST(imported) {
    run.devices[run.device_count++] = (struct hec_device){.index = 0, .name = "NVIDIA A100", .visible = 1};
    run.devices[run.device_count++] = (struct hec_device){.index = 1, .name = "NVIDIA A100", .visible = 1};
    run.input.imported = "kineto";
    run.input.exit_code = -1;
    fill(0);
    fill(1);
    print();
    lines(80);
    SAYS("imported (kineto)", "unavailable: imported from a trace: time only", "GPUs         2 used: NVIDIA A100",
         "alike      GPU 0 and 1; below, GPU 0 stands for them (-v shows each)", "GPU 0        NVIDIA A100",
         "of GPU 0, those that took longest");
    SAYS_NOT("GPU 1        NVIDIA A100");
    style.all = true;
    print();
    SAYS("GPU 1        NVIDIA A100", "of GPU 1, those that took longest", "Trace        imported from a trace (kineto)",
         "found in the sequence of kernels (confidence 0.9");
    SAYS_NOT("power", "Host", "exit code");
    assert_true(summary.devices[0].readings.used && summary.devices[1].readings.used);
    assert_true(isnan(summary.joules));
}

/* Two programs, two devices that are alike: two findings of one cause, one of which is shown for both. */
TEST(findings_of_devices_that_are_alike) {
    imported(unit_state);
    struct hec_findings *findings = &summary.job.findings;
    struct hec_finding *two = calloc(2, sizeof *two);
    assert_non_null(two);
    two[0] = two[1] = findings->list[0];
    two[0].devices = 1;
    two[1].device = 1;
    two[1].devices = 2;
    free(findings->list);
    findings->list = two;
    findings->count = 2;
    for (int all = 0; all < 2; all++) {
        style.all = all;
        assert_int_equal(hec_report_terminal(&summary, &style, page()), 0);
        SAYS(all ? "Findings  1  GPU 0: held up by" : "Findings  1  GPU 0 (and alike GPU 1): held up by");
        says_all((const char *const[]){"          2  GPU 1: held up by", NULL}, all);
    }
}

/* A run without a trace says nothing about it; one whose trace failed says why. */
TEST(without_trace) {
    fake_worker(&run, 0, 620, 1000, 920, 450);
    fake_used(&run, 0, 4321);
    print();
    SAYS_NOT("timeline", "Trace", "Steps", "Kernels");
    timeline.tracers[timeline.tracer_count++] = (struct hec_tracer){.pid = 1,
                                                                    .mode = HEC_TRACE_AUTO,
                                                                    .cupti_version = -1,
                                                                    .estimate_ppm = -1,
                                                                    .budget_ppm = -1,
                                                                    .why = "no libcupti was found"};
    print();
    SAYS("Trace        none: no libcupti was found");
    style.brief = true;
    print();
    SAYS("trust      no trace: no libcupti was found");
}

/* The interval of a measured slowdown. */
TEST(measured_slowdown) {
    fill_all();
    print();
    struct hec_trace_cost *t = &summary.trace;
    t->overhead = 0.021;
    t->overhead_low = -0.002;
    t->overhead_high = 0.044;
    t->overhead_measured = true;
    assert_int_equal(hec_report_terminal(&summary, &style, page()), 0);
    SAYS("slowdown 2.1 % (-0.20 % to 4.4 %, measured)");
    t->overhead_measured = false;
    assert_int_equal(hec_report_terminal(&summary, &style, page()), 0);
    SAYS("slowdown about 2.1 % (at most 4.4 %, estimated)");
}

TEST(json) {
    fill_all();
    summarise();
    assert_int_equal(hec_report_json(&summary, 1, page()), 0);
    parse();
    assert_near(number_at("devices.0.timeline.compute_us"), 36e6, 1);
    assert_near(number_at("devices.0.timeline.comm_overlap"), 0.5, 1e-9);
    assert_text_at("devices.0.timeline.copied.0.direction", "host_to_device");
    assert_text_at("devices.0.timeline.copied.0.host_memory", "pageable");
    assert_true(json_is_true(value_at("kernels.1.communication")));
    assert_int_equal(json_array_size(value_at("kernels.1.grid")), 3);
    assert_text_at("steps.source", "optimizer");
    assert_near(number_at("steps.data_share"), 0.2, 1e-9);
    assert_text_at("trace.mode", "auto");
    assert_null_at("trace.overhead_low");
    assert_int_equal(json_integer_value(value_at("trace.lost")), 7);
}

/* Cells of a row, and no markup but ours: pipes that end a cell, counted as readers of GitHub's Markdown do. */
static int cells_of(const char *line, size_t length) {
    static const char *const ours[] = {"<details>", "</details>", "<summary>", "</summary>", "<!-- -->"};
    int cells = 0;
    bool code = false;
    for (size_t i = 0; i < length; i++) {
        bool known = line[i] != '<' || code;
        if (line[i] == '\\' && !(code && line[i + 1] == '`')) {
            i++;
            continue;
        }
        code ^= line[i] == '`';
        cells += line[i] == '|';
        for (size_t k = 0; k < sizeof ours / sizeof ours[0]; k++)
            known |= strncmp(line + i, ours[k], strlen(ours[k])) == 0;
        if (!known)
            fail_msg("markup from outside in:\n%.*s", (int)length, line);
    }
    assert_false(code);
    return cells;
}

TEST(markdown) {
    int cells = 0;
    bool before = false, fenced = false;
    second_kernel = "nccl|All`Reduce\\|@somebody<script>alert(1)</script>\n| x | https://example.org\033[2J";
    run.input.command = "a `|` b\n<img src=x onerror=alert(1)> @somebody";
    fake_unit(&run, "s|<b>`x`@you http://x", 600);
    fill_all();
    summarise();
    assert_int_equal(hec_report_markdown(&summary, page()), 0);
    assert_true(strlen(hec_buf_text(&out)) < 8000);
    for (const char *line = hec_buf_text(&out); *line; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n");
        bool table = line[0] == '|', fence = strncmp(line, "```", 3) == 0;
        fenced ^= fence;
        if (fence || fenced) /* a snippet */
            continue;
        int found = cells_of(line, length);
        if (table && before)
            assert_int_equal(found, cells);
        assert_true(table || !strchr("#>", line[0]) || !length);
        cells = found;
        before = table;
    }
    assert_false(fenced);
    SAYS_NOT("\033");
    SAYS("600 s\\|\\<b\\>\\`x\\`@<!-- -->you http:<!-- -->//xs");
    SAYS("\n- **found**: starved for data: the H200 idled 18 %");
    SAYS("`vectorized_elementwise_kernel<4, FillFunctor<float>, Array<char*, 1>>` |",
         "`a '|' b?<img src=x onerror=alert(1)> @somebody`\n");
}

TEST(names) {
    static const struct {
        const char *name;
        int columns;
        const char *expected;
    } rows[] = {
        {"sgemm", 30, "sgemm"},
        {"void at::native::f<float>(float*, int)", 60, "at::native::f<float>"},
        {"void at::native::f<float>(float*, int)", 12, "f<float>"},
        {"void at::native::vectorized<4, at::native::Fill<c10::Half>, int>(int)", 40, "vectorized<4, Fill<Half>, int>"},
        {"void at::native::vectorized<4, at::native::Fill<c10::Half>, int>(int)", 28, "vectorized<4, Fill<Half>,..."},
        {"void at::native::vectorized<4, at::native::Fill<c10::Half>, int>(int)", 20, "vectorized"},
        {"at::native::(anonymous namespace)::CatArray<float>", 20, "CatArray<float>"},
        {"void (anonymous namespace)::elementwise<int>(int, int)", 60, "(anonymous namespace)::elementwise<int>"},
        {"f<at::native::{lambda(float)#1}::operator()(float) const::{lambda()#2}>(int)", 80,
         "f<at::native::{lambda(float)#1}::operator()(float) const::{lambda()#2}>"},
        {"at::native::vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, float, float, "
         "at::native::binary_internal::MulFunctor<float>>, std::array<char*, 2>>",
         37, "vectorized_elementwise<MulFunctor>"},
        {"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda"
         "::{lambda#3}::operator()::{lambda#12}::operator()::{lambda#1}>::{lambda#1}>(int)",
         40, "elementwise<direct_copy_kernel_cuda>"},
        {"at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
         "at::native::sum_functor<float, float, float>::operator()::{lambda#1}>, unsigned int, float, 4, 4>>",
         40, "reduce<sum_functor>"},
        {"internal::gemvx::kernel<int, int, float, float, float, float, true, true, true, false, 6, false, "
         "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>, float>>",
         40, "gemvx::kernel<cublasGemvParamsEx>"},
        {"at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl::{lambda#2}::operator()::{lambda#4}>",
         60, "vectorized_elementwise<GeluCUDAKernelImpl>"},
        {"at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl::{lambda#2}::operator()::{lambda#4}>",
         24, "vectorized_ele...elImpl>"},
        {"at::native::vectorized_elementwise_kernel<4, at::native::BinaryOpListAlphaFunctor<float, 2>, std::array<char*, 2>>",
         34, "vecto...<BinaryOpListAlphaFunctor>"},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL [pg 0]", 50, "ncclDevKernel_AllReduce_Sum_f32_RING_LL [pg 0]"},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL [pg 0]", 40, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL [pg 0]", 20, "ncclDevKerne...NG_LL"},
        {"a_very_long_name_of_a_kernel_without_any_brackets", 20, "a_very_long_...ckets"},
        {"bad\nname\x1b[1m", 30, "bad?name?[1m"},
        {"", 8, ""},
        {"(", 8, "("},
        {"<<<<<<<<<<<<<<<<<<<<<<<<<<<<", 8, "<<...<"},
    };
    char text[600];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hec_kernel_short(text, sizeof text, rows[i].name, rows[i].columns);
        if (i == sizeof rows / sizeof rows[0] - 1) {
            assert_true(strlen(text) <= 8);
            continue;
        }
        assert_string_equal(text, rows[i].expected);
    }
    char deep[4096];
    for (int c = 8; c < 120; c += 7)
        for (int k = 0; k < 200; k++) { /* any bytes: it ends and fits */
            for (int i = 0; i < 300; i++)
                deep[i] = "<>(){}: ,abcoperator\xc3\xa9"[(unsigned)(i * 7919 + k * 104729 + i * i * k) % 22];
            deep[300] = '\0';
            hec_kernel_short(text, sizeof text, deep, c);
            int columns = 0;
            for (const char *p = text; *p; p++)
                columns += ((unsigned char)*p & 0xc0) != 0x80;
            assert_true(columns <= c);
        }
}

EACH_TEST(setup, NULL)
