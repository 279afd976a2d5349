/* Layout: tensors are rearranged for each convolution and back. */
#include "diagnose/rules/compute.h"

#include <math.h>
#include <string.h>

/* Batch normalisation in PyTorch's or cuDNN's NCHW kernels; their NHWC ones say so. */
static bool plain_norm(const char *name) {
    return (strstr(name, "batch_norm") && !strstr(name, "channels_last") && !strstr(name, "nhwc")) ||
           (strstr(name, "bn_") && strstr(name, "NCHW"));
}

bool hec_judge_layout(const struct hec_facts *f, struct hec_finding *out) {
    double layout = f->class_share[HEC_KERNEL_CLASS_LAYOUT], conv = f->class_share[HEC_KERNEL_CLASS_CONV];
    double norm = 0;
    bool images = conv >= HEC_LAYOUT_LEAST_CONV, named = false;
    struct hec_image_layout lies;
    if (!f->device->timeline || !(layout >= (images ? HEC_LAYOUT_LEAST_SHARE : HEC_LAYOUT_LEAST_SHARE_PLAIN)))
        return false;
    hec_image_layout_gather(f, &lies);
    if (images &&
        (hec_image_layout_is_last(&lies) || lies.group_norms >= HEC_LAYOUT_MOST_GROUP_NORMS * lies.convolutions))
        return false;
    for (int i = 0; i < f->device->timeline->row_count; i++) {
        const struct hec_kernel_row *k = &f->device->timeline->rows[i];
        if (k->kernel_class == HEC_KERNEL_CLASS_COMM)
            continue;
        norm += images && plain_norm(k->name) ? k->seconds : 0;
        if (k->kernel_class == HEC_KERNEL_CLASS_LAYOUT && !named) {
            named = true;
            hec_finding_add_of(out, k->name, HEC_FACT(KERNEL, 1e-6 * k->mean_us, (double)k->count));
        }
    }
    norm = f->compute_s > 0 ? norm / f->compute_s : 0;
    double goes = HEC_LAYOUT_GOES * layout + HEC_LAYOUT_NORM_FASTER * norm;
    struct hec_compute c;
    hec_compute_gather(f, &c);
    hec_finding_add(out, HEC_FACT(LAYOUT_CHANGES, layout, conv));
    if (images) {
        out->title = HEC_FACT(LAYOUT_SHARE, layout);
        if (norm > 0)
            hec_finding_add(out, HEC_FACT(BATCH_NORM, norm));
        out->confidence = HEC_LAYOUT_CONFIDENCE;
        hec_compute_save(&c, 1,
                         (struct hec_saving){
                             HEC_LAYOUT_GOES_LOW * layout, goes,
                             fmin(HEC_LAYOUT_MOST, goes + HEC_LAYOUT_CONV_FASTER * conv + HEC_LAYOUT_NORM_MOST * norm)},
                         1 + fmin(HEC_LAYOUT_DENSER_MOST, c.denser - 1) * fmin(1, goes / HEC_LAYOUT_DENSER_AT), out);
        return true;
    }
    out->title = HEC_FACT(TRANSPOSE_SHARE, layout);
    out->lever = HEC_ANSWER(KEEP_ORDER);
    out->confidence = HEC_LAYOUT_CONFIDENCE_PLAIN;
    hec_compute_save(&c, 1, (struct hec_saving){HEC_LAYOUT_PLAIN_LOW * layout, HEC_LAYOUT_PLAIN_GOES * layout, layout},
                     1, out);
    return true;
}
