#include "store/queue.h"

#include <stdlib.h>
#include <string.h>

struct hec_chunk {
    struct hec_chunk *next;
    size_t used;
    int64_t records;
    _Alignas(8) unsigned char data[HEC_QUEUE_CHUNK_BYTES];
};

struct head {
    uint32_t length; /* of the data, without padding */
    uint32_t type;
};

void hec_queue_init(struct hec_queue *queue, size_t maximum_bytes) {
    memset(queue, 0, sizeof *queue);
    queue->chunks_max = (int)(maximum_bytes / HEC_QUEUE_CHUNK_BYTES);
    if (queue->chunks_max < 2)
        queue->chunks_max = 2;
}

static void remove_first(struct hec_queue *queue) {
    struct hec_chunk *chunk = queue->first;
    queue->first = chunk->next;
    if (!queue->first)
        queue->last = NULL;
    queue->chunks--;
    free(chunk);
}

void hec_queue_clear(struct hec_queue *queue) {
    while (queue->first)
        remove_first(queue);
}

static struct hec_chunk *room(struct hec_queue *queue, size_t need) {
    if (queue->last && HEC_QUEUE_CHUNK_BYTES - queue->last->used >= need)
        return queue->last;
    if (queue->chunks >= queue->chunks_max) {
        queue->dropped += queue->first->records;
        remove_first(queue);
    }
    struct hec_chunk *chunk = malloc(sizeof *chunk);
    if (!chunk)
        return NULL;
    chunk->next = NULL;
    chunk->used = 0;
    chunk->records = 0;
    if (queue->last)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
    queue->chunks++;
    return chunk;
}

void hec_queue_push(struct hec_queue *queue, int type, const void *head, size_t head_length, const void *tail,
                    size_t tail_length) {
    size_t length = head_length + tail_length;
    size_t need = sizeof(struct head) + ((length + 7) & ~(size_t)7);
    struct hec_chunk *chunk = length <= HEC_QUEUE_RECORD_BYTES ? room(queue, need) : NULL;
    if (!chunk) {
        queue->dropped++;
        return;
    }
    struct head h = {(uint32_t)length, (uint32_t)type};
    unsigned char *at = chunk->data + chunk->used;
    memcpy(at, &h, sizeof h);
    memcpy(at + sizeof h, head, head_length);
    if (tail_length)
        memcpy(at + sizeof h + head_length, tail, tail_length);
    chunk->used += need;
    chunk->records++;
}

void hec_queue_move(struct hec_queue *to, struct hec_queue *from) {
    to->first = from->first;
    to->last = from->last;
    to->chunks = from->chunks;
    from->first = from->last = NULL;
    from->chunks = 0;
}

int64_t hec_queue_count(const struct hec_queue *queue) {
    int64_t count = 0;
    for (const struct hec_chunk *chunk = queue->first; chunk; chunk = chunk->next)
        count += chunk->records;
    return count;
}

void hec_queue_begin(const struct hec_queue *queue, struct hec_queue_cursor *cursor) {
    cursor->chunk = queue->first;
    cursor->at = 0;
}

bool hec_queue_next(struct hec_queue_cursor *cursor, struct hec_queue_item *item) {
    while (cursor->chunk && cursor->at >= cursor->chunk->used) {
        cursor->chunk = cursor->chunk->next;
        cursor->at = 0;
    }
    if (!cursor->chunk)
        return false;
    struct head h;
    memcpy(&h, cursor->chunk->data + cursor->at, sizeof h);
    item->type = (int)h.type;
    item->length = h.length;
    item->data = cursor->chunk->data + cursor->at + sizeof h;
    cursor->at += sizeof h + ((h.length + 7) & ~(size_t)7);
    return true;
}
