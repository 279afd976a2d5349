/* A program that uses CUDA and forks children which load a library: the tracer's locks must not reach them taken.
 *
 *   forks CHILDREN BIG.so SMALL.so [LIMIT_S]
 *
 * BIG.so has 120 000 symbolic relocations (libraries.py makes it), so that a walk over all modules lasts. One thread
 * launches kernels. The main thread, which forks, loads and unloads SMALL.so now and then, so that there is something new
 * to walk for. A child loads SMALL.so, which needs the loader's locks, and exits; one that takes longer than LIMIT_S (20)
 * is counted as hung and killed. Prints "hung K of N"; the exit status is 1 where K > 0. The driver is loaded with
 * dlopen, so the program runs on the simulated GPU as well; kernels are launched through a pointer in BIG.so, which the
 * loader bound to cuLaunchKernel, as in a library that was linked with the driver. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOAD_EVERY 5  /* forks */
#define PAUSE_US 7000 /* between forks: no multiple of the tracer's 50 ms, so all moments of its walk are met */
#define CHILDREN_MAX 100000

/* The tab tells the simulated driver that this is no list of functions of its own. */
static const char ptx[] =
    "//\tPTX\n.version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

static struct {
    int (*init)(unsigned), (*device)(int *, int), (*retain)(void **, int), (*current)(void *);
    int (*load)(void **, const void *), (*function)(void **, void *, const char *), (*synchronize)(void);
} cu;
typedef int (*launch_call)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                           void **, void **);
static launch_call *launch;
static void *context, *kernel;
static atomic_bool done;
static atomic_int failed;

static const struct {
    const char *name;
    void *slot;
} calls[] = {
    {"cuInit", &cu.init},
    {"cuDeviceGet", &cu.device},
    {"cuDevicePrimaryCtxRetain", &cu.retain},
    {"cuCtxSetCurrent", &cu.current},
    {"cuModuleLoadData", &cu.load},
    {"cuModuleGetFunction", &cu.function},
    {"cuCtxSynchronize", &cu.synchronize},
};

static void *open_library(const char *path, int scope) {
    void *library = dlopen(path, RTLD_NOW | scope);
    if (!library) {
        fprintf(stderr, "forks: %s\n", dlerror());
        exit(2);
    }
    return library;
}

static void must(const char *what, int code) {
    if (code != 0) {
        fprintf(stderr, "forks: %s: error %d\n", what, code);
        exit(2);
    }
}

static void start_cuda(const char *big) {
    void *driver = open_library("libcuda.so.1", RTLD_GLOBAL), *module;
    int device;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *address = dlsym(driver, calls[i].name);
        must(calls[i].name, address ? 0 : -1);
        memcpy(calls[i].slot, &address, sizeof address);
    }
    launch = dlsym(open_library(big, RTLD_LOCAL), "harmless_launch");
    must("harmless_launch", launch ? 0 : -1);
    must("cuInit", cu.init(0));
    must("cuDeviceGet", cu.device(&device, 0));
    must("cuDevicePrimaryCtxRetain", cu.retain(&context, device));
    must("cuCtxSetCurrent", cu.current(context));
    must("cuModuleLoadData", cu.load(&module, ptx));
    must("cuModuleGetFunction", cu.function(&kernel, module, "nothing"));
}

static void *launch_loop(void *unused) {
    (void)unused;
    int code = cu.current(context);
    while (!atomic_load(&done) && code == 0) {
        for (int i = 0; i < 200 && code == 0; i++)
            code = (*(launch_call volatile *)launch)(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        if (code == 0)
            code = cu.synchronize();
    }
    atomic_store(&failed, code);
    return NULL;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct child {
    pid_t pid;
    double deadline_s;
};

/* Take the children that have ended, and end those that are late. Returns how many are left. */
static int look(struct child *child, int count, int *hung, int *wrong) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        int status = 0;
        if (child[i].pid == 0)
            continue;
        if (waitpid(child[i].pid, &status, WNOHANG) == child[i].pid) {
            *wrong += status != 0;
            child[i].pid = 0;
        } else if (now_s() > child[i].deadline_s) {
            kill(child[i].pid, SIGKILL);
            waitpid(child[i].pid, &status, 0);
            child[i].pid = 0;
            ++*hung;
        } else {
            left++;
        }
    }
    return left;
}

int main(int argc, char **argv) {
    int count = argc > 3 ? atoi(argv[1]) : 0, hung = 0, wrong = 0;
    double limit_s = argc > 4 ? atof(argv[4]) : 20;
    if (count < 1 || count > CHILDREN_MAX || limit_s <= 0) {
        fprintf(stderr, "usage: forks CHILDREN BIG.so SMALL.so [LIMIT_S]\n");
        return 2;
    }
    struct child *child = calloc((size_t)count, sizeof *child);
    pthread_t thread;
    start_cuda(argv[2]);
    must("pthread_create", pthread_create(&thread, NULL, launch_loop, NULL));
    sleep(1); /* a tracer that attaches late is there by now */
    for (int i = 0; i < count; i++) {
        if (i % LOAD_EVERY == 0)
            dlclose(open_library(argv[3], RTLD_LOCAL));
        pid_t pid = fork();
        if (pid == 0)
            _exit(dlopen(argv[3], RTLD_NOW | RTLD_LOCAL) ? 0 : 3);
        must("fork", pid < 0);
        child[i] = (struct child){pid, now_s() + limit_s};
        usleep(PAUSE_US);
        look(child, i + 1, &hung, &wrong);
    }
    while (look(child, count, &hung, &wrong) > 0)
        usleep(PAUSE_US);
    atomic_store(&done, true);
    pthread_join(thread, NULL);
    must("launch", atomic_load(&failed));
    printf("hung %d of %d\n", hung, count);
    if (wrong)
        printf("ended wrongly: %d\n", wrong);
    free(child);
    return hung > 0 || wrong > 0;
}
