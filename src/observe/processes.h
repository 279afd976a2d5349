/* The processes of this run, for collectors that look into them: who finds them is another source. The recorder fills the
 * table with what passes to the sink; any thread may ask. */
#pragma once

#include "model/run.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define HEC_PROCESS_TABLE_MAX 512 /* alive at once; more are not looked into */

/* Whether the stacks of a process are read from outside. */
enum hec_stacks_from { HEC_STACKS_UNKNOWN, HEC_STACKS_OUTSIDE, HEC_STACKS_INSIDE };

struct hec_process_entry {
    int32_t pid, parent;
    int64_t start_ns;
    enum hec_stacks_from stacks;
};

struct hec_process_table {
    pthread_mutex_t lock;
    struct hec_process_entry entry[HEC_PROCESS_TABLE_MAX];
    int count;
    uint64_t version; /* grows with every process that comes or goes */
};

void hec_process_table_init(struct hec_process_table *table);
void hec_process_table_free(struct hec_process_table *table);

/* A process that came, or ended (end_ns >= 0). */
void hec_process_table_add(struct hec_process_table *table, const struct hec_process *process);
/* Copies the entries to out, where the version is not *seen, which becomes it. Their number; -1: nothing has changed. */
int hec_process_table_list(struct hec_process_table *table, uint64_t *seen,
                           struct hec_process_entry out[HEC_PROCESS_TABLE_MAX]);

void hec_process_table_set_stacks(struct hec_process_table *table, int32_t pid, enum hec_stacks_from stacks);
enum hec_stacks_from hec_process_table_stacks(struct hec_process_table *table, int32_t pid);
