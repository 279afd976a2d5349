/* Simulated hours through the writer at HEC's default rates, with the noise that an H200 showed under a training loop:
 * bytes of run file an hour and GPU against the limit of 3 MB, CPU time and memory of the writer, and the time of a
 * pass over it with the reader. bench FILE [HOURS [GPUS]] */
#include "../uniform.h"

#include "base/clock.h"
#include "store/reader.h"
#include "store/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define LIMIT_BYTES 3e6

static double normal(double mean, double deviation) {
    return mean + deviation * sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

static int64_t clamp(double value, double high) {
    return (int64_t)(value < 0 ? 0 : value > high ? high : value);
}

/* mean and deviation of each hardware counter under mixed work; 0 and 0: the pipe is not used */
static const struct {
    enum hec_metric metric;
    double mean, deviation, maximum;
} counters[] = {
    {HEC_GPM_GR_ACTIVE, 995, 5, 1000},      {HEC_GPM_SM_ACTIVE, 870, 30, 1000},
    {HEC_GPM_SM_OCCUPANCY, 310, 25, 1000},  {HEC_GPM_INTEGER_ACTIVE, 90, 9, 1000},
    {HEC_GPM_TENSOR_ACTIVE, 280, 30, 1000}, {HEC_GPM_DFMA_ACTIVE, 0, 0, 1000},
    {HEC_GPM_HMMA_ACTIVE, 280, 30, 1000},   {HEC_GPM_DMMA_ACTIVE, 0, 0, 1000},
    {HEC_GPM_IMMA_ACTIVE, 0, 0, 1000},      {HEC_GPM_DRAM_ACTIVE, 420, 35, 1000},
    {HEC_GPM_FP64_ACTIVE, 0, 0, 1000},      {HEC_GPM_FP32_ACTIVE, 110, 12, 1000},
    {HEC_GPM_FP16_ACTIVE, 6, 2, 1000},      {HEC_GPM_PCIE_TX, 90e3, 40e3, 6e7},
    {HEC_GPM_PCIE_RX, 4e6, 9e5, 6e7},       {HEC_GPM_NVLINK_RX, 0, 0, 1e9},
    {HEC_GPM_NVLINK_TX, 0, 0, 1e9},
};

struct gpu {
    double watts;
    int64_t energy_mj, next_power_ns, next_gpm_ns;
};

static int64_t late(double mean_us) { /* a timer is late by an exponential time */
    return (int64_t)(-mean_us * log(1 - uniform()) * 1000);
}

static void one_second(const struct hec_sink *s, struct gpu *gpu, int index, int64_t second) {
    int64_t begin = second * HEC_NS_PER_S, end = begin + HEC_NS_PER_S;
    double level = second / 300 % 12 == 11 ? 125 : 545; /* a checkpoint of five minutes each hour */
    double joules = 0;
    for (; gpu->next_power_ns < end; gpu->next_power_ns += 20 * HEC_NS_PER_MS) {
        gpu->watts += 0.3 * (level - gpu->watts) + normal(0, 18);
        joules += gpu->watts * 0.02;
        s->sample(s->context, HEC_GPU_POWER, index, gpu->next_power_ns + (int64_t)normal(0, 150e3),
                  clamp(gpu->watts * 1000, 7e5));
    }
    for (; gpu->next_gpm_ns < end; gpu->next_gpm_ns += 120 * HEC_NS_PER_MS) {
        int64_t t = gpu->next_gpm_ns + late(80);
        for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
            s->sample(s->context, counters[i].metric, index, t,
                      clamp(normal(counters[i].mean, counters[i].deviation), counters[i].maximum));
    }
    gpu->energy_mj += (int64_t)(joules * 1000);
    int64_t edge = end - (int64_t)(uniform() * 1e8);
    s->sample(s->context, HEC_GPU_ENERGY, index, edge, gpu->energy_mj);
    s->sample(s->context, HEC_GPU_ENERGY_SLACK, index, edge, clamp(normal(4500, 300), 1e5));
    int64_t t = begin + late(80);
    s->sample(s->context, HEC_GPU_POWER_INSTANT, index, t, clamp(normal(545e3, 30e3), 7e5));
    s->sample(s->context, HEC_GPU_POWER_LIMIT, index, t, 700000);
    s->sample(s->context, HEC_GPU_UTIL, index, t, clamp(normal(985, 12), 1000));
    s->sample(s->context, HEC_GPU_MEM_UTIL, index, t, clamp(normal(400, 30), 1000));
    s->sample(s->context, HEC_GPU_SM_CLOCK, index, t, clamp(1980 - 15 * floor(uniform() * 8), 1980));
    s->sample(s->context, HEC_GPU_MEM_CLOCK, index, t, 3201);
    s->sample(s->context, HEC_GPU_THROTTLE, index, t, uniform() < 0.1 ? 4 : 0);
    s->sample(s->context, HEC_GPU_MEM_USED, index, t, 31457280 + (second / 60) * 512);
    s->sample(s->context, HEC_GPU_TEMPERATURE, index, t, clamp(normal(61, 1.5), 90));
    s->sample(s->context, HEC_GPU_MEM_TEMPERATURE, index, t, clamp(normal(68, 1.5), 95));
    s->sample(s->context, HEC_GPU_CONTEXTS, index, t, 1);
}

static void one_second_of_host(const struct hec_sink *s, int64_t second) {
    static int64_t cpu_ms, read_kib, written_kib, disk_kib, voluntary, involuntary, self_us, package_uj, dram_uj;
    int64_t t = second * HEC_NS_PER_S + late(80);
    s->sample(s->context, HEC_HOST_CPU_BUSY, 0, t, clamp(normal(180, 20), 1000));
    s->sample(s->context, HEC_HOST_MEM_AVAILABLE, 0, t, clamp(normal(9.1e8, 2e6), 1e9));
    s->sample(s->context, HEC_RAPL_PACKAGE_ENERGY, 0, t, package_uj += clamp(normal(2.1e8, 9e6), 1e9));
    s->sample(s->context, HEC_RAPL_DRAM_ENERGY, 0, t, dram_uj += clamp(normal(2.4e7, 1e6), 1e9));
    s->sample(s->context, HEC_TREE_CPU, 0, t, cpu_ms += clamp(normal(5800, 120), 1e5));
    s->sample(s->context, HEC_TREE_RSS, 0, t, clamp(normal(1.2e7, 4e4), 1e9));
    s->sample(s->context, HEC_TREE_PROCESSES, 0, t, 9);
    s->sample(s->context, HEC_TREE_THREADS_RUNNING, 0, t, clamp(normal(6, 1.5), 99));
    s->sample(s->context, HEC_TREE_THREADS_SLEEPING, 0, t, clamp(normal(120, 2), 999));
    s->sample(s->context, HEC_TREE_THREADS_DISK, 0, t, uniform() < 0.05);
    s->sample(s->context, HEC_TREE_READ, 0, t, read_kib += clamp(normal(6e4, 8e3), 1e9));
    s->sample(s->context, HEC_TREE_WRITTEN, 0, t, written_kib += clamp(normal(120, 30), 1e9));
    s->sample(s->context, HEC_TREE_DISK_READ, 0, t, disk_kib += clamp(normal(900, 400), 1e9));
    s->sample(s->context, HEC_TREE_SWITCHES_VOLUNTARY, 0, t, voluntary += clamp(normal(9000, 700), 1e9));
    s->sample(s->context, HEC_TREE_SWITCHES_INVOLUNTARY, 0, t, involuntary += clamp(normal(60, 12), 1e9));
    s->sample(s->context, HEC_SELF_CPU, 0, t, self_us += clamp(normal(6000, 300), 1e6));
    s->sample(s->context, HEC_SELF_RSS, 0, t, 11000 + second / 600 * 4);
}

static double cpu_seconds(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static int count(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t n) {
    (void)t_ns;
    (void)value;
    (void)valid;
    *(int64_t *)context += (int64_t)n;
    return 0;
}

static int64_t read_all(const char *path, struct hec_why *why) {
    struct hec_reader *reader;
    int err = hec_reader_open(path, &reader, why);
    int64_t values = 0;
    for (int m = 0; m < HEC_METRIC_COUNT && err >= 0; m++) {
        int32_t *subjects = NULL;
        int n = hec_reader_subjects(reader, (enum hec_metric)m, &subjects, why);
        err = n < 0 ? n : 0;
        for (int i = 0; i < n && err == 0; i++)
            err = hec_reader_series(reader, (enum hec_metric)m, subjects[i], count, &values, why);
        free(subjects);
    }
    hec_reader_close(reader);
    return err < 0 ? err : values;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE [HOURS [GPUS]]\n", argv[0]);
        return 2;
    }
    double hours = argc > 2 ? atof(argv[2]) : 1;
    int gpus = argc > 3 ? atoi(argv[3]) : 1;
    struct hec_why why = {""};
    struct hec_writer *writer;
    if (gpus < 1 || gpus > HEC_DEVICE_MAX || hec_writer_create(argv[1], true, 0, &writer, &why) != HEC_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    struct gpu gpu[HEC_DEVICE_MAX] = {{0}};
    double writer_cpu = 0;
    int64_t seconds = (int64_t)(hours * 3600);
    for (int64_t second = 0; second < seconds; second++) {
        for (int i = 0; i < gpus; i++)
            one_second(hec_writer_sink(writer), &gpu[i], i, second);
        one_second_of_host(hec_writer_sink(writer), second);
        double before = cpu_seconds();
        if (hec_writer_flush(writer, &why) != HEC_OK)
            fprintf(stderr, "%s\n", why.text);
        writer_cpu += cpu_seconds() - before;
    }
    int64_t lost = 0;
    int err = hec_writer_close(writer, &lost, &why);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct stat st;
    if (err || lost || stat(argv[1], &st) != 0) {
        fprintf(stderr, "lost %lld: %s\n", (long long)lost, why.text);
        return 1;
    }
    double bytes = (double)st.st_size / hours / gpus, before = cpu_seconds();
    int64_t values = read_all(argv[1], &why);
    if (values < 0) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    printf("%.2f hours, %d GPU(s): %lld bytes, %.0f an hour and GPU (limit %.0f)\n", hours, gpus, (long long)st.st_size,
           bytes, LIMIT_BYTES);
    printf("writer: %.3f ms of CPU a flush (%.4f of a core at one a second), %.1f MB resident at most\n",
           writer_cpu * 1000 / (double)seconds, writer_cpu / (double)seconds, (double)usage.ru_maxrss / 1024);
    printf("reader: %lld values in %.2f s of CPU\n", (long long)values, cpu_seconds() - before);
    return bytes <= LIMIT_BYTES ? 0 : 1;
}
