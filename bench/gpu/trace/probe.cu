/* What CUPTI costs and how it behaves, on this machine: `probe PART [key=value …]`, JSON lines on stdout.
 *
 * cost    launch loops with CUPTI's kinds on and off, interleaved inside this process
 * switch  how long switching a kind and flushing takes, and how long it stalls a thread that launches
 * graphs  which records come of graphs instantiated before and after
 * clock   CUPTI's clock against CLOCK_MONOTONIC; kernels' times against the host's around them
 * memory  host and device memory, threads of the callbacks, refused buffers
 * residual     what stays after a kind was on once, and for how long
 * finalize     whether cuptiFinalize clears it, and attaching again; how=plain|callback|thread
 * graph_trace  which orders of GRAPH_TRACE and kernels CUPTI survives; how=1..6
 * growth       memory of the process over many kernels; how=none|flush0|flush1|cycle|finalize|trim, flush_period=MS
 * start   time of cuInit and a context, then a launch loop: for comparing fresh processes
 * The library is PROBE_CUPTI (default libcupti.so.13). */
#include "probe.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <unistd.h>

struct config {
    const char *name;
    std::vector<int> kinds;
    int runtime_only, driver_only; /* launches, copies and syncs only, by cbid */
    int callback;                  /* a subscriber with a callback at each cudaLaunchKernel */
    int flush_ms;                  /* a thread that flushes */
    const char *loops;             /* NULL: those of the options */
};

static const int runtime_cbids[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,        CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,         CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020};
static const int driver_cbids[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                   CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch};
static const int sync_only_cbids[] = {CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
                                      CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020,
                                      CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020};

static CUpti_SubscriberHandle subscriber;
static std::atomic<uint64_t> callbacks;

static void CUPTIAPI on_callback(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {
    callbacks.fetch_add(1, std::memory_order_relaxed);
}

static void config_set(const config &c, bool on) {
    for (int kind : c.kinds)
        CHECK(on ? cupti.ActivityEnable((CUpti_ActivityKind)kind) : cupti.ActivityDisable((CUpti_ActivityKind)kind));
    if (c.runtime_only == 1)
        for (int id : runtime_cbids)
            CHECK(cupti.ActivityEnableRuntimeApi(id, on));
    if (c.runtime_only == 2)
        for (int id : sync_only_cbids)
            CHECK(cupti.ActivityEnableRuntimeApi(id, on));
    if (c.driver_only)
        for (int id : driver_cbids)
            CHECK(cupti.ActivityEnableDriverApi(id, on));
    if (c.callback && on) {
        CHECK(cupti.Subscribe(&subscriber, on_callback, NULL));
        CHECK(cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
    } else if (c.callback)
        CHECK(cupti.Unsubscribe(subscriber));
}

static void blocks_print(const char *name, const char *loop, int count) {
    std::vector<double> host, total;
    for (int i = 0; i < count; i++) {
        block b = run_block(loop, opt.block_ms);
        host.push_back(b.host), total.push_back(b.total);
    }
    printf("{\"part\": \"state\", \"state\": \"%s\", \"loop\": \"%s\", \"host_ns\": %.1f, \"total_ns\": %.1f, \"blocks\": %d}\n", name,
           loop, median(host), median(total), count);
    fflush(stdout);
}

static void pairs_print(const config &c, const char *loop) {
    std::vector<double> d_host, d_total, r_total, r_host, off_host, off_total;
    delivered_reset();
    uint64_t launches = 0;
    for (int pair = 0; pair < opt.pairs; pair++) {
        block b[2];
        for (int turn = 0; turn < 2; turn++) {
            bool on = (turn ^ pair) & 1;
            std::atomic<bool> stop(false);
            std::thread flusher;
            if (on)
                config_set(c, true);
            if (on && c.flush_ms)
                flusher = std::thread([&] {
                    while (!stop) {
                        usleep(c.flush_ms * 1000);
                        cupti.ActivityFlushAll(0);
                    }
                });
            run_block(loop, 2);
            b[on] = run_block(loop, opt.block_ms);
            if (on) {
                if (c.flush_ms)
                    stop = true, flusher.join();
                config_set(c, false);
                cupti.ActivityFlushAll(1);
                launches++;
            }
        }
        d_host.push_back(b[1].host - b[0].host), d_total.push_back(b[1].total - b[0].total);
        r_host.push_back(b[1].host / b[0].host), r_total.push_back(b[1].total / b[0].total);
        off_host.push_back(b[0].host), off_total.push_back(b[0].total);
    }
    printf("{\"part\": \"cost\", \"config\": \"%s\", \"loop\": \"%s\", \"off_host_ns\": %.1f, \"add_host_ns\": %.1f, \"ratio_host\": %.4f, "
           "\"off_total_ns\": %.1f, \"add_total_ns\": %.1f, \"ratio_total\": %.4f, \"pairs\": %d, \"buffer\": %zu, \"records\": %llu, "
           "\"kernels\": %llu, \"bytes\": %llu, \"dropped\": %llu, \"bad\": %llu, \"callbacks\": %llu}\n",
           c.name, loop, median(off_host), median(d_host), median(r_host), median(off_total), median(d_total), median(r_total), opt.pairs,
           opt.buffer_bytes,
           [] { unsigned long long n = 0; for (auto &k : got.kinds) n += k; return n; }(),
           (unsigned long long)(got.kinds[3] + got.kinds[10]), (unsigned long long)got.bytes, (unsigned long long)dropped_now(),
           (unsigned long long)got.bad_time, (unsigned long long)callbacks.exchange(0));
    fflush(stdout);
}

int part_cost(void) {
    enum { MEMCPY = 1, MEMSET = 2, KERNEL = 3, DRIVER = 4, RUNTIME = 5, CONC = 10, MARKER = 12, SYNC = 38, LAUNCH = 48 };
    const std::vector<config> configs = {
        {"nothing", {}, 0, 0, 0, 0, NULL},
        {"concurrent_kernel", {CONC}, 0, 0, 0, 0, "c,graph,graph5,streams"},
        {"kernel_serial", {KERNEL}, 0, 0, 0, 0, "c,graph,streams"},
        {"device", {CONC, MEMCPY, MEMSET}, 0, 0, 0, 0, NULL},
        {"device_sync", {CONC, MEMCPY, MEMSET, SYNC}, 0, 0, 0, 0, NULL},
        {"device_sync_flush20", {CONC, MEMCPY, MEMSET, SYNC}, 0, 0, 0, 20, NULL},
        {"sync_only", {SYNC}, 0, 0, 0, 0, NULL},
        {"runtime", {RUNTIME}, 0, 0, 0, 0, NULL},
        {"runtime_chosen", {}, 1, 0, 0, 0, NULL},
        {"runtime_sync_copy", {}, 2, 0, 0, 0, "c"},
        {"driver", {DRIVER}, 0, 0, 0, 0, NULL},
        {"driver_launches", {}, 0, 1, 0, 0, NULL},
        {"device_sync_runtime", {CONC, MEMCPY, MEMSET, SYNC, RUNTIME}, 0, 0, 0, 0, NULL},
        {"device_sync_runtime_chosen", {CONC, MEMCPY, MEMSET, SYNC}, 1, 0, 0, 0, NULL},
        {"device_sync_driver_launches", {CONC, MEMCPY, MEMSET, SYNC}, 0, 1, 0, 0, NULL},
        {"callback_launch", {}, 0, 0, 1, 0, "c"},
        {"device_callback_launch", {CONC, MEMCPY, MEMSET}, 0, 0, 1, 0, "c"},
        {"internal_launch", {LAUNCH}, 0, 0, 0, 0, "c"},
        /* not GRAPH_TRACE: switched on after a graph was made, it crashes (part graph_trace) */
    };
    bool all = !*opt.only;
    if (!opt.early) {
        work_setup();
        run_block("c", 300);
        if (all)
            for (const char *loop : {"c", "graph"})
                blocks_print("no_cupti", loop, opt.pairs);
        cupti_load();
        if (all)
            blocks_print("loaded", "c", opt.pairs);
        cupti_register();
        if (all)
            for (const char *loop : {"c", "graph"})
                blocks_print("registered", loop, opt.pairs);
    } else {
        cupti_load();
        cupti_register();
        work_setup();
        run_block("c", 300);
    }
    for (const config &c : configs) {
        std::string list = std::string(",") + opt.only + ",";
        if (!all && list.find(std::string(",") + c.name + ",") == std::string::npos)
            continue;
        std::string loops = c.loops && all ? c.loops : opt.loops;
        for (size_t at = 0; at < loops.size();) {
            size_t end = std::min(loops.find(',', at), loops.size());
            pairs_print(c, loops.substr(at, end - at).c_str());
            at = end + 1;
        }
    }
    if (all)
        for (const char *loop : {"c", "graph"})
            blocks_print("after_all_disabled", loop, opt.pairs);
    return 0;
}

/* A thread launches all the time; this one switches. Stall: the longest launch from the call until 2 ms after it. */
int part_switch(void) {
    cupti_load();
    cupti_register();
    work_setup();
    run_block("c", 300);
    std::atomic<bool> stop(false);
    std::atomic<int64_t> longest(0);
    std::thread launcher([&] {
        while (!stop) {
            for (int i = 0; i < 300; i++) {
                double t0 = now_ns();
                launch(0);
                int64_t d = (int64_t)(now_ns() - t0);
                if (d > longest.load(std::memory_order_relaxed))
                    longest.store(d, std::memory_order_relaxed);
            }
            cudaStreamSynchronize(stream);
        }
    });
    auto measure = [&](const char *what, int kind, int rounds, auto before, auto call) {
        std::vector<double> wall, stall, none;
        for (int i = 0; i < rounds; i++) {
            before();
            usleep(5000);
            longest = 0;
            usleep(2000);
            none.push_back(longest);
            longest = 0;
            double t0 = now_ns();
            call();
            wall.push_back(now_ns() - t0);
            usleep(2000);
            stall.push_back(longest);
        }
        double first_wall = wall[0], first_stall = stall[0];
        printf("{\"part\": \"switch\", \"call\": \"%s\", \"kind\": %d, \"first_us\": %.1f, \"first_stall_us\": %.1f, \"median_us\": %.1f, "
               "\"max_us\": %.1f, \"stall_median_us\": %.1f, \"stall_max_us\": %.1f, \"stall_without_us\": %.1f, \"rounds\": %d}\n",
               what, kind, first_wall / 1e3, first_stall / 1e3, median(wall) / 1e3,
               *std::max_element(wall.begin() + 1, wall.end()) / 1e3, median(stall) / 1e3,
               *std::max_element(stall.begin() + 1, stall.end()) / 1e3, median(none) / 1e3, rounds);
        fflush(stdout);
    };
    for (int kind : {10, 3, 1, 2, 38, 5, 4, 48, 51, 12}) {
        auto k = (CUpti_ActivityKind)kind;
        measure("enable", kind, 15, [&] { cupti.ActivityDisable(k); cupti.ActivityFlushAll(1); }, [&] { cupti.ActivityEnable(k); });
        measure("disable", kind, 15, [&] { cupti.ActivityEnable(k); }, [&] { cupti.ActivityDisable(k); });
        cupti.ActivityFlushAll(1);
    }
    measure("enable_runtime_cbid", 5, 15, [&] { cupti.ActivityEnableRuntimeApi(211, 0); }, [&] { cupti.ActivityEnableRuntimeApi(211, 1); });
    cupti.ActivityEnableRuntimeApi(211, 0);
    for (int forced : {0, 1}) {
        char name[16];
        snprintf(name, sizeof name, "flush%d", forced);
        measure(name, 0, 15, [&] {}, [&] { cupti.ActivityFlushAll(forced); });
        CHECK(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
        snprintf(name, sizeof name, "flush%d_10_on", forced);
        measure(name, 10, 15, [&] {}, [&] { cupti.ActivityFlushAll(forced); });
        CHECK(cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
        cupti.ActivityFlushAll(1);
    }
    stop = true;
    launcher.join();
    delivered_print("switch");
    return 0;
}

static void replay(const char *when, const char *which, cudaGraphExec_t graph, int replays) {
    delivered_reset();
    for (int i = 0; i < replays; i++)
        CHECK(cudaGraphLaunch(graph, stream));
    CHECK(cudaStreamSynchronize(stream));
    cupti.ActivityFlushAll(1);
    printf("{\"part\": \"graphs\", \"order\": \"%s\", \"when\": \"%s\", \"graph\": \"%s\", \"launched_nodes\": %d, \"replays\": %d, \"kernels\": %llu, "
           "\"kernels_in_graph\": %llu, \"graph_traces\": %llu, \"bad\": %llu, \"dropped\": %llu}\n",
           opt.order, when, which, replays * 100, replays, (unsigned long long)(got.kinds[3] + got.kinds[10]),
           (unsigned long long)got.in_graph, (unsigned long long)got.kinds[51], (unsigned long long)got.bad_time,
           (unsigned long long)dropped_now());
    fflush(stdout);
}

int part_graphs(void) {
    bool early = !strcmp(opt.order, "early");
    if (early) {
        cupti_load();
        cupti_register();
    }
    work_setup();
    std::vector<std::pair<const char *, cudaGraphExec_t>> graphs;
    graphs.push_back({early ? "after_register" : "before_load", graph_make(100, 0)});
    CHECK(cudaGraphLaunch(graphs[0].second, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (!early) {
        cupti_load();
        cupti_register();
        graphs.push_back({"after_register", graph_make(100, 0)});
    }
    auto all = [&](const char *when) {
        for (auto &g : graphs)
            replay(when, g.first, g.second, 50);
    };
    auto set = [&](int kind, bool on) {
        auto code = on ? cupti.ActivityEnable((CUpti_ActivityKind)kind) : cupti.ActivityDisable((CUpti_ActivityKind)kind);
        printf("{\"part\": \"graphs\", \"order\": \"%s\", \"set\": %d, \"on\": %d, \"code\": %d}\n", opt.order, kind, on, (int)code);
    };
    all("nothing_on");
    set(10, true);
    graphs.push_back({"while_10_on", graph_make(100, 0)});
    all("10_on");
    set(10, false);
    graphs.push_back({"after_10_off", graph_make(100, 0)});
    all("10_off");
    set(10, true);
    all("10_on_again");
    set(10, false);
    all("all_off");
    return 0;
}

int part_clock(void) {
    cupti_load();
    cupti_register();
    work_setup();
    launch(0);
    CHECK(cudaStreamSynchronize(stream));
    enum { CALLS = 100000 };
    uint64_t t, last = 0, steps = 0, smallest = ~0ull, back = 0;
    double t0 = now_ns();
    for (int i = 0; i < CALLS; i++) {
        cupti.GetTimestamp(&t);
        if (last && t != last) {
            steps++;
            if (t > last)
                smallest = std::min<uint64_t>(smallest, t - last);
            else
                back++;
        }
        last = t;
    }
    double call = (now_ns() - t0) / CALLS;
    printf("{\"part\": \"clock\", \"call_ns\": %.1f, \"steps\": %llu, \"calls\": %d, \"smallest_step_ns\": %llu, \"backwards\": %llu}\n", call,
           (unsigned long long)steps, CALLS, (unsigned long long)smallest, (unsigned long long)back);
    CHECK(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    kept = new std::vector<kernel_time>;
    struct host_time {
        double before, launched, after, offset;
    };
    std::vector<host_time> hosts;
    cupti.GetTimestamp(&t); /* a double holds differences from this to a nanosecond, not the clock itself */
    const int64_t epoch = (int64_t)t - (int64_t)now_ns();
    double begin = now_ns(), first_mono = 0, first_real = 0, last_mono = 0, last_real = 0;
    while (now_ns() - begin < opt.seconds * 1e9) {
        double best = 1e18, mono = 0, real = 0;
        for (int i = 0; i < 20; i++) { /* the closest bracket of twenty */
            timespec r;
            double a = now_ns();
            cupti.GetTimestamp(&t);
            double b = now_ns();
            clock_gettime(CLOCK_REALTIME, &r);
            if (b - a < best) {
                best = b - a;
                mono = (double)((int64_t)t - (int64_t)(a / 2 + b / 2) - epoch);
                real = (double)((int64_t)t - (r.tv_sec * 1000000000ll + r.tv_nsec));
            }
        }
        if (!first_mono)
            first_mono = mono, first_real = real;
        last_mono = mono, last_real = real;
        host_time h;
        h.offset = mono;
        h.before = now_ns();
        launch(0);
        h.launched = now_ns();
        CHECK(cudaStreamSynchronize(stream));
        h.after = now_ns();
        hosts.push_back(h);
        usleep(50000);
    }
    cupti.ActivityFlushAll(1);
    printf("{\"part\": \"clock\", \"cupti_minus_monotonic_ns\": %.0f, \"drift_ns\": %.0f, \"cupti_minus_realtime_ns\": %.0f, \"last_minus_realtime_ns\": %.0f, \"seconds\": %d}\n",
           first_mono + epoch, last_mono - first_mono, first_real, last_real, opt.seconds);
    std::vector<double> lead, tail, length;
    double min_lead = 1e18, min_tail = 1e18;
    size_t n = std::min(kept->size(), hosts.size());
    for (size_t i = 0; i < n; i++) {
        double start = (double)((int64_t)(*kept)[i].start - epoch) - hosts[i].offset, end = (double)((int64_t)(*kept)[i].end - epoch) - hosts[i].offset;
        lead.push_back(start - hosts[i].before), tail.push_back(hosts[i].after - end), length.push_back(end - start);
        min_lead = std::min(min_lead, lead.back()), min_tail = std::min(min_tail, tail.back());
    }
    printf("{\"part\": \"clock\", \"kernels\": %zu, \"pairs\": %zu, \"start_after_launch_call_ns\": {\"median\": %.0f, \"min\": %.0f}, "
           "\"sync_return_after_end_ns\": {\"median\": %.0f, \"min\": %.0f}, \"kernel_ns\": %.0f}\n",
           kept->size(), n, median(lead), min_lead, median(tail), min_tail, median(length));
    return 0;
}

static size_t device_used(void) {
    size_t free_bytes, total;
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

int part_memory(void) {
    long rss0 = rss_kb();
    double t0 = now_ns();
    if (opt.early) {
        cupti_load();
        cupti_register();
    }
    long rss1 = rss_kb();
    double t1 = now_ns();
    work_setup();
    double t2 = now_ns();
    long rss2 = rss_kb();
    size_t device2 = device_used();
    if (!opt.early && !opt.no_attach) {
        cupti_load();
        cupti_register();
    }
    long rss3 = rss_kb();
    size_t device3 = device_used();
    double t3 = now_ns(), t4 = t3, t5 = t3;
    if (!opt.no_attach) {
        CHECK(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
        t4 = now_ns();
        CHECK(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
        CHECK(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION));
        t5 = now_ns();
    }
    double first = now_ns();
    launch(0);
    first = now_ns() - first;
    CHECK(cudaStreamSynchronize(stream));
    long rss5 = rss_kb();
    size_t device5 = device_used();
    uint64_t completed_early = 0;
    if (opt.flush_period && !opt.no_attach)
        CHECK(cupti.ActivityFlushPeriod(opt.flush_period));
    bool graph = !strcmp(opt.loops, "graph");
    cudaGraphExec_t exec = graph_make(100, 0);
    double begin = now_ns();
    for (int i = 0; i < opt.kernels; i += graph ? 100 : 1) {
        if (graph)
            cudaGraphLaunch(exec, stream);
        else
            launch(0);
        if (i % 300 == (graph ? 0 : 299))
            cudaStreamSynchronize(stream);
        if (!completed_early && i >= opt.kernels / 2)
            completed_early = got.completed;
    }
    CHECK(cudaStreamSynchronize(stream));
    double per_kernel = (now_ns() - begin) / opt.kernels;
    uint64_t before_flush = got.completed;
    long rss6 = rss_kb();
    size_t device6 = device_used();
    if (!opt.no_attach) {
        cupti.ActivityFlushAll(0);
        cupti.ActivityFlushAll(1);
    }
    printf("{\"part\": \"memory\", \"attach\": \"%s\", \"buffer\": %zu, \"device_buffer\": %d, \"pool_limit\": %d, \"preallocate\": %d, "
           "\"per_thread\": %d, \"pinned\": %d, \"rss_kb\": {\"start\": %ld, \"attached\": %ld, \"context\": %ld, \"late_attached\": %ld, "
           "\"enabled\": %ld, \"after\": %ld}, \"device_mb\": {\"context\": %.1f, \"late_attached\": %.1f, \"enabled\": %.1f, \"after\": %.1f}, "
           "\"attach_ms\": %.2f, \"context_ms\": %.2f, \"enable10_ms\": %.2f, \"enable_rest_ms\": %.2f, \"first_launch_us\": %.1f, "
           "\"loop\": \"%s\", \"flush_period\": %d, \"max_buffers\": %d, \"allocated\": %llu, \"ns_per_kernel\": %.0f, "
           "\"launched\": %d, \"kernels\": %llu, \"completed_at_half\": %llu, \"completed_before_flush\": %llu, \"completed\": %llu, "
           "\"requested\": %llu, \"refused\": %llu, \"requested_in_main\": %llu, \"completed_in_main\": %llu, \"dropped\": %llu}\n",
           opt.no_attach ? "never" : opt.early ? "early" : "late", opt.buffer_bytes, opt.device_buffer, opt.pool_limit, opt.preallocate,
           opt.per_thread, opt.pinned, rss0, rss1, rss2, rss3, rss5, rss6, device2 / 1e6, device3 / 1e6, device5 / 1e6, device6 / 1e6,
           (t1 - t0) / 1e6, (t2 - t1) / 1e6, (t4 - t3) / 1e6, (t5 - t4) / 1e6, first / 1e3, graph ? "graph" : "c", opt.flush_period,
           opt.max_buffers, (unsigned long long)got.allocated, per_kernel, opt.kernels + 1,
           (unsigned long long)got.kinds[10], (unsigned long long)completed_early, (unsigned long long)before_flush,
           (unsigned long long)got.completed, (unsigned long long)got.requested, (unsigned long long)got.refused,
           (unsigned long long)got.main_requested, (unsigned long long)got.main_completed,
           (unsigned long long)(opt.no_attach ? 0 : dropped_now()));
    return 0;
}

/* Whatever CUDA_INJECTION64_PATH did is in place before the first line after cuInit. */
int part_start(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    auto init = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
    if (!init)
        return printf("{\"error\": \"no libcuda.so.1\"}\n"), 1;
    double t0 = now_ns();
    CHECK(init(0));
    double t1 = now_ns();
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(0));
    double t2 = now_ns();
    work_setup();
    run_block("c", 200);
    std::vector<double> host[2], total[2];
    const char *loops[2] = {"c", "graph"};
    for (int i = 0; i < 15; i++)
        for (int l = 0; l < 2; l++) {
            block b = run_block(loops[l], opt.block_ms);
            host[l].push_back(b.host), total[l].push_back(b.total);
        }
    const char *injected = getenv("PROBE_INJECT");
    printf("{\"part\": \"start\", \"inject\": \"%s\", \"cuinit_ms\": %.2f, \"context_ms\": %.2f, \"c\": {\"host_ns\": %.1f, \"total_ns\": %.1f}, "
           "\"graph\": {\"host_ns\": %.1f, \"total_ns\": %.1f}, \"rss_kb\": %ld}\n",
           injected ? injected : "none", (t1 - t0) / 1e6, (t2 - t1) / 1e6, median(host[0]), median(total[0]), median(host[1]),
           median(total[1]), rss_kb());
    return 0;
}

int main(int argc, char **argv) {
    main_tid = gettid();
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2)
        return fprintf(stderr, "usage: probe PART [key=value ...]\n"), 2;
    for (int i = 2; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        std::string key(argv[i], value ? value - argv[i] : strlen(argv[i]));
        value = value ? value + 1 : "1";
        long n = atol(value);
#define OPTION(field) else if (key == #field) opt.field = n;
        if (key == "loops")
            opt.loops = value;
        else if (key == "only")
            opt.only = value;
        else if (key == "order")
            opt.order = value;
        else if (key == "how")
            opt.how = value;
        OPTION(pairs) OPTION(block_ms) OPTION(seconds) OPTION(buffer_bytes) OPTION(early) OPTION(walk) OPTION(latency)
        OPTION(device_buffer) OPTION(pool_limit) OPTION(preallocate) OPTION(per_thread) OPTION(zeroed) OPTION(pinned)
        OPTION(refuse_after) OPTION(no_attach) OPTION(kernels) OPTION(kind) OPTION(max_buffers)
        OPTION(flush_period) OPTION(cycles) OPTION(graph_trace) OPTION(quiet) OPTION(kind2)
        else return fprintf(stderr, "probe: no such option: %s\n", key.c_str()), 2;
    }
    const struct {
        const char *name;
        int (*run)(void);
    } parts[] = {{"cost", part_cost},   {"switch", part_switch}, {"graphs", part_graphs},
                 {"clock", part_clock}, {"memory", part_memory}, {"start", part_start},
                 {"residual", part_residual}, {"finalize", part_finalize}, {"graph_trace", part_graph_trace},
                 {"growth", part_growth}};
    for (auto &part : parts)
        if (!strcmp(part.name, argv[1])) {
            int code = part.run();
            fflush(stdout);
            return code;
        }
    return fprintf(stderr, "probe: no such part: %s\n", argv[1]), 2;
}
