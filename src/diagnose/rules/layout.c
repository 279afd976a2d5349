/* Layout: tensors are rearranged for each convolution and back. */
#include "diagnose/rules/compute.h"

#include <math.h>
#include <string.h>

#define LEAST_SHARE 0.05       /* of compute in layout changes, with convolutions */
#define LEAST_SHARE_PLAIN 0.15 /* the same without */
#define LEAST_CONV 0.02
#define GOES 0.95       /* of the layout changes */
#define NORM_FASTER 0.7 /* of batch normalisation's time on NCHW */
#define DENSER_MOST 0.35
#define DENSER_AT 0.6

static const struct hec_rule_limit limits[] = {
    {100 * LEAST_SHARE, "%", "least share of compute in layout changes, beside convolutions",
     "measured on an H200: a bf16 convolutional net 13 to 19 % in NCHW, 1 % in channels_last"},
    {100 * LEAST_SHARE_PLAIN, "%", "the same in a program without convolutions",
     "transposes around attention are 3 to 8 % in ordinary programs"},
    {100 * NORM_FASTER, "%", "of the time of batch normalisation on NCHW that channels_last saves",
     "measured on an H200: 0.91 s against 0.26 s for the same steps"},
    {100 * LEAST_CONV, "%", "least share of compute in convolutions for that", "ours"},
    {100 * GOES, "%", "of the layout changes that go", "ours"},
    {100 * DENSER_MOST, "%", "more watts of what stays, at most",
     "measured on an H200: 370 W to 500 W where 61 % went; with more changes at once 398 W to 536 W"},
    {100 * DENSER_AT, "%", "of compute that goes where it is so much", "the same"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Keep the model and its images in channels_last; nothing else changes.",
     "model = model.to(memory_format=torch.channels_last)\n"
     "images = images.to(memory_format=torch.channels_last)\n"},
    {"JAX", "XLA chooses the layout itself; give convolutions NHWC dimension numbers.", NULL},
    {"TensorFlow", "Build the model with data_format=\"channels_last\" (the default).", NULL},
};

/* Batch normalisation in PyTorch's or cuDNN's NCHW kernels; their NHWC ones say so. */
static bool plain_norm(const char *name) {
    return (strstr(name, "batch_norm") && !strstr(name, "channels_last") && !strstr(name, "nhwc")) ||
           (strstr(name, "bn_") && strstr(name, "NCHW"));
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    double layout = f->class_share[HEC_KERNEL_CLASS_LAYOUT], conv = f->class_share[HEC_KERNEL_CLASS_CONV];
    double norm = 0;
    bool images = conv >= LEAST_CONV, named = false;
    if (!f->timeline || !(layout >= (images ? LEAST_SHARE : LEAST_SHARE_PLAIN)))
        return false;
    for (int i = 0; i < f->summary->timeline.kernel_count; i++) {
        const struct hec_kernel_row *k = &f->summary->timeline.kernels[i];
        if (k->device != f->device->device.index || k->kernel_class == HEC_KERNEL_CLASS_COMM)
            continue;
        norm += images && plain_norm(k->name) ? k->seconds : 0;
        if (k->kernel_class == HEC_KERNEL_CLASS_LAYOUT && !named) {
            named = true;
            hec_finding_add_of(out, k->name, HEC_FACT(KERNEL, 1e-6 * k->mean_us, (double)k->count));
        }
    }
    norm = f->compute_s > 0 ? norm / f->compute_s : 0;
    double goes = GOES * layout + NORM_FASTER * norm;
    struct hec_compute c;
    hec_compute_gather(f, &c);
    hec_finding_add(out, HEC_FACT(LAYOUT_CHANGES, layout, conv));
    if (images) {
        out->title = HEC_FACT(LAYOUT_SHARE, layout);
        if (norm > 0)
            hec_finding_add(out, HEC_FACT(BATCH_NORM, norm));
        out->confidence = 0.9;
        hec_compute_save(&c, 1, (struct hec_saving){0.6 * layout, goes, fmin(0.95, goes + 0.3 * conv + 0.2 * norm)},
                         1 + fmin(DENSER_MOST, c.denser - 1) * fmin(1, goes / DENSER_AT), out);
        return true;
    }
    out->title = HEC_FACT(TRANSPOSE_SHARE, layout);
    out->lever = HEC_ANSWER(KEEP_ORDER);
    out->confidence = 0.5;
    hec_compute_save(&c, 1, (struct hec_saving){0.2 * layout, 0.6 * layout, layout}, 1, out);
    return true;
}

const struct hec_rule hec_rule_layout = {
    .cause = HEC_CAUSE_LAYOUT,
    .meaning =
        "The fast convolution kernels want channels last (NHWC). Tensors kept in NCHW are transposed before each "
        "convolution and back after it, and normalisation on NCHW is slow as well.",
    .detection = "kernels that only change layouts (nchwToNhwc, transposes), by their names, beside convolutions.",
    .saving =
        "the layout changes go, and so does most of the time of batch normalisation on NCHW; what stays is denser and is "
        "charged with up to 35 % more watts.",
    .lever = HEC_LEVER_CHANNELS_LAST,
    HEC_RULE_TABLES,
    .judge = judge,
};
