#include "diagnose/timeline_kernels.h"

#include "base/clock.h"
#include "diagnose/kernel_name.h"
#include "diagnose/occupancy.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one name: its row, and the configuration that ran most often. */
struct fold {
    int row; /* 0: none yet; else number of the row, from 1 */
    int64_t most;
};

static void start_row(struct hec_kernel_row *row, int device, const char *name) {
    memset(row, 0, sizeof *row);
    row->device = device;
    if (name[0])
        hec_kernel_readable(name, row->name, sizeof row->name);
    else
        snprintf(row->name, sizeof row->name, "(no name)");
    row->comm = hec_kernel_communicates(name);
    row->minimum_us = INFINITY;
    row->maximum_us = -INFINITY;
    row->occupancy_limit = NAN;
    for (int i = 0; i < 3; i++) {
        row->grid[i] = -1;
        row->block[i] = -1;
    }
    row->registers = -1;
    row->static_shared_bytes = row->dynamic_shared_bytes = -1;
}

static void configure(struct hec_kernel_row *row, const struct hec_kernel *k, const struct hec_device *capability) {
    memcpy(row->grid, k->grid, sizeof row->grid);
    memcpy(row->block, k->block, sizeof row->block);
    row->registers = k->registers;
    row->static_shared_bytes = k->static_shared_bytes;
    row->dynamic_shared_bytes = k->dynamic_shared_bytes;
    if (!capability)
        return;
    struct hec_occupancy occupancy = hec_occupancy_of(capability->cuda_major, capability->cuda_minor, k);
    row->occupancy_limit = occupancy.limit;
    snprintf(row->occupancy_limiter, sizeof row->occupancy_limiter, "%s", occupancy.limiter);
}

static int largest_first(const void *a, const void *b) {
    const struct hec_kernel_row *one = a, *other = b;
    if (one->seconds != other->seconds)
        return one->seconds > other->seconds ? -1 : 1;
    if (one->count != other->count)
        return one->count > other->count ? -1 : 1;
    return strcmp(one->name, other->name);
}

/* How many names have kernels on this device. */
static size_t count_names(const struct hec_timeline_device *d, const struct hec_timeline_tables *tables,
                          struct fold *folds) {
    size_t names = 0;
    for (uint32_t id = 0; id < d->kernel_count; id++) {
        uint32_t name = hec_timeline_kernel_name(tables, id);
        name = name < tables->name_count ? name : 0;
        if (d->kernels[id].count && !folds[name].row)
            folds[name].row = (int)++names;
    }
    return names;
}

int hec_timeline_kernel_rows(const struct hec_timeline_device *d, const struct hec_timeline_tables *tables,
                             const struct hec_device *capability, struct hec_kernel_row **rows, int *count) {
    struct fold *folds = calloc(tables->name_count + 1, sizeof *folds);
    if (!folds)
        return HEC_ERR_NOMEM;
    size_t names = count_names(d, tables, folds);
    if (!names) {
        free(folds);
        return 0;
    }
    struct hec_kernel_row *grown =
        names < INT_MAX / 2 ? realloc(*rows, ((size_t)*count + names) * sizeof *grown) : NULL;
    if (!grown) {
        free(folds);
        return HEC_ERR_NOMEM;
    }
    *rows = grown;
    struct hec_kernel_row *mine = &grown[*count];
    memset(mine, 0, names * sizeof *mine);
    double all_ns = 0;
    for (uint32_t id = 0; id < d->kernel_count; id++) {
        const struct hec_kernel_count *k = &d->kernels[id];
        if (!k->count)
            continue;
        uint32_t name = hec_timeline_kernel_name(tables, id);
        name = name < tables->name_count ? name : 0;
        struct hec_kernel_row *row = &mine[folds[name].row - 1];
        if (!row->count)
            start_row(row, d->device, hec_timeline_name(tables, name));
        row->count += k->count;
        row->seconds += k->sum_ns / HEC_NS_PER_S;
        row->minimum_us = fmin(row->minimum_us, (double)k->minimum_ns / HEC_NS_PER_US);
        row->maximum_us = fmax(row->maximum_us, (double)k->maximum_ns / HEC_NS_PER_US);
        row->configurations++;
        all_ns += k->sum_ns;
        if (k->count > folds[name].most && id && id < tables->kernel_count) {
            folds[name].most = k->count;
            configure(row, &tables->kernels[id], capability);
        }
    }
    for (size_t i = 0; i < names; i++) {
        mine[i].mean_us = mine[i].seconds * 1e6 / (double)mine[i].count;
        mine[i].share = all_ns > 0 ? mine[i].seconds * HEC_NS_PER_S / all_ns : NAN;
    }
    qsort(mine, names, sizeof *mine, largest_first);
    *count += (int)names;
    free(folds);
    return 0;
}
