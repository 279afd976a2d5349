#include "observe/processes.h"

#include <string.h>

void hec_process_table_init(struct hec_process_table *table) {
    memset(table, 0, sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
}

void hec_process_table_free(struct hec_process_table *table) {
    pthread_mutex_destroy(&table->lock);
}

/* count: there is none. The lock is held. */
static int find(const struct hec_process_table *table, int32_t pid) {
    int at = 0;
    while (at < table->count && table->entry[at].pid != pid)
        at++;
    return at;
}

void hec_process_table_add(struct hec_process_table *table, const struct hec_process *process) {
    pthread_mutex_lock(&table->lock);
    int at = find(table, process->pid);
    bool known = at < table->count, same = known && table->entry[at].start_ns == process->start_ns;
    if (process->end_ns >= 0) {
        if (same) {
            table->entry[at] = table->entry[--table->count];
            table->version++;
        }
    } else if (!same && at < HEC_PROCESS_TABLE_MAX) {
        table->entry[at] =
            (struct hec_process_entry){.pid = process->pid, .parent = process->parent, .start_ns = process->start_ns};
        table->count += !known;
        table->version++;
    }
    pthread_mutex_unlock(&table->lock);
}

int hec_process_table_list(struct hec_process_table *table, uint64_t *seen,
                           struct hec_process_entry out[HEC_PROCESS_TABLE_MAX]) {
    pthread_mutex_lock(&table->lock);
    int count = table->version == *seen ? -1 : table->count;
    if (count > 0)
        memcpy(out, table->entry, (size_t)count * sizeof *out);
    *seen = table->version;
    pthread_mutex_unlock(&table->lock);
    return count;
}

void hec_process_table_set_stacks(struct hec_process_table *table, int32_t pid, enum hec_stacks_from stacks) {
    pthread_mutex_lock(&table->lock);
    int at = find(table, pid);
    if (at < table->count)
        table->entry[at].stacks = stacks;
    pthread_mutex_unlock(&table->lock);
}

enum hec_stacks_from hec_process_table_stacks(struct hec_process_table *table, int32_t pid) {
    pthread_mutex_lock(&table->lock);
    int at = find(table, pid);
    enum hec_stacks_from stacks = at < table->count ? table->entry[at].stacks : HEC_STACKS_UNKNOWN;
    pthread_mutex_unlock(&table->lock);
    return stacks;
}
