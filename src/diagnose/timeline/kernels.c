#include "base/clock.h"
#include "diagnose/timeline/device.h"
#include "diagnose/timeline/kernel_class.h"
#include "diagnose/timeline/occupancy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of all devices together, at most, so that memory has an end for any file: 20 MB, and four times that as JSON. A
 * program has some hundred names of kernels; of a device with more than its part, those of least time are one row. */
#define ROWS_MAX 32768
#define OTHERS "(other kernels)"

/* Of one name: its row, and the configuration that ran most often. */
struct fold {
    int row; /* 0: none yet; else number of the row, from 1 */
    int64_t most;
    double sum_ns;
};

static void start_row(struct hec_kernel_row *row, int device, const char *name, enum hec_kernel_class class) {
    memset(row, 0, sizeof *row);
    row->device = device;
    if (name[0])
        hec_kernel_readable(name, row->name, sizeof row->name);
    else
        snprintf(row->name, sizeof row->name, "(no name)");
    row->kernel_class = class;
    row->precision = hec_kernel_precision_of(name);
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

static uint32_t name_of(const struct hec_timeline_tables *tables, uint32_t kernel) {
    uint32_t name = hec_timeline_kernel_name(tables, kernel);
    return name < tables->name_count ? name : 0;
}

static int largest_number_first(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one < other) - (one > other);
}

/* The time from which on a name has a row of its own, where there are more names than rows. */
static int least_time(const struct fold *folds, size_t fold_count, size_t names, size_t rows, double *least) {
    double *sums = malloc(names * sizeof *sums);
    size_t n = 0;
    if (!sums)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < fold_count; i++)
        if (folds[i].row)
            sums[n++] = folds[i].sum_ns;
    qsort(sums, n, sizeof *sums, largest_number_first);
    *least = sums[rows - 1];
    free(sums);
    return 0;
}

/* Each name that has kernels on this device gets its row; with more than `most` names the last one is *others, else 0. The
 * number of rows, or HEC_ERR_NOMEM. */
static int number_rows(const struct hec_timeline_device *d, const struct hec_timeline_tables *tables, size_t most,
                       struct fold *folds, int *others) {
    size_t names = 0, rows = 0, fold_count = tables->name_count + 1;
    for (uint32_t id = 0; id < d->kernel_count; id++) {
        struct fold *fold = &folds[name_of(tables, id)];
        if (!d->kernels[id].count)
            continue;
        fold->sum_ns += d->kernels[id].sum_ns;
        if (!fold->row)
            fold->row = (int)++names;
    }
    *others = names > most ? (int)most : 0;
    if (names <= most)
        return (int)names;
    double least;
    int err = least_time(folds, fold_count, names, most - 1, &least);
    for (size_t pass = 0; pass < 2 && !err; pass++) /* those above the least, then as many as there is room for */
        for (size_t i = 0; i < fold_count; i++)
            if (folds[i].row && (pass ? folds[i].sum_ns == least : folds[i].sum_ns > least))
                folds[i].row = (int)(rows < most - 1 ? ++rows : most);
    for (size_t i = 0; i < fold_count && !err; i++)
        if (folds[i].row && folds[i].sum_ns < least)
            folds[i].row = (int)most;
    return err ? err : (int)most;
}

int hec_timeline_kernel_rows(const struct hec_timeline_device *d, const struct hec_timeline_tables *tables,
                             const struct hec_device *capability, size_t devices, struct hec_kernel_row **rows,
                             int *count) {
    struct fold *folds = calloc(tables->name_count + 1, sizeof *folds);
    if (!folds)
        return HEC_ERR_NOMEM;
    int others, numbered = number_rows(d, tables, ROWS_MAX / devices, folds, &others);
    if (numbered <= 0) {
        free(folds);
        return numbered;
    }
    size_t names = (size_t)numbered;
    struct hec_kernel_row *grown = realloc(*rows, ((size_t)*count + names) * sizeof *grown);
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
        uint32_t name = name_of(tables, id);
        bool other = folds[name].row == others;
        struct hec_kernel_row *row = &mine[folds[name].row - 1];
        if (!row->count)
            start_row(row, d->device, other ? OTHERS : hec_timeline_name(tables, name),
                      other ? HEC_KERNEL_CLASS_OTHER : hec_timeline_kernel_class(tables, id));
        row->count += k->count;
        row->seconds += k->sum_ns / HEC_NS_PER_S;
        row->bytes += k->bytes;
        row->minimum_us = fmin(row->minimum_us, (double)k->minimum_ns / HEC_NS_PER_US);
        row->maximum_us = fmax(row->maximum_us, (double)k->maximum_ns / HEC_NS_PER_US);
        row->configurations++;
        all_ns += k->sum_ns;
        if (k->count > folds[name].most && id && id < tables->kernel_count && !other) {
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
