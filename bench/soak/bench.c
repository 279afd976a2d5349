/* A day of 8 simulated GPUs through the real collectors, recorder lanes and run file, in simulated time: does the memory
 * of hec stay flat, how large is the file, what does it cost?
 *
 *   soak LIBNVIDIA-ML FILE [HOURS]
 */
#include "base/clock.h"
#include "observe/recorder.h"
#include "sim/world.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICES 8
#define LIMIT_KIB (50 * 1024)
#define NS_PER_HOUR (3600 * HEC_NS_PER_S)

static const struct hec_collector *const collectors[] = {&hec_collector_procfs, &hec_collector_nvml, NULL};
static struct sim_world *world;

static int64_t sim_mono_ns(void) {
    return sim_world_now_ns(world);
}
static int64_t sim_wall_ns(void) {
    return sim_world_now_ns(world) + sim_world_wall_offset_ns(world);
}
static const struct hec_clock_source simulated_time = {sim_mono_ns, sim_wall_ns};

/* Memory of this process, without the pages it shares with the simulated machine. KiB. */
static long own_memory_kib(void) {
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    long total = 0, kib;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %ld", &kib) == 1 || sscanf(line, "RssFile: %ld", &kib) == 1)
            total += kib;
    if (file)
        fclose(file);
    return total;
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* A training loop that starves now and then: activities change every 0.1 to 0.4 s, differently on each device. */
static int64_t keep_busy(int device, int64_t until_ns, int64_t from_ns, uint64_t *random) {
    static const enum sim_activity activities[] = {SIM_GEMM_BF16, SIM_ELEMENTWISE, SIM_COPY_PINNED, SIM_SMALL_KERNELS};
    while (until_ns <= from_ns + 2 * HEC_NS_PER_S) {
        *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        int64_t duration_ns = (100 + (int64_t)(*random >> 33) % 300) * HEC_NS_PER_MS;
        struct sim_piece pieces[2];
        if (sim_segment_append(world, device, getpid(), activities[(*random >> 50) % 4], until_ns, duration_ns,
                               pieces) < 0)
            exit(1);
        until_ns += duration_ns + (int64_t)((*random >> 40) % 3) * 50 * HEC_NS_PER_MS;
    }
    return until_ns;
}

static void simulate(struct hec_lane_set lanes[HEC_LANE_COUNT], struct hec_writer *writer, int64_t start_ns,
                     int64_t end_ns) {
    uint64_t random[DEVICES];
    int64_t busy_ns[DEVICES], flush_ns = start_ns, report_ns = start_ns + NS_PER_HOUR, now_ns = start_ns;
    for (int d = 0; d < DEVICES; d++) {
        random[d] = (uint64_t)d + 1;
        busy_ns[d] = start_ns;
        int64_t opened_ns;
        if (sim_context_open(world, d, 0, getpid(), INT64_C(8) << 30, &opened_ns) < 0)
            exit(1);
    }
    while (now_ns < end_ns) {
        for (int d = 0; d < DEVICES; d++)
            busy_ns[d] = keep_busy(d, busy_ns[d], now_ns, &random[d]);
        int64_t next_ns = flush_ns;
        for (int lane = 0; lane < HEC_LANE_COUNT; lane++) {
            int64_t due_ns = hec_lane_poll(&lanes[lane], now_ns);
            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
        if (now_ns >= flush_ns) {
            hec_writer_flush(writer, NULL);
            flush_ns = now_ns + HEC_NS_PER_S;
        }
        if (now_ns >= report_ns) {
            fprintf(stderr, "\rhour %2" PRId64 ": %.1f MB, %.1f s CPU ", (now_ns - start_ns) / NS_PER_HOUR,
                    (double)own_memory_kib() / 1024, cpu_seconds());
            report_ns += NS_PER_HOUR;
        }
        now_ns = next_ns > now_ns ? next_ns : now_ns + HEC_NS_PER_MS;
        sim_world_set_now_ns(world, now_ns);
    }
    fputs("\n", stderr);
}

int main(int argc, char **argv) {
    double hours = argc > 3 ? atof(argv[3]) : 24;
    struct hec_why why = {""};
    struct sim_spec spec;
    struct hec_writer *writer;
    if (argc < 3 || sim_spec_parse("h200x8,clock=virtual,noise=8", &spec, &why) < 0 ||
        sim_world_create(&spec, &world, &why) < 0) {
        fprintf(stderr, "usage: soak LIBNVIDIA-ML FILE [HOURS] %s\n", why.text);
        return 2;
    }
    setenv(SIM_WORLD_ENV, sim_world_path(world), 1);
    hec_clock_set_source(&simulated_time);
    int64_t start_ns = sim_world_now_ns(world), end_ns = start_ns + (int64_t)(hours * (double)NS_PER_HOUR);
    struct hec_observe_options options = {.root = getpid(), .nvml_path = argv[1]};
    struct hec_lane_set lanes[HEC_LANE_COUNT];
    if (hec_writer_create(argv[2], true, start_ns, &writer, &why) < 0) {
        fprintf(stderr, "soak: %s\n", why.text);
        sim_world_destroy(world);
        return 1;
    }
    const struct hec_sink *sink = hec_writer_sink(writer);
    for (int lane = 0; lane < HEC_LANE_COUNT; lane++)
        hec_lane_open(&lanes[lane], (enum hec_lane)lane, collectors, &options, sink);
    simulate(lanes, writer, start_ns, end_ns);
    for (int lane = 0; lane < HEC_LANE_COUNT; lane++) {
        hec_lane_finish(&lanes[lane], sink, end_ns);
        hec_lane_close(&lanes[lane]);
    }
    char duration[32];
    snprintf(duration, sizeof duration, "%" PRId64, end_ns - start_ns);
    sink->meta(sink->context, "duration_ns", duration);
    sink->meta(sink->context, "complete", "1");
    int64_t lost = 0;
    int err = hec_writer_close(writer, &lost, &why);
    long memory_kib = own_memory_kib();
    double cpu = cpu_seconds();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct stat status = {0};
    stat(argv[2], &status);
    sim_world_destroy(world);
    printf(
        "%.1f h of %d simulated GPUs: %.1f MB of memory (limit %.0f, ratio %.2f), file %.2f MB per GPU and hour (limit 3, "
        "ratio %.2f), %.4f %% of a core, the simulation's own cost included; %" PRId64 " values lost%s%s\n",
        hours, DEVICES, (double)memory_kib / 1024, LIMIT_KIB / 1024.0, (double)memory_kib / LIMIT_KIB,
        (double)status.st_size / 1e6 / DEVICES / hours, (double)status.st_size / 1e6 / DEVICES / hours / 3,
        100 * cpu / (hours * 3600), lost, err < 0 ? "; " : "", err < 0 ? why.text : "");
    return err < 0 || lost > 0 || memory_kib > LIMIT_KIB;
}
