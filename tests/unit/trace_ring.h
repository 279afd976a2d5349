/* The tracer's ring in a test of its parts: what they write, read back. */
#pragma once

#include "tracer/tracer.h"
#include "unit.h"

#include <sys/socket.h>
#include <unistd.h>

#define RECORDS_MAX 4096

static struct hec_ring_reader reader;
static struct hec_ring_record records[RECORDS_MAX];
static size_t record_count;

static void read_ring(void) {
    record_count = 0;
    for (size_t got; (got = hec_ring_read(&reader, records + record_count, RECORDS_MAX - record_count)) > 0;)
        record_count += got;
}

static inline const struct hec_ring_record *nth(uint32_t kind, size_t n) {
    for (size_t i = 0; i < record_count; i++)
        if (records[i].kind == kind && n-- == 0)
            return &records[i];
    return NULL;
}

static inline size_t count(uint32_t kind) {
    size_t n = 0;
    for (size_t i = 0; i < record_count; i++)
        n += records[i].kind == kind;
    return n;
}

static inline union hec_trace_payload payload(const struct hec_ring_record *record) {
    union hec_trace_payload u;
    assert_non_null(record);
    memcpy(&u, &record->u, sizeof u);
    return u;
}

/* The whole name with this id, put together. */
static inline const char *name_of(uint32_t id) {
    static char text[8192];
    memset(text, 0, sizeof text);
    for (size_t i = 0; i < record_count; i++)
        if (records[i].kind == HEC_RING_NAME && records[i].u.name.id == id) {
            size_t at = (size_t)records[i].u.name.piece * HEC_RING_NAME_PIECE, left = records[i].u.name.length - at;
            memcpy(text + at, records[i].u.name.text, left < HEC_RING_NAME_PIECE ? left : HEC_RING_NAME_PIECE);
        }
    return text;
}

static void ring_open(void) {
    char path[64];
    int listener, connection = -1, fd;
    struct hec_ring_hello hello;
    snprintf(path, sizeof path, "tracer.%d", (int)getpid());
    assert_int_equal(hec_ring_listen(path, &listener), 0);
    assert_int_equal(hec_intern_open(), 0);
    assert_int_equal(hec_out_open(path, NULL), 0);
    connection = accept4(listener, NULL, NULL, 0);
    assert_true(connection >= 0);
    assert_int_equal(hec_ring_receive(connection, &hello, &fd), 0);
    assert_int_equal(hello.role, HEC_RING_TRACE);
    assert_int_equal(hec_ring_map(fd, &reader), 0);
    close(fd);
    close(connection);
    close(listener);
    unlink(path);
}

static void ring_close(void) {
    hec_ring_close(&reader);
    hec_intern_forget();
    hec_out_forget();
}
