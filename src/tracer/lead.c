#include "tracer/tracer.h"

#define STREAMS 64u

static struct {
    int64_t open_ns;
    uint32_t streams;
    struct {
        uint32_t context, stream;
        int64_t start_ns;
    } first[STREAMS];
} lead;

void hec_lead_reset(int64_t open_ns) {
    lead.open_ns = open_ns;
    lead.streams = 0;
}

void hec_lead_device(uint32_t context, uint32_t stream, int64_t start_ns) {
    uint32_t at = 0;
    while (at < lead.streams && (lead.first[at].context != context || lead.first[at].stream != stream))
        at++;
    if (at == STREAMS || (at < lead.streams && lead.first[at].start_ns <= start_ns))
        return;
    if (at == lead.streams)
        lead.streams++;
    lead.first[at].context = context;
    lead.first[at].stream = stream;
    lead.first[at].start_ns = start_ns;
}

int64_t hec_lead_complete_ns(int64_t limit_ns) {
    int64_t complete = lead.open_ns;
    for (uint32_t i = 0; i < lead.streams; i++)
        if (lead.first[i].start_ns > complete && lead.first[i].start_ns <= limit_ns)
            complete = lead.first[i].start_ns;
    return complete;
}
