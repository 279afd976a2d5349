/* What stays of CUPTI when nothing is on: after a window, after cuptiFinalize, after attaching again. */
#include "probe.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>

static void state(const char *name) {
    printf("{\"part\": \"%s\", \"kind\": %d, \"how\": \"%s\", \"state\": \"%s\"", opt.order, opt.kind, opt.how, name);
    for (const char *loop : {"c", "graph", "graph5"}) {
        std::vector<double> host, total;
        run_block(loop, 3);
        for (int i = 0; i < 6; i++) {
            block b = run_block(loop, opt.block_ms);
            host.push_back(b.host), total.push_back(b.total);
        }
        printf(", \"%s\": {\"host_ns\": %.1f, \"total_ns\": %.1f}", loop, median(host), median(total));
    }
    printf(", \"rss_kb\": %ld}\n", rss_kb());
}

static void window(const char *loop, double ms) {
    if (opt.kind)
        CHECK(cupti.ActivityEnable((CUpti_ActivityKind)opt.kind));
    if (ms > 0)
        run_block(loop, ms);
    if (opt.kind)
        CHECK(cupti.ActivityDisable((CUpti_ActivityKind)opt.kind));
    cupti.ActivityFlushAll(1);
}

int part_residual(void) {
    opt.order = "residual";
    if (opt.early) {
        cupti_load();
        cupti_register();
    }
    if (opt.graph_trace) /* before the first graph, else CUPTI 13.0 crashes at its replay */
        CHECK(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
    work_setup();
    run_block("c", 300);
    if (opt.kind == 51) {
        state(opt.graph_trace ? "graph_trace_on" : "graph_trace_off");
        state("again");
        return 0;
    }
    state(opt.early ? "registered_early" : "no_cupti");
    state("again");
    if (!opt.early) {
        cupti_load();
        state("loaded");
        cupti_register();
        state("registered");
    }
    window("c", 0);
    state("on_off_no_launch");
    window("c", 5);
    state("on_off_5ms_c");
    usleep(1000000);
    state("1s_later");
    window("graph", 20);
    state("on_off_20ms_graph");
    usleep(2000000);
    state("2s_later");
    return 0;
}

static CUpti_SubscriberHandle handle;
static std::atomic<int> finalize_wanted, finalize_code(-1);
static std::atomic<int64_t> finalize_took;

static void finalize_now(void) {
    double t0 = now_ns();
    finalize_code = (int)cupti.Finalize();
    finalize_took = (int64_t)(now_ns() - t0);
}

static void CUPTIAPI on_exit_callback(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *data) {
    auto *info = (const CUpti_CallbackData *)data;
    if (info->callbackSite == CUPTI_API_EXIT && finalize_wanted.exchange(0))
        finalize_now();
}

static void detach(void) {
    if (!strcmp(opt.how, "callback")) {
        CHECK(cupti.Subscribe(&handle, on_exit_callback, NULL));
        CHECK(cupti.EnableCallback(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020));
        finalize_wanted = 1;
        cudaStreamSynchronize(stream);
    } else
        finalize_now();
}

int part_finalize(void) {
    opt.order = "finalize";
    work_setup();
    run_block("c", 300);
    state("no_cupti");
    cupti_load();
    bool threaded = !strcmp(opt.how, "thread");
    std::atomic<bool> stop(false);
    std::thread launcher;
    for (int cycle = 0; cycle < opt.cycles; cycle++) {
        if (threaded) {
            stop = false;
            launcher = std::thread([&] {
                while (!stop)
                    run_block("c", 1);
            });
        }
        delivered_reset();
        double t0 = now_ns();
        cupti_register();
        double t1 = now_ns();
        CUptiResult on = cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        if (threaded)
            usleep(20000);
        else
            run_block("c", 10), run_block("graph", 10);
        cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        double t2 = now_ns();
        cupti.ActivityFlushAll(1);
        double t3 = now_ns();
        detach();
        if (threaded)
            stop = true, launcher.join();
        if (cycle < 3 || cycle == opt.cycles - 1)
            printf("{\"part\": \"finalize\", \"how\": \"%s\", \"cycle\": %d, \"register_ms\": %.2f, \"enable\": %d, \"flush_ms\": %.2f, \"finalize\": %d, "
                   "\"finalize_ms\": %.2f, \"kernels\": %llu, \"in_graph\": %llu, \"bad\": %llu, \"rss_kb\": %ld}\n",
                   opt.how, cycle, (t1 - t0) / 1e6, (int)on, (t3 - t2) / 1e6, (int)finalize_code, finalize_took / 1e6,
                   (unsigned long long)got.kinds[10], (unsigned long long)got.in_graph, (unsigned long long)got.bad_time, rss_kb());
        if (cycle == 0)
            state("finalized_once");
        if (threaded)
            usleep(5000);
    }
    state("finalized_last");
    cudaGraphExec_t fresh = graph_make(100, 0);
    CHECK(cudaGraphLaunch(fresh, stream));
    CHECK(cudaStreamSynchronize(stream));
    usleep(1000000);
    state("1s_later");
    return 0;
}

/* Memory of the process while kernels are traced, by what is done every `flush_period` ms: how=none|flush0|flush1|
 * cycle (the kind off and on again)|finalize|trim (flush and malloc_trim). */
int part_growth(void) {
    std::string how = opt.how;
    opt.early = how != "finalize";
    if (opt.early) {
        cupti_load();
        cupti_register();
    }
    work_setup();
    if (!opt.early) {
        cupti_load();
        cupti_register();
    }
    auto kind = (CUpti_ActivityKind)opt.kind;
    CHECK(cupti.ActivityEnable(kind));
    if (opt.kind2)
        CHECK(cupti.ActivityEnable((CUpti_ActivityKind)opt.kind2));
    printf("{\"part\": \"growth\", \"how\": \"%s\", \"with\": \"%s\", \"every_ms\": %d, \"rss_kb\": [%ld", opt.how, opt.only, opt.flush_period, rss_kb());
    double last = now_ns();
    long heap = 0;
    bool by_driver = !strcmp(opt.only, "driver"), by_device = !strcmp(opt.only, "device_sync");
    if (!strcmp(opt.only, "default_stream"))
        stream = NULL;
    cudaFunction_t function = launch_function();
    auto driver = (CUresult(*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))dlsym(
        dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernel");
    int *nothing = NULL;
    void *parameters[] = {&nothing};
    for (int i = 0; i < opt.kernels; i++) {
        if (by_driver)
            driver(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
        else
            launch(0);
        if (i % 400 == 399)
            by_device ? cudaDeviceSynchronize() : cudaStreamSynchronize(stream);
        if (i % (opt.kernels / 5) == opt.kernels / 5 - 1)
            printf(", %ld", rss_kb());
        if (i % 400 == 399 && now_ns() - last > opt.flush_period * 1e6 && how != "none") {
            last = now_ns();
            if (how == "cycle" || how == "finalize")
                CHECK(cupti.ActivityDisable(kind));
            cupti.ActivityFlushAll(how == "flush1" || how == "finalize");
            if (how == "finalize") {
                CHECK(cupti.Finalize());
                cupti_register();
            }
            if (how == "cycle" || how == "finalize")
                CHECK(cupti.ActivityEnable(kind));
            if (how == "trim")
                malloc_trim(0);
        }
    }
    heap = (long)(mallinfo2().uordblks / 1024);
    printf("], \"heap_used_kb\": %ld, \"heap_kb\": %ld, ", heap, (long)(mallinfo2().arena / 1024));
    cupti.ActivityFlushAll(1);
    malloc_trim(0);
    printf("\"after_flush_and_trim_kb\": %ld, \"heap_used_after_kb\": %ld, \"kernels\": %llu}\n", rss_kb(), (long)(mallinfo2().uordblks / 1024),
           (unsigned long long)got.kinds[10]);
    return 0;
}

static void on_signal(int number) {
    void *frames[24];
    int count = backtrace(frames, 24);
    for (int i = 0; i < count && i < 10; i++) {
        Dl_info info;
        if (dladdr(frames[i], &info) && info.dli_fname)
            printf("{\"signal\": %d, \"frame\": %d, \"in\": \"%s\", \"symbol\": \"%s\"}\n", number, i, strrchr(info.dli_fname, '/') + 1,
                   info.dli_sname ? info.dli_sname : "");
    }
    fflush(stdout);
    _exit(128 + number);
}

static void set(int kind, bool on) {
    auto code = on ? cupti.ActivityEnable((CUpti_ActivityKind)kind) : cupti.ActivityDisable((CUpti_ActivityKind)kind);
    printf("{\"part\": \"graph_trace\", \"how\": \"%s\", \"set\": %d, \"on\": %d, \"code\": %d}\n", opt.how, kind, on, (int)code);
}

static void replay(const char *what, cudaGraphExec_t graph) {
    delivered_reset();
    for (int i = 0; i < 50; i++)
        CHECK(cudaGraphLaunch(graph, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("{\"part\": \"graph_trace\", \"how\": \"%s\", \"replayed\": \"%s\"}\n", opt.how, what);
    cupti.ActivityFlushAll(1);
    printf("{\"part\": \"graph_trace\", \"how\": \"%s\", \"of\": \"%s\", \"kernels\": %llu, \"in_graph\": %llu, \"graphs\": %llu, \"bad\": %llu}\n", opt.how, what,
           (unsigned long long)got.kinds[10], (unsigned long long)got.in_graph, (unsigned long long)got.kinds[51], (unsigned long long)got.bad_time);
}

int part_graph_trace(void) {
    void *warm[1];
    backtrace(warm, 1);
    signal(SIGSEGV, on_signal);
    signal(SIGABRT, on_signal);
    int order = atoi(opt.how);
    cupti_load();
    cupti_register();
    if (order == 1 || order == 3)
        set(51, true);
    work_setup();
    cudaGraphExec_t first = graph_make(100, 0);
    replay("first", first);
    if (order == 2) { /* a graph from before the enabling */
        set(51, true);
        replay("from before 51", first);
        replay("made with 51", graph_make(100, 0));
    } else if (order == 3) {
        set(51, false);
        replay("51 off", first);
        set(51, true);
        replay("51 on again", first);
        set(51, false);
        set(10, true);
        replay("10 on", first);
    } else if (order == 4) { /* node level first, then whole graphs, the same graph */
        set(10, true);
        replay("10 on", first);
        set(10, false);
        set(51, true);
        replay("51 after 10", first);
    } else if (order == 5) {
        set(10, true);
        replay("10 on", first);
        set(10, false);
        set(51, true);
        replay("51 after 10, new graph", graph_make(100, 0));
    } else if (order == 6) {
        set(51, true);
        set(10, true);
        replay("both, graph from before", first);
        replay("both, new graph", graph_make(100, 0));
    }
    return 0;
}
