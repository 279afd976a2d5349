/* The driver API alone, linked with libcuda: `cuda_driver KERNELS.ptx [SECONDS]`. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT (1 << 16)
#define LAUNCHES 500

static void check(CUresult code, const char *what) {
    if (code != CUDA_SUCCESS) {
        fprintf(stderr, "cuda_driver: %s: error %d\n", what, (int)code);
        exit(2);
    }
}
#define CHECK(call) check((call), #call)

static unsigned values[COUNT];

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) {
        fprintf(stderr, "cuda_driver: cannot read %s\n", path);
        exit(2);
    }
    fclose(file);
    return text;
}

static unsigned round_of(CUfunction kernel, CUdeviceptr memory, CUstream stream) {
    unsigned sum = 0;
    int count = COUNT;
    for (unsigned i = 0; i < COUNT; i++)
        values[i] = i;
    CHECK(cuMemcpyHtoD(memory, values, sizeof values));
    for (unsigned key = 0; key < LAUNCHES; key++) {
        void *parameters[] = {&memory, &count, &key};
        CHECK(cuLaunchKernel(kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
    }
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(values, memory, sizeof values));
    for (unsigned i = 0; i < COUNT; i++)
        sum += values[i] ^ i;
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    char *text = read_text(argv[1]);
    double seconds = argc > 2 ? atof(argv[2]) : 4, start = now_s();
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr memory;
    CUstream stream;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&kernel, module, "mix"));
    CHECK(cuMemAlloc(&memory, sizeof values));
    CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT)); /* it waits for the copy, which may return before its end */
    unsigned first = round_of(kernel, memory, stream);
    while (now_s() - start < seconds)
        if (round_of(kernel, memory, stream) != first)
            check(CUDA_ERROR_UNKNOWN, "a round gave another sum");
    CHECK(cuStreamDestroy(stream));
    CHECK(cuMemFree(memory));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    free(text);
    printf("done cuda_driver %u\n", first);
    return 0;
}
