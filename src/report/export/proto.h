/* Inside src/report: a writer of protocol buffers (protobuf.dev/programming-guides/encoding), as much as a trace needs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* ---- the numbers of Perfetto's fields that are written (perfetto.dev/docs/reference/trace-packet-proto) ---- */

enum trace_field { TRACE_PACKET = 1 };

enum packet_field {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
};
enum packet_flag { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

enum event_field {
    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_DOUBLE_VALUE = 44,
    EVENT_FLOW = 47,
};
enum event_type { EVENT_BEGIN = 1, EVENT_END = 2, EVENT_COUNTER = 4 };

enum track_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
};
enum process_field { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum counter_field { COUNTER_UNIT_NAME = 6 };

enum interned_field {
    INTERNED_CATEGORY = 1,
    INTERNED_NAME = 2,
    INTERNED_ANNOTATION = 3,
    INTERNED_STRING = 29,
    INTERNED_IID = 1,
    INTERNED_TEXT = 2,
};
enum annotation_field { ANNOTATION_NAME_IID = 1, ANNOTATION_DOUBLE = 5, ANNOTATION_STRING_IID = 17 };

/* Messages are built in one growing buffer. After a failed allocation it is broken: later calls do nothing. */
struct hec_proto {
    unsigned char *data; /* malloc'ed */
    size_t length, capacity;
    int error; /* 0 or HEC_ERR_NOMEM */
};

void hec_proto_free(struct hec_proto *proto);

void hec_proto_uint(struct hec_proto *proto, uint32_t field, uint64_t value); /* uint32, uint64, bool, enum, int >= 0 */
void hec_proto_int(struct hec_proto *proto, uint32_t field, int64_t value);   /* int32, int64 */
void hec_proto_fixed64(struct hec_proto *proto, uint32_t field, uint64_t value);
void hec_proto_double(struct hec_proto *proto, uint32_t field, double value);
void hec_proto_text(struct hec_proto *proto, uint32_t field, const char *text);

/* A message inside of a message: what is written until its end belongs to it. Its length is a varint of a fixed four
 * bytes, which every reader takes, so that nothing needs to be moved. Returns what hec_proto_end wants. */
size_t hec_proto_begin(struct hec_proto *proto, uint32_t field);
void hec_proto_end(struct hec_proto *proto, size_t begin);
