/* A bounded queue of records in chunks. When it is full the oldest chunk is dropped and its records are counted. Not
 * thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_QUEUE_CHUNK_BYTES 65536
#define HEC_QUEUE_RECORD_BYTES 36864 /* largest record */

struct hec_chunk;

struct hec_queue {
    struct hec_chunk *first, *last;
    int chunks, chunks_max;
    int64_t dropped; /* records, since the start */
};

struct hec_queue_item {
    int type;
    size_t length;
    const void *data; /* aligned to 8 */
};

struct hec_queue_cursor {
    const struct hec_chunk *chunk;
    size_t at;
};

void hec_queue_init(struct hec_queue *queue, size_t maximum_bytes);
void hec_queue_clear(struct hec_queue *queue); /* frees; what it held is not counted as dropped */

/* Append head and tail as one record. What does not fit or cannot be allocated is dropped and counted. */
void hec_queue_push(struct hec_queue *queue, int type, const void *head, size_t head_length, const void *tail,
                    size_t tail_length);

/* Move all records of from to the empty queue to. */
void hec_queue_move(struct hec_queue *to, struct hec_queue *from);

int64_t hec_queue_count(const struct hec_queue *queue);

void hec_queue_begin(const struct hec_queue *queue, struct hec_queue_cursor *cursor);
bool hec_queue_next(struct hec_queue_cursor *cursor, struct hec_queue_item *item);
