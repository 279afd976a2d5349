/* Numbers in what the command prints: of a file that it writes, or of the copy that launch/printed.h makes of a pipe. */
#include "base/clock.h"
#include "model/printed.h"
#include "observe/collector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERIOD_NS (50 * HEC_NS_PER_MS)
#define APART_NS 1000 /* of lines that were read at once, so that each has a time of its own */
#define READ_BYTES 65536
#define READS_MAX 256 /* at once: 16 MiB; the rest is read next time */

struct stream {
    struct hec_observe_printed from;
    char line[HEC_PRINTED_LINE];
    size_t length;
    bool broken; /* holds a NUL: lines were lost there */
};

struct printed {
    const struct hec_sink *sink;
    struct hec_printed_matcher matcher[HEC_PRINTED_MAX];
    int count;
    struct stream stream[HEC_OBSERVE_PRINTED_MAX];
    int streams;
    int64_t last_ns;
    char bytes[READ_BYTES];
};

static void printed_close(void *to) {
    struct printed *self = to;
    for (int i = 0; i < self->count; i++)
        hec_printed_release(&self->matcher[i]);
    free(self);
}

static int printed_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **to,
                        struct hec_why *why) {
    struct printed *self = calloc(1, sizeof *self);
    int err = HEC_OK;
    if (!self)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the command's lines");
    self->sink = sink;
    for (int i = 0; i < options->printed_unit_count && err == HEC_OK; i++, self->count++)
        err = hec_printed_compile(&options->printed_units[i], &self->matcher[i], why);
    for (; self->streams < options->printed_count; self->streams++)
        self->stream[self->streams].from = options->printed[self->streams];
    if (err == HEC_OK)
        *to = self;
    else
        printed_close(self);
    return err;
}

static void end_line(struct printed *self, struct stream *stream, int64_t now_ns) {
    stream->line[stream->length < sizeof stream->line ? stream->length : sizeof stream->line - 1] = '\0';
    for (int i = 0; i < self->count && stream->length && !stream->broken; i++) {
        double number;
        if (!hec_printed_match(&self->matcher[i], stream->line, &number))
            continue;
        self->last_ns = now_ns > self->last_ns + APART_NS ? now_ns : self->last_ns + APART_NS;
        self->sink->sample(self->sink->context, HEC_PRINTED, i, self->last_ns, llround(number * HEC_PRINTED_PER_UNIT));
    }
    stream->length = 0;
    stream->broken = false;
}

/* A bar that is drawn anew begins with a carriage return. */
static void take(struct printed *self, struct stream *stream, size_t count, int64_t now_ns) {
    for (size_t i = 0; i < count; i++) {
        char c = self->bytes[i];
        if (c == '\n' || c == '\r') {
            end_line(self, stream, now_ns);
            continue;
        }
        stream->broken |= c == '\0';
        if (stream->length < sizeof stream->line - 1)
            stream->line[stream->length++] = c;
    }
}

static ssize_t read_some(struct printed *self, struct stream *stream) {
    struct stat status;
    if (!stream->from.file)
        return read(stream->from.fd, self->bytes, sizeof self->bytes);
    if (fstat(stream->from.fd, &status) == 0 && status.st_size < stream->from.offset)
        stream->from.offset = 0; /* it was cut, by the program or by what rotates it */
    ssize_t got = pread(stream->from.fd, self->bytes, sizeof self->bytes, stream->from.offset);
    stream->from.offset += got > 0 ? got : 0;
    return got;
}

static int64_t printed_poll(void *to, int64_t now_ns) {
    struct printed *self = to;
    for (int i = 0; i < self->streams; i++) {
        ssize_t got = 1;
        for (int reads = 0; reads < READS_MAX && got > 0; reads++)
            if ((got = read_some(self, &self->stream[i])) > 0)
                take(self, &self->stream[i], (size_t)got, now_ns);
    }
    return self->streams ? now_ns + PERIOD_NS : INT64_MAX;
}

static void printed_finish(void *to, int64_t end_ns) {
    struct printed *self = to;
    printed_poll(self, end_ns);
    for (int i = 0; i < self->streams; i++)
        end_line(self, &self->stream[i], end_ns);
}

const struct hec_collector hec_collector_printed = {
    .name = "printed",
    .lane = HEC_LANE_HOST,
    .open = printed_open,
    .poll = printed_poll,
    .finish = printed_finish,
    .close = printed_close,
};
