/* Since when a window is complete. Kinds are attached to an activity when it is launched: what had been queued before
 * the window was opened runs on unseen. The first activity of a stream that is seen tells: when it started well after its
 * launch call had returned, something was before it in the queue, so the stream is complete only from its start on; else
 * the stream was idle. Under hec_out_lock. */
#include "tracer/tracer.h"

#define STREAMS 64u
/* A kernel's record comes up to a queue (1 024 launches) after its call's, and each launch of PyTorch is several calls
 * with numbers of their own. */
#define CALLS 16384u
/* An idle stream starts a kernel 2 to 20 us after the call returned; the queue of a busy one holds milliseconds. */
#define QUEUED_NS (100 * INT64_C(1000))

static struct {
    int64_t open_ns;
    uint32_t streams;
    struct {
        uint32_t context, stream, correlation;
        int64_t start_ns;
        int64_t call_end_ns; /* INT64_MIN: not seen yet */
    } first[STREAMS];
    struct {
        uint32_t correlation;
        int64_t end_ns;
    } calls[CALLS]; /* by correlation */
} lead;

void hec_lead_reset(int64_t open_ns) {
    lead.open_ns = open_ns;
    lead.streams = 0;
    memset(lead.calls, 0, sizeof lead.calls);
}

bool hec_lead_device(uint32_t context, uint32_t stream, uint32_t correlation, int64_t start_ns) {
    int64_t call_end = INT64_MIN;
    if (lead.calls[correlation % CALLS].correlation == correlation)
        call_end = lead.calls[correlation % CALLS].end_ns;
    bool queued = call_end != INT64_MIN && start_ns - call_end > QUEUED_NS;
    uint32_t at = 0;
    while (at < lead.streams && (lead.first[at].context != context || lead.first[at].stream != stream))
        at++;
    if (at == STREAMS || (at < lead.streams && lead.first[at].start_ns <= start_ns))
        return queued;
    if (at == lead.streams)
        lead.streams++;
    lead.first[at].context = context;
    lead.first[at].stream = stream;
    lead.first[at].correlation = correlation;
    lead.first[at].start_ns = start_ns;
    lead.first[at].call_end_ns = call_end;
    return queued;
}

void hec_lead_api(uint32_t correlation, int64_t end_ns) {
    for (uint32_t i = 0; i < lead.streams; i++)
        if (lead.first[i].correlation == correlation)
            lead.first[i].call_end_ns = end_ns;
    lead.calls[correlation % CALLS].correlation = correlation;
    lead.calls[correlation % CALLS].end_ns = end_ns;
}

int64_t hec_lead_complete_ns(int64_t limit_ns) {
    int64_t complete = lead.open_ns;
    for (uint32_t i = 0; i < lead.streams; i++) {
        int64_t start = lead.first[i].start_ns, call_end = lead.first[i].call_end_ns;
        bool queued = call_end == INT64_MIN || start - call_end > QUEUED_NS;
        if (queued && start > complete && start <= limit_ns)
            complete = start;
    }
    return complete;
}
