/* Loops in C that launch tiny kernels as fast as they can: the command of `hec run`.
 *
 * loops pairs N SECONDS            HEC's tracer on against off, interleaved
 * loops full N SECONDS CLIENT.so   off, HEC, and an empty CUPTI client (client.c)
 * loops fresh SECONDS              only the loop
 * loops volume N plain|graph       N kernels, then how much memory this process had
 * JSON on stdout, as loops.py; seconds a launch. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <random>
#include <string>
#include <time.h>
#include <unistd.h>
#include <vector>

__global__ void tiny(int *p) {
    if (p)
        *p = 1;
}

static cudaStream_t stream;
static unsigned long long launched;

static double now(void) {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void check(cudaError_t code) {
    if (code != cudaSuccess) {
        printf("{\"error\": \"%s\"}\n", cudaGetErrorString(code));
        exit(1);
    }
}

static void some(int count) {
    for (int i = 0; i < count; i++)
        tiny<<<1, 32, 0, stream>>>(NULL);
    check(cudaStreamSynchronize(stream));
    launched += count;
}

static double block(double seconds) {
    unsigned long long before = launched;
    double start = now();
    while (now() - start < seconds)
        some(400);
    return (now() - start) / (double)(launched - before);
}

static std::string mapped(const char *name) {
    char line[4096];
    std::string found;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && found.empty() && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (!path)
            continue;
        path[strcspn(path, "\n")] = 0;
        const char *file = strrchr(path, '/') + 1;
        if (!strncmp(file, name, strlen(name)))
            found = path;
    }
    if (maps)
        fclose(maps);
    return found;
}

static void (*hec_pause)(void), (*hec_resume)(void);
static int (*client_register)(void), (*client_set)(int, int), (*client_flush)(int);
static bool hec_on = true, client_on, has_tracer;
static int client_code;

static void hec_open(void) {
    std::string path = mapped("libhectrace.so");
    void *library = path.empty() ? NULL : dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return;
    hec_pause = (void (*)(void))dlsym(library, "hec_trace_pause");
    hec_resume = (void (*)(void))dlsym(library, "hec_trace_resume");
    has_tracer = hec_pause && hec_resume;
}

static void hec_set(bool on) {
    if (on != hec_on && has_tracer)
        (on ? hec_resume : hec_pause)();
    hec_on = on;
}

static void client_open(const char *path) {
    std::string cupti = mapped("libcupti.so");
    if (!cupti.empty())
        setenv("PROBE_CUPTI", cupti.c_str(), 1);
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        printf("{\"error\": \"%s\"}\n", dlerror());
        exit(1);
    }
    client_register = (int (*)(void))dlsym(library, "client_register");
    client_set = (int (*)(int, int))dlsym(library, "client_set");
    client_flush = (int (*)(int))dlsym(library, "client_flush");
    client_code = ((int (*)(void))dlsym(library, "client_load"))();
}

static void client_switch(bool on) {
    if (on == client_on || client_code)
        return;
    client_on = on;
    if (on)
        client_code = client_register();
    const char *kinds = getenv("CLIENT_KINDS");
    std::string list = kinds ? kinds : "1,2,38,12,5,4,10";
    for (char *item = strtok(&list[0], ","); item; item = strtok(NULL, ","))
        client_code = client_code ? client_code : client_set(atoi(item), on);
    if (!on)
        client_flush(1);
}

static void list_print(const char *name, const std::vector<double> &values, const char *end) {
    printf("\"%s\": [", name);
    for (size_t i = 0; i < values.size(); i++)
        printf("%s%.6e", i ? ", " : "", values[i]);
    printf("]%s", end);
}

static long status_kb(const char *name) {
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)))
            kb = atol(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return kb;
}

static void compare(int count, double seconds, const char *client) {
    std::vector<double> done[3];
    std::mt19937 random(1);
    std::vector<int> order = {0, 1};
    unsigned long long while_on = 0;
    if (client) {
        client_open(client);
        order.push_back(2);
    }
    for (int round = 0; round < count; round++) {
        std::shuffle(order.begin(), order.end(), random);
        for (int state : order) {
            if (client)
                client_switch(false);
            hec_set(state == 1);
            if (client)
                client_switch(state == 2);
            usleep(client && state == 1 ? 1600000 : 150000);
            unsigned long long before = launched;
            block(0.1);
            done[state].push_back(block(seconds));
            if (state == 1)
                while_on += launched - before;
        }
    }
    if (client)
        client_switch(false);
    hec_set(true);
    printf("{\"blocks\": {");
    list_print("off", done[0], ", ");
    list_print("hec", done[1], client ? ", " : "");
    if (client)
        list_print("client", done[2], "");
    printf("}, \"units_while_on\": %llu, \"tracer\": %s, \"client_code\": %d}\n", while_on, has_tracer ? "true" : "false", client_code);
}

static void volume(unsigned long long count, bool graph) {
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 100; i++)
        tiny<<<1, 32, 0, stream>>>(NULL);
    check(cudaStreamEndCapture(stream, &captured));
    check(cudaGraphInstantiate(&exec, captured, 0));
    double start = now();
    while (launched < count) {
        if (graph) {
            for (int i = 0; i < 10; i++)
                check(cudaGraphLaunch(exec, stream));
            check(cudaStreamSynchronize(stream));
            launched += 1000;
        } else
            some(1000);
    }
    printf("{\"launched\": %llu, \"seconds\": %.3f, \"rss_peak_kb\": %ld, \"rss_kb\": %ld, \"tracer\": %s}\n", launched, now() - start,
           status_kb("VmHWM"), status_kb("VmRSS"), has_tracer ? "true" : "false");
}

int main(int argc, char **argv) {
    if (argc < 3)
        return fprintf(stderr, "usage: loops pairs|full|fresh|volume ...\n"), 2;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    hec_open();
    std::string mode = argv[1];
    if (mode == "volume" && argc > 3)
        return volume(strtoull(argv[2], NULL, 10), !strcmp(argv[3], "graph")), 0;
    block(1.0);
    if (mode == "pairs" && argc > 3)
        compare(atoi(argv[2]), atof(argv[3]), NULL);
    else if (mode == "full" && argc > 4)
        compare(atoi(argv[2]), atof(argv[3]), argv[4]);
    else if (mode == "fresh")
        printf("{\"value\": %.6e}\n", block(atof(argv[2])));
    else
        return fprintf(stderr, "usage: loops pairs|full|fresh|volume ...\n"), 2;
    return 0;
}
