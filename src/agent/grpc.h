/* One call of gRPC over HTTP/2 (nghttp2), without its transport: bytes for the server come out, bytes of the server go in. What a
 * server can make it hold or do is bounded. gRPC's protocol: github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md. */
#ifndef HEC_AGENT_GRPC_H
#define HEC_AGENT_GRPC_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_GRPC_MESSAGE_MAX (4u << 20) /* gRPC's own default */

struct hec_grpc;

/* path: "/package.Service/Method", which outlives the call; the request is an empty message. HEC_ERR_NOMEM. */
int hec_grpc_begin(const char *path, struct hec_grpc **out);
void hec_grpc_end(struct hec_grpc *call); /* NULL is fine */

/* What to send next; 0: nothing at present. Valid until the next call of any function. HEC_ERR_FAILED. */
int64_t hec_grpc_output(struct hec_grpc *call, const uint8_t **bytes);
/* What came. Any error ends the call: HEC_ERR_CORRUPT (not HTTP/2, not gRPC), HEC_ERR_LIMIT, HEC_ERR_FAILED (the server said
 * no), HEC_ERR_NOMEM. */
int hec_grpc_input(struct hec_grpc *call, const uint8_t *bytes, size_t size, struct hec_why *why);

/* The answer is there, and is good. */
bool hec_grpc_done(const struct hec_grpc *call);
const uint8_t *hec_grpc_message(const struct hec_grpc *call, size_t *size);

#endif
