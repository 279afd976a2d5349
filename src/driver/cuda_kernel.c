#include "driver/cuda_kernel.h"

#include <stdint.h>
#include <string.h>

enum form { FMA, MMA, WGMMA };

enum {
    FMA_ACCUMULATORS = 8, /* independent chains: 8 x the 4 cycles of a warp's FMA, with more warps beside it */
    FMA_REPEATS = 32,
    MMA_SETS = 8, /* independent accumulators */
    MMA_A_SETS = 2,
    MMA_B_SETS = 4,
    MMA_REPEATS = 4,
    WGMMA_REGISTERS = 128, /* accumulators of a thread: 64 x 256 over 128 threads */
    WGMMA_REPEATS = 32,    /* in one group: what waiting for the group costs is below 1 % */
    WGMMA_A_BYTES = 64 * 128,
    WGMMA_B_BYTES = 256 * 128,
    CHECK_ITERATIONS = 4, /* fp16 counts exactly to 2048: 4 x FMA_REPEATS = 128 */
};

struct row {
    struct hec_cuda_kernel kernel;
    enum form form;
    const char *ptx, *type, *tail, *operand, *accumulator;
    int a, b, c, bits;
    uint64_t one, base, mask; /* FMA: one, factor, addend */
};

static const struct row rows[] = {
#define HEC_CUDA_FMA(id, least, type, bits, one, factor, addend, lanes)                                                \
    {{HEC_PEAK_##id, "fma", least, 999, 256, 4, 2.0 * (lanes)*FMA_ACCUMULATORS * FMA_REPEATS * 256,                    \
      (double)(lanes)*FMA_ACCUMULATORS * FMA_REPEATS, CHECK_ITERATIONS},                                               \
     FMA,                                                                                                              \
     "6.4",                                                                                                            \
     type,                                                                                                             \
     "",                                                                                                               \
     "",                                                                                                               \
     "",                                                                                                               \
     0,                                                                                                                \
     0,                                                                                                                \
     0,                                                                                                                \
     bits,                                                                                                             \
     one,                                                                                                              \
     factor,                                                                                                           \
     addend},
#define HEC_CUDA_MMA(id, least, most, ptx, type, a, b, c, operand, accumulator, k, flops, one, base, mask)             \
    {{HEC_PEAK_##id, "mma.sync", least, most, 256, (a) > 4 ? 1 : 2 /* registers */,                                    \
      (double)(flops)*MMA_SETS * MMA_REPEATS * 256 / 32, (double)(k) * (c)*MMA_SETS * MMA_REPEATS, CHECK_ITERATIONS},  \
     MMA,                                                                                                              \
     ptx,                                                                                                              \
     type,                                                                                                             \
     "",                                                                                                               \
     operand,                                                                                                          \
     accumulator,                                                                                                      \
     a,                                                                                                                \
     b,                                                                                                                \
     c,                                                                                                                \
     0,                                                                                                                \
     one,                                                                                                              \
     base,                                                                                                             \
     mask},
#define HEC_CUDA_WGMMA(id, ptx, type, tail, k, accumulator, one, base, mask)                                           \
    {{HEC_PEAK_##id, "wgmma", 90, 90, 128, 2, 2.0 * 64 * 256 * (k)*WGMMA_REPEATS,                                      \
      (double)(k)*WGMMA_REGISTERS * WGMMA_REPEATS, CHECK_ITERATIONS},                                                  \
     WGMMA,                                                                                                            \
     ptx,                                                                                                              \
     type,                                                                                                             \
     tail,                                                                                                             \
     "b32",                                                                                                            \
     accumulator,                                                                                                      \
     0,                                                                                                                \
     0,                                                                                                                \
     WGMMA_REGISTERS,                                                                                                  \
     0,                                                                                                                \
     one,                                                                                                              \
     base,                                                                                                             \
     mask},
#include "driver/cuda_kernel.def"
#undef HEC_CUDA_FMA
#undef HEC_CUDA_MMA
#undef HEC_CUDA_WGMMA
};

int hec_cuda_kernel_count(void) {
    return (int)(sizeof rows / sizeof rows[0]);
}

const struct hec_cuda_kernel *hec_cuda_kernel_at(int index) {
    return index >= 0 && index < hec_cuda_kernel_count() ? &rows[index].kernel : NULL;
}

/* Names of the registers: %o out, %n iterations left, %t thread of all, %p random operands are wanted, %h the hash. */
static void begin(const struct row *row, struct hec_buf *out) {
    hec_buf_printf(out, ".version %s\n.target sm_%d%s\n.address_size 64\n", row->ptx, row->kernel.least,
                   row->form == WGMMA ? "a" : "");
    hec_buf_puts(out, ".visible .entry " HEC_CUDA_KERNEL_NAME
                      "(.param .u64 p_out, .param .u32 p_iterations, .param .u32 p_pattern)\n");
    hec_buf_printf(out, ".maxntid %u, 1, 1\n{\n", row->kernel.threads);
    hec_buf_puts(out, ".reg .pred %p, %q, %true;\n"
                      ".reg .b32 %n, %t, %h, %r<8>;\n"
                      ".reg .b64 %o, %at, %end, %began, %ns, %since, %w<8>;\n"
                      ".reg .f64 %sum, %term;\n"
                      "ld.param.u64 %o, [p_out];\ncvta.to.global.u64 %o, %o;\n"
                      "ld.param.u32 %n, [p_iterations];\nld.param.u32 %r0, [p_pattern];\n"
                      "setp.ne.u32 %p, %r0, 0;\nsetp.eq.u32 %true, %r0, %r0;\n"
                      "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
                      "mad.lo.u32 %t, %r1, %r2, %r3;\n"
                      "mad.lo.u32 %h, %t, 747796405, 2891336453;\n");
}

/* The loop's head and foot. */
static void loop(struct hec_buf *out) {
    hec_buf_puts(out, "mov.u64 %since, %globaltimer;\nmov.u64 %began, %clock64;\nLOOP:\n");
}

static void again(struct hec_buf *out) {
    hec_buf_puts(out, "sub.u32 %n, %n, 1;\nsetp.ne.u32 %q, %n, 0;\n@%q bra LOOP;\n"
                      "mov.u64 %end, %clock64;\nmov.u64 %ns, %globaltimer;\nsub.u64 %end, %end, %began;\n"
                      "sub.u64 %ns, %ns, %since;\nmov.f64 %sum, 0d0000000000000000;\n");
}

static void declare_register(struct hec_buf *out, const char *type, const char *name, int index) {
    if (strcmp(type, "f64") == 0)
        hec_buf_printf(out, "add.rn.f64 %%sum, %%sum, %s%d;\n", name, index);
    else
        hec_buf_printf(out, "cvt.%sf64.%s %%term, %s%d;\nadd.rn.f64 %%sum, %%sum, %%term;\n",
                       strcmp(type, "s32") == 0 ? "rn." : "", type, name, index);
}

/* out[t] = sum; the first thread of all also writes its cycles and nanoseconds behind the last sum. */
static void end(struct hec_buf *out) {
    hec_buf_puts(out,
                 "mul.wide.u32 %at, %t, 8;\nadd.u64 %at, %at, %o;\nst.global.f64 [%at], %sum;\n"
                 "setp.ne.u32 %q, %t, 0;\n@%q bra DONE;\n"
                 "mov.u32 %r1, %nctaid.x;\nmul.lo.u32 %r1, %r1, %r2;\nmul.wide.u32 %at, %r1, 8;\n"
                 "add.u64 %at, %at, %o;\nst.global.u64 [%at], %end;\nst.global.u64 [%at+8], %ns;\nDONE:\nret;\n}\n");
}

static void vector(const struct row *row, struct hec_buf *out) {
    const char *type = row->type;
    bool pairs = strcmp(type, "f16x2") == 0;
    hec_buf_printf(out, ".reg .b%d %%x<%d>, %%a, %%b, %%c, %%d;\n.reg .b16 %%g0, %%g1;\n", row->bits, FMA_ACCUMULATORS);
    const struct {
        const char *name;
        uint64_t bits;
    } constants[] = {{"%c", row->one}, {"%a", row->base}, {"%b", row->mask}};
    for (int i = 0; i < 3; i++) {
        hec_buf_printf(out, "mov.b%d %s, 0x%llx;\n", row->bits, constants[i].name,
                       (unsigned long long)constants[i].bits);
    }
    hec_buf_printf(out, "selp.b%d %%a, %%a, %%c, %%p;\nselp.b%d %%b, %%b, %%c, %%p;\n", row->bits, row->bits);
    for (int i = 0; i < FMA_ACCUMULATORS; i++)
        hec_buf_printf(out, "mov.b%d %%x%d, 0;\n", row->bits, i);
    loop(out);
    for (int repeat = 0; repeat < FMA_REPEATS; repeat++)
        for (int i = 0; i < FMA_ACCUMULATORS; i++)
            hec_buf_printf(out, "fma.rn.%s %%x%d, %%x%d, %%a, %%b;\n", type, i, i);
    again(out);
    for (int i = 0; i < FMA_ACCUMULATORS; i++) {
        if (pairs) {
            hec_buf_printf(out, "mov.b32 {%%g0, %%g1}, %%x%d;\n", i);
            declare_register(out, "f16", "%g", 0);
            declare_register(out, "f16", "%g", 1);
        } else {
            declare_register(out, type, "%x", i);
        }
    }
}

/* %r6 = the next operand word: random, or full of ones. */
static void word(const struct row *row, struct hec_buf *out) {
    hec_buf_printf(out,
                   "mad.lo.u32 %%h, %%h, 1664525, 1013904223;\nshr.u32 %%r5, %%h, 15;\nxor.b32 %%r5, %%r5, %%h;\n"
                   "and.b32 %%r6, %%r5, 0x%08x;\nor.b32 %%r6, %%r6, 0x%08x;\nmov.b32 %%r7, 0x%08x;\n"
                   "selp.b32 %%r6, %%r6, %%r7, %%p;\n",
                   (unsigned)row->mask, (unsigned)row->base, (unsigned)row->one);
}

static void operands(const struct row *row, const char *name, int count, struct hec_buf *out) {
    bool wide = strcmp(row->operand, "f64") == 0;
    hec_buf_printf(out, ".reg .%s %s<%d>;\n", row->operand, name, count);
    for (int i = 0; i < count; i++) {
        word(row, out);
        if (wide) /* the low half of a mantissa is random too */
            hec_buf_printf(out, "selp.b32 %%r5, %%r5, 0, %%p;\nmov.b64 %s%d, {%%r5, %%r6};\n", name, i);
        else
            hec_buf_printf(out, "mov.b32 %s%d, %%r6;\n", name, i);
    }
}

static void list(struct hec_buf *out, const char *name, int from, int count) {
    hec_buf_puts(out, "{");
    for (int i = 0; i < count; i++)
        hec_buf_printf(out, "%s%s%d", i ? "," : "", name, from + i);
    hec_buf_puts(out, "}");
}

static void accumulators(const struct row *row, int count, struct hec_buf *out) {
    hec_buf_printf(out, ".reg .%s %%x<%d>;\n", row->accumulator, count);
    const char *zero = strcmp(row->accumulator, "f64") == 0   ? "0d0000000000000000"
                       : strcmp(row->accumulator, "f32") == 0 ? "0f00000000"
                                                              : "0";
    for (int i = 0; i < count; i++)
        hec_buf_printf(out, "mov.%s %%x%d, %s;\n", row->accumulator, i, zero);
}

static void mma(const struct row *row, struct hec_buf *out) {
    operands(row, "%a", row->a * MMA_A_SETS, out);
    operands(row, "%b", row->b * MMA_B_SETS, out);
    accumulators(row, row->c * MMA_SETS, out);
    loop(out);
    for (int repeat = 0; repeat < MMA_REPEATS; repeat++)
        for (int i = 0; i < MMA_SETS; i++) {
            hec_buf_printf(out, "mma.sync.aligned.%s ", row->type);
            list(out, "%x", i * row->c, row->c);
            hec_buf_puts(out, ", ");
            list(out, "%a", i % MMA_A_SETS * row->a, row->a);
            hec_buf_puts(out, ", ");
            list(out, "%b", i % MMA_B_SETS * row->b, row->b);
            hec_buf_puts(out, ", ");
            list(out, "%x", i * row->c, row->c);
            hec_buf_puts(out, ";\n");
        }
    again(out);
    for (int i = 0; i < row->c * MMA_SETS; i++)
        declare_register(out, row->accumulator, "%x", i);
}

/* Both operands lie in shared memory, in rows of 128 bytes with the 128-byte swizzle (a descriptor: address / 16 in bits
 * 0-13, leading offset 1 in 16-29, stride of 8 rows 1024 / 16 in 32-45, swizzle 1 in 62-63); the four steps of 32 bytes
 * along K of a row take turns. What the words mean does not depend on the layout here: all are alike, or all random. */
static void wgmma(const struct row *row, struct hec_buf *out) {
    hec_buf_printf(out, ".shared .align 1024 .b8 tile[%d];\n", WGMMA_A_BYTES + WGMMA_B_BYTES);
    hec_buf_printf(out,
                   "mov.u32 %%r4, tile;\nshl.b32 %%r0, %%r3, 2;\nadd.u32 %%r0, %%r0, %%r4;\nmov.u32 %%r1, %d;\n"
                   "FILL:\n",
                   (WGMMA_A_BYTES + WGMMA_B_BYTES) / 4 / 128);
    word(row, out);
    hec_buf_puts(out, "st.shared.b32 [%r0], %r6;\nadd.u32 %r0, %r0, 512;\nsub.u32 %r1, %r1, 1;\n"
                      "setp.ne.u32 %q, %r1, 0;\n@%q bra FILL;\nfence.proxy.async;\nbar.sync 0;\n");
    hec_buf_printf(out, "shr.u32 %%r4, %%r4, 4;\nand.b32 %%r4, %%r4, 0x3fff;\ncvt.u64.u32 %%w0, %%r4;\n"
                        "or.b64 %%w0, %%w0, 0x4000004000010000;\n");
    for (int step = 1; step < 4; step++)
        hec_buf_printf(out, "add.u64 %%w%d, %%w0, %d;\n", step, step * 32 / 16);
    for (int step = 0; step < 4; step++)
        hec_buf_printf(out, "add.u64 %%w%d, %%w%d, %d;\n", 4 + step, step, WGMMA_A_BYTES / 16);
    accumulators(row, WGMMA_REGISTERS, out);
    loop(out);
    hec_buf_puts(out, "wgmma.fence.sync.aligned;\n");
    for (int i = 0; i < WGMMA_REPEATS; i++) {
        hec_buf_printf(out, "wgmma.mma_async.sync.aligned.%s ", row->type);
        list(out, "%x", 0, WGMMA_REGISTERS);
        hec_buf_printf(out, ", %%w%d, %%w%d, %%true%s;\n", i % 4, 4 + i % 4, row->tail);
    }
    hec_buf_puts(out, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    again(out);
    for (int i = 0; i < WGMMA_REGISTERS; i++)
        declare_register(out, row->accumulator, "%x", i);
}

int hec_cuda_kernel_ptx(int index, struct hec_buf *out) {
    const struct row *row = &rows[index];
    begin(row, out);
    if (row->form == FMA)
        vector(row, out);
    else if (row->form == MMA)
        mma(row, out);
    else
        wgmma(row, out);
    end(out);
    return hec_buf_error(out);
}

#define HEAD(name)                                                                                                     \
    ".visible .entry " name "(.param .u64 p_to, .param .u64 p_from, .param .u32 p_rounds)\n.maxntid 256, 1, 1\n{\n"    \
    ".reg .pred %q;\n.reg .b32 %n, %t, %all, %r<4>, %v<16>;\n.reg .b64 %to, %from, %step, %at, %sum, %word;\n"         \
    ".reg .f64 %result;\n"                                                                                             \
    "ld.param.u64 %to, [p_to];\ncvta.to.global.u64 %to, %to;\n"                                                        \
    "ld.param.u64 %from, [p_from];\ncvta.to.global.u64 %from, %from;\nld.param.u32 %n, [p_rounds];\n"                  \
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %t, %r1, %r2, %r3;\n"             \
    "mov.u32 %all, %nctaid.x;\nmul.wide.u32 %step, %all, 16384;\nmul.wide.u32 %at, %r1, 16384;\n"                      \
    "mul.wide.u32 %word, %r3, 16;\nadd.u64 %at, %at, %word;\nadd.u64 %from, %from, %at;\nmov.u64 %sum, 0;\n"
#define LOAD(at, a, b, c, d) "ld.global.v4.u32 {%v" #a ",%v" #b ",%v" #c ",%v" #d "}, [%from+" #at "];\n"
#define STORE(at, a, b, c, d) "st.global.v4.u32 [%to+" #at "], {%v" #a ",%v" #b ",%v" #c ",%v" #d "};\n"
#define SUM(a, b) "add.u32 %v" #a ", %v" #a ", %v" #b ";\n"
#define LOADS                                                                                                          \
    LOAD(0, 0, 1, 2, 3)                                                                                                \
    LOAD(4096, 4, 5, 6, 7)                                                                                             \
    LOAD(8192, 8, 9, 10, 11)                                                                                           \
    LOAD(12288, 12, 13, 14, 15) "add.u64 %from, %from, %step;\n"
#define AGAIN "sub.u32 %n, %n, 1;\nsetp.ne.u32 %q, %n, 0;\n@%q bra LOOP;\n"

const char hec_cuda_memory_ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
    /* 16 words a round, summed in a tree */
    HEAD(HEC_CUDA_READ_NAME) "LOOP:\n" LOADS SUM(0, 1) SUM(2, 3) SUM(4, 5) SUM(6, 7) SUM(8, 9) SUM(10, 11) SUM(12, 13)
        SUM(14, 15) SUM(0, 2) SUM(4, 6) SUM(8, 10) SUM(12, 14) SUM(0, 4) SUM(8, 12)
            SUM(0, 8) "cvt.u64.u32 %word, %v0;\nadd.u64 %sum, %sum, %word;\n" AGAIN
                      "cvt.rn.f64.u64 %result, %sum;\nmul.wide.u32 %at, %t, 8;\nadd.u64 %to, %to, %at;\n"
                      "st.global.f64 [%to], %result;\nret;\n}\n" HEAD(
                          HEC_CUDA_COPY_NAME) "add.u64 %to, %to, %at;\n"
                                              "LOOP:\n" LOADS STORE(0, 0, 1, 2, 3) STORE(4096, 4, 5, 6,
                                                                                         7) STORE(8192, 8, 9, 10, 11)
                                                  STORE(12288, 12, 13, 14, 15) "add.u64 %to, %to, %step;\n" AGAIN
                                                                               "ret;\n}\n"
                                                                               ".visible .entry " HEC_CUDA_EMPTY_NAME
                                                                               "()\n{\nret;\n}\n";
