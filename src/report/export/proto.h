/* Inside src/report: a writer of protocol buffers (protobuf.dev/programming-guides/encoding), as much as a trace needs. */
#ifndef HEC_REPORT_EXPORT_PROTO_H
#define HEC_REPORT_EXPORT_PROTO_H

#include <stddef.h>
#include <stdint.h>

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

#endif
