/* The bounded queue: what is pushed comes in order with its bytes, whole chunks of the oldest go, and each that goes is counted. */
#include "store/queue.h"
#include "unit.h"

static struct hec_queue queue;

/* Record i, of i % 300 bytes behind its number. */
static void push(int i) {
    unsigned char tail[300];
    memset(tail, i, sizeof tail);
    hec_queue_push(&queue, i % 7, &i, sizeof i, tail, (size_t)(i % 300));
}

static int64_t check(const struct hec_queue *q, int from) {
    struct hec_queue_cursor cursor;
    struct hec_queue_item item;
    int64_t count = 0;
    hec_queue_begin(q, &cursor);
    for (int i = from; hec_queue_next(&cursor, &item); i++, count++) {
        int number;
        assert_int_equal((uintptr_t)item.data % 8, 0);
        memcpy(&number, item.data, sizeof number);
        assert_int_equal(number, i);
        assert_int_equal(item.type, i % 7);
        assert_int_equal(item.length, sizeof i + (size_t)(i % 300));
        for (size_t at = sizeof i; at < item.length; at++)
            assert_int_equal(((const unsigned char *)item.data)[at], i & 0xff);
    }
    assert_false(hec_queue_next(&cursor, &item));
    assert_int_equal(hec_queue_count(q), count);
    return count;
}

TEST(in_order) {
    hec_queue_init(&queue, 100 * HEC_QUEUE_CHUNK_BYTES);
    assert_int_equal(queue.chunks_max, 100);
    assert_int_equal(check(&queue, 0), 0);
    for (int i = 0; i < 3000; i++)
        push(i);
    assert_int_equal(check(&queue, 0), 3000);
    assert_int_equal(queue.dropped, 0);
    assert_true(queue.chunks > 5 && queue.chunks < 10); /* some 480 kB */
    struct hec_queue other;
    hec_queue_init(&other, 0);
    assert_int_equal(other.chunks_max, 2);
    hec_queue_move(&other, &queue);
    assert_int_equal(check(&queue, 0), 0);
    assert_int_equal(queue.chunks, 0);
    assert_int_equal(check(&other, 0), 3000);
    assert_true(other.chunks > 5 && other.last && !queue.first && !queue.last);
    push(0);
    assert_int_equal(check(&queue, 0), 1);
    hec_queue_clear(&other);
    assert_true(other.chunks == 0 && !other.first && !other.last && other.dropped == 0);
    hec_queue_clear(&queue);
    assert_true(queue.chunks == 0 && queue.dropped == 0);
}

/* The oldest chunk goes with all that it holds; one record that is too large goes alone. */
TEST(full) {
    static unsigned char bytes[HEC_QUEUE_RECORD_BYTES + 1];
    hec_queue_init(&queue, 3 * HEC_QUEUE_CHUNK_BYTES - 1);
    assert_int_equal(queue.chunks_max, 2);
    int last = 0;
    for (int i = 0; i < 3000; i++) {
        push(i);
        assert_true(queue.chunks <= 2);
        int64_t kept = hec_queue_count(&queue);
        assert_int_equal(kept + queue.dropped, i + 1);
        last = (int)queue.dropped;
    }
    assert_true(last > 2000);
    assert_int_equal(check(&queue, last), 3000 - last);
    hec_queue_push(&queue, 1, bytes, sizeof bytes, NULL, 0);
    assert_int_equal(queue.dropped, last + 1);
    assert_int_equal(check(&queue, last), 3000 - last);
    hec_queue_clear(&queue);
    assert_int_equal(queue.dropped, last + 1); /* what is cleared is not dropped */
    hec_queue_push(&queue, 1, bytes, sizeof bytes - 1, NULL, 0);
    assert_int_equal(hec_queue_count(&queue), 1);
    hec_queue_clear(&queue);
}

/* A chunk is used to its last byte, and no further. */
TEST(fits_exactly) {
    static unsigned char bytes[32768 - 8];
    hec_queue_init(&queue, 0);
    for (int i = 0; i < 2; i++)
        hec_queue_push(&queue, i, bytes, sizeof bytes, NULL, 0);
    assert_int_equal(queue.chunks, 1);
    hec_queue_push(&queue, 2, bytes, 0, NULL, 0);
    assert_int_equal(queue.chunks, 2);
    assert_int_equal(hec_queue_count(&queue), 3);
    struct hec_queue_cursor cursor;
    struct hec_queue_item item;
    hec_queue_begin(&queue, &cursor);
    for (int i = 0; i < 3; i++) {
        assert_true(hec_queue_next(&cursor, &item));
        assert_int_equal(item.type, i);
        assert_int_equal(item.length, i < 2 ? sizeof bytes : 0);
    }
    assert_false(hec_queue_next(&cursor, &item));
    hec_queue_clear(&queue);
    for (int i = 0; i < 2; i++) /* padded to eight bytes: the second has no room any more */
        hec_queue_push(&queue, i, bytes, sizeof bytes - (i == 0 ? 0 : 1), bytes, i == 0 ? 1 : 0);
    assert_int_equal(queue.chunks, 2);
    hec_queue_clear(&queue);
}
