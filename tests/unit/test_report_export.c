/* Exports: the Perfetto trace is read back by a small reader of protocol buffers, and what nests must nest. */
#include "recorded_run.h"
#include "report/export/export.h"
#include "report/export/proto.h"

static struct {
    unsigned char *data;
    size_t length;
    int calls, fail_at;
} written;

static int keep(void *context, const void *bytes, size_t count) {
    (void)context;
    if (++written.calls == written.fail_at)
        return HEC_ERR_FULL;
    written.data = realloc(written.data, written.length + count + 1);
    memcpy(written.data + written.length, bytes, count);
    written.length += count;
    written.data[written.length] = '\0';
    return 0;
}

static int setup(void **state) {
    (void)state;
    run_begin(10);
    fake_tl_init(&timeline);
    free(written.data);
    memset(&written, 0, sizeof written);
    return 0;
}

/* ---- a reader of protocol buffers ---- */

struct field {
    uint32_t number;
    uint64_t value; /* varint, fixed64 */
    const unsigned char *bytes;
    size_t length;
};

static uint64_t read_varint(const unsigned char **at, const unsigned char *end) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 64);
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static bool next_field(const unsigned char **at, const unsigned char *end, struct field *out) {
    if (*at == end)
        return false;
    uint64_t tag = read_varint(at, end);
    *out = (struct field){.number = (uint32_t)(tag >> 3)};
    if ((tag & 7) == 0) {
        out->value = read_varint(at, end);
    } else if ((tag & 7) == 1) {
        assert_true(end - *at >= 8);
        for (int i = 0; i < 8; i++)
            out->value |= (uint64_t) * (*at)++ << (8 * i);
    } else {
        assert_int_equal(tag & 7, 2);
        out->length = read_varint(at, end);
        assert_true((size_t)(end - *at) >= out->length);
        out->bytes = *at;
        *at += out->length;
    }
    return true;
}

/* ---- what a trace holds ---- */

#define EVENTS 4096
#define ANNOTATIONS 16
static struct event {
    uint64_t t, track, type, name, category, flow;
    double value;
    double annotated[ANNOTATIONS]; /* by iid */
    int order;
} events[EVENTS];
static int event_count;
static struct {
    uint64_t uuid, parent;
    int64_t pid, tid;
    char name[128], unit[16];
} tracks[128];
static int track_count;
static char names[2048][160], annotations[ANNOTATIONS][16];

static void copy_text(char *to, size_t size, const struct field *f) {
    snprintf(to, size, "%.*s", (int)f->length, (const char *)f->bytes);
}

static void read_interned(const struct field *outer) {
    const unsigned char *at = outer->bytes;
    struct field f, g;
    while (next_field(&at, outer->bytes + outer->length, &f)) {
        const unsigned char *inner = f.bytes;
        uint64_t iid = 0;
        while (next_field(&inner, f.bytes + f.length, &g)) {
            if (g.number == INTERNED_IID)
                iid = g.value;
            else if (f.number == INTERNED_NAME) {
                assert_true(iid > 0 && iid < 2048);
                assert_string_equal(names[iid], ""); /* each name once */
                copy_text(names[iid], sizeof names[iid], &g);
            } else if (f.number == INTERNED_ANNOTATION) {
                assert_true(iid > 0 && iid < ANNOTATIONS);
                copy_text(annotations[iid], sizeof annotations[iid], &g);
            }
        }
    }
}

static void read_track(const struct field *outer) {
    const unsigned char *at = outer->bytes;
    struct field f, g;
    assert_true(track_count < 128);
    memset(&tracks[track_count], 0, sizeof tracks[0]);
    while (next_field(&at, outer->bytes + outer->length, &f)) {
        const unsigned char *inner = f.bytes;
        if (f.number == TRACK_UUID)
            tracks[track_count].uuid = f.value;
        else if (f.number == TRACK_PARENT)
            tracks[track_count].parent = f.value;
        else if (f.number == TRACK_NAME)
            copy_text(tracks[track_count].name, sizeof tracks[0].name, &f);
        else
            while (next_field(&inner, f.bytes + f.length, &g)) {
                if (g.number == 1)
                    tracks[track_count].pid = (int64_t)g.value;
                else if (f.number == TRACK_THREAD && g.number == THREAD_TID)
                    tracks[track_count].tid = (int64_t)g.value;
                else if (f.number == TRACK_COUNTER && g.number == COUNTER_UNIT_NAME)
                    copy_text(tracks[track_count].unit, sizeof tracks[0].unit, &g);
                else
                    copy_text(tracks[track_count].name, sizeof tracks[0].name, &g);
            }
    }
    for (int i = 0; i < track_count; i++)
        assert_true(tracks[i].uuid != tracks[track_count].uuid);
    track_count++;
}

static void read_annotation(const struct field *outer, double *annotated) {
    const unsigned char *at = outer->bytes;
    struct field f;
    uint64_t iid = 0;
    while (next_field(&at, outer->bytes + outer->length, &f)) {
        if (f.number == ANNOTATION_NAME_IID) {
            iid = f.value;
            assert_true(iid < ANNOTATIONS && annotations[iid][0]); /* named before its use */
        } else if (f.number == ANNOTATION_DOUBLE) {
            memcpy(&annotated[iid], &f.value, sizeof annotated[iid]);
        }
    }
}

static double annotated(const struct event *e, const char *name) {
    for (int i = 1; i < ANNOTATIONS; i++)
        if (strcmp(annotations[i], name) == 0)
            return e->annotated[i];
    fail_msg("no annotation is called %s", name);
    return 0;
}

static void read_event(const struct field *outer, uint64_t t) {
    const unsigned char *at = outer->bytes;
    struct event *e = &events[event_count];
    struct field f;
    bool known = false;
    *e = (struct event){.t = t, .order = event_count};
    for (int i = 0; i < ANNOTATIONS; i++)
        e->annotated[i] = -1;
    while (next_field(&at, outer->bytes + outer->length, &f)) {
        if (f.number == EVENT_TYPE)
            e->type = f.value;
        else if (f.number == EVENT_TRACK)
            e->track = f.value;
        else if (f.number == EVENT_NAME_IID)
            e->name = f.value;
        else if (f.number == EVENT_CATEGORY_IID)
            e->category = f.value;
        else if (f.number == EVENT_FLOW)
            e->flow = f.value;
        else if (f.number == EVENT_ANNOTATION)
            read_annotation(&f, e->annotated);
        else if (f.number == EVENT_DOUBLE_VALUE)
            memcpy(&e->value, &f.value, sizeof e->value);
    }
    for (int i = 0; i < track_count; i++)
        known |= tracks[i].uuid == e->track;
    assert_true(known); /* described before its use */
    assert_true(++event_count < EVENTS);
}

static void read_trace(void) {
    const unsigned char *at = written.data, *end = written.data + written.length;
    struct field packet, f;
    event_count = track_count = 0;
    memset(names, 0, sizeof names);
    memset(annotations, 0, sizeof annotations);
    while (next_field(&at, end, &packet)) {
        assert_int_equal(packet.number, TRACE_PACKET);
        const unsigned char *inner = packet.bytes;
        uint64_t t = 0;
        while (next_field(&inner, packet.bytes + packet.length, &f)) {
            if (f.number == PACKET_TIMESTAMP)
                t = f.value;
            else if (f.number == PACKET_INTERNED)
                read_interned(&f);
            else if (f.number == PACKET_TRACK)
                read_track(&f);
            else if (f.number == PACKET_EVENT)
                read_event(&f, t);
        }
    }
}

static int by_time(const void *a, const void *b) {
    const struct event *one = a, *other = b;
    if (one->t != other->t)
        return one->t < other->t ? -1 : 1;
    return one->order - other->order;
}

/* What a reader does: sort by time, keep the order of the file among equals, match begins and ends a track. Calls slice
 * for each. */
static void match_slices(void (*slice)(const struct event *begin, uint64_t end, int depth)) {
    qsort(events, (size_t)event_count, sizeof events[0], by_time);
    for (int k = 0; k < track_count; k++) {
        const struct event *stack[64];
        int depth = 0;
        for (int i = 0; i < event_count; i++) {
            if (events[i].track != tracks[k].uuid)
                continue;
            if (events[i].type == EVENT_BEGIN) {
                assert_true(depth < 64);
                stack[depth++] = &events[i];
            } else if (events[i].type == EVENT_END) {
                assert_true(depth > 0);
                depth--;
                slice(stack[depth], events[i].t, depth);
            }
        }
        assert_int_equal(depth, 0);
    }
}

static const char *track_name(uint64_t uuid) {
    for (int i = 0; i < track_count; i++)
        if (tracks[i].uuid == uuid)
            return tracks[i].name;
    return NULL;
}

/* Its rows. */
static const char *export_csv(void) {
    run.input.timeline = timeline.input;
    written.length = 0;
    assert_int_equal(hec_export_csv(&run.input, keep, NULL, NULL), 0);
    return strstr((const char *)written.data, "\r\n") + 2;
}

static void export_perfetto(void) {
    struct hec_why why;
    free(written.data);
    memset(&written, 0, sizeof written);
    run.input.timeline = timeline.input;
    assert_int_equal(hec_export_perfetto(&run.input, keep, NULL, &why), 0);
    read_trace();
}

/* ---- tests ---- */

/* What a slice is to be; bytes, launches and device where `annotates`: -1: it says none. */
struct slice {
    const char *name, *track;
    uint64_t start, end;
    int depth;
    bool annotates;
    double bytes, launches, device;
};
static const struct slice *expected;
static int expected_count, slices_seen;

static void check_slice(const struct event *begin, uint64_t end, int depth) {
    for (const struct slice *s = expected; s < expected + expected_count; s++)
        if (strcmp(names[begin->name], s->name) == 0) {
            assert_string_equal(track_name(begin->track), s->track);
            assert_int_equal(begin->t, s->start);
            assert_int_equal(end, s->end);
            assert_int_equal(depth, s->depth);
            if (s->annotates)
                assert_true(annotated(begin, "bytes") == s->bytes && annotated(begin, "launches") == s->launches &&
                            annotated(begin, "GPU") == s->device);
            slices_seen++;
            return;
        }
    fail_msg("unexpected slice %s", names[begin->name]);
}

/* The trace has these and no other. */
static void assert_slices(const struct slice *list, int count) {
    export_perfetto();
    expected = list;
    expected_count = count;
    slices_seen = 0;
    match_slices(check_slice);
    assert_int_equal(slices_seen, count);
}

TEST(small) {
    static const struct slice slices[] = {
        {"f<float>", "stream 7 (process 10)", 100, 200, 0},
        {"copy host to device (pinned)", "stream 7 (process 10)", 200, 250, 0},
        {"cudaLaunchKernel", "main", 50, 60, 1},
        {"launch", "launches", 50, 58, 0},
        {"forward", "main", 50, 90, 0},
        {"step", "steps", 0, 300, 0},
        {"traced", "traced", 0, 300, 0},
        {"wait (stream)", "main", 90, 260, 0},
        {"train (train.py:42)", "stack", 100, 120, 0},
    };
    struct fake_timeline *t = &timeline;
    uint32_t stream = fake_tl_track(t, HEC_TRACK_STREAM, 10, 0, 7),
             thread = fake_tl_track(t, HEC_TRACK_THREAD, 10, -1, 11);
    uint32_t process = fake_tl_track(t, HEC_TRACK_PROCESS, 10, -1, 0);
    snprintf(t->tracks[thread - 1].name, sizeof t->tracks[0].name, "main");
    snprintf(t->tracks[process - 1].name, sizeof t->tracks[0].name, "python");
    struct hec_activity *a = fake_tl_add(t, HEC_ACTIVITY_KERNEL, stream, 100, 200);
    a->name = fake_tl_kernel(t, "_Z1fIfEvT_", 64);
    fake_tl_launched(a, 50, 58, thread);
    a = fake_tl_add(t, HEC_ACTIVITY_COPY, stream, 200, 250);
    a->from = HEC_MEMORY_PINNED;
    a->to = HEC_MEMORY_DEVICE;
    a = fake_tl_add(t, HEC_ACTIVITY_API, thread, 50, 60); /* the inner of a tie comes first */
    a->name = fake_tl_name(t, "cudaLaunchKernel");
    a->detail = HEC_API_LAUNCH;
    fake_tl_add(t, HEC_ACTIVITY_PHASE, thread, 50, 90)->name = fake_tl_name(t, "forward");
    fake_tl_add(t, HEC_ACTIVITY_STEP, process, 0, 300)->detail = HEC_STEP_MARKED;
    fake_tl_add(t, HEC_ACTIVITY_WINDOW, process, 0, 300);
    fake_tl_add(t, HEC_ACTIVITY_SYNC, thread, 90, 260)->detail = HEC_SYNC_STREAM;
    fake_tl_add(t, HEC_ACTIVITY_STACK, thread, 100, 120)->name = 1;
    a = fake_tl_add(t, HEC_ACTIVITY_VALUE, process, 290, 290);
    a->name = fake_tl_name(t, "loss");
    a->amount = 2.5;
    fake_tl_frame(t, "src/train.py", "train", 42);
    assert_slices(slices, 9);
    uint64_t flow = 0;
    int flows = 0, losses = 0;
    for (int i = 0; i < event_count; i++) {
        if (events[i].flow) {
            assert_true(!flow || flow == events[i].flow);
            flow = events[i].flow;
            flows++;
        }
        if (events[i].type == EVENT_COUNTER) {
            assert_string_equal(track_name(events[i].track), "loss");
            assert_true(events[i].value == 2.5 && events[i].t == 290);
            losses++;
        }
    }
    assert_int_equal(flows, 2);
    assert_int_equal(losses, 1);
    for (int i = 0; i < track_count; i++)
        if (strcmp(tracks[i].name, "main") == 0)
            assert_true(tracks[i].pid == 10 && tracks[i].tid == 11);
}

/* What the host did, without anything of the device: on whole threads, with the device that was current. */
static void calls(struct fake_timeline *t) {
    uint32_t thread = fake_tl_track(t, HEC_TRACK_THREAD, 10, -1, 11);
    snprintf(t->tracks[thread - 1].name, sizeof t->tracks[0].name, "main");
    struct hec_activity *a = fake_tl_add(t, HEC_ACTIVITY_BURST, thread, 100, 200);
    a->amount = 64;
    a->from = 20; /* shares of its time, no kinds of memory */
    a->to = 255;
    a->device = 4;
    a = fake_tl_add(t, HEC_ACTIVITY_API, thread, 300, 340);
    a->name = fake_tl_name(t, "cuMemcpyHtoDAsync_v2");
    a->detail = HEC_API_COPY;
    a->amount = 1048576;
    a->from = HEC_MEMORY_PINNED;
    a->to = HEC_MEMORY_DEVICE;
    a->device = 1;
    a = fake_tl_add(t, HEC_ACTIVITY_API, thread, 350, 360);
    a->name = fake_tl_name(t, "cuMemAlloc_v2");
    a->detail = HEC_API_ALLOC;
    a->amount = 4096;
    a = fake_tl_add(t, HEC_ACTIVITY_API, thread, 370, 380); /* imported: nothing is known of it */
    a->name = fake_tl_name(t, "cudaMemcpyAsync");
    a->detail = HEC_API_COPY;
    a = fake_tl_add(t, HEC_ACTIVITY_SYNC, thread, 400, 450);
    a->detail = HEC_SYNC_EVENT;
    a->device = 2;
    fake_tl_add(t, HEC_ACTIVITY_PHASE, thread, 150, 250)->name = fake_tl_name(t, "forward"); /* begins in the burst */
}

TEST(calls_in_perfetto) {
    static const struct slice slices[] = {
        {"launches", "launches", 100, 200, 0, true, -1, 64, 3},
        {"forward", "main", 150, 250, 0, true, -1, -1, -1},
        {"cuMemcpyHtoDAsync_v2", "main", 300, 340, 0, true, 1048576, -1, 0},
        {"cuMemAlloc_v2", "main", 350, 360, 0, true, 4096, -1, -1},
        {"cudaMemcpyAsync", "main", 370, 380, 0, true, -1, -1, -1},
        {"wait (event)", "main", 400, 450, 0, true, -1, -1, 1},
    };
    calls(&timeline);
    assert_slices(slices, 6);
}

TEST(calls_in_csv) {
    calls(&timeline);
    assert_string_equal(export_csv(),
                        "burst,100,100,3,,10,,11,launches,,,64,launch,,,,,,,,,,,,\r\n"
                        "phase,150,100,,,10,,11,forward,,,,,,,,,,,,,,,,\r\n"
                        "api,300,40,0,,10,,11,cuMemcpyHtoDAsync_v2,,,1048576,bytes,pinned,device,copy,,,,,,,,,\r\n"
                        "api,350,10,,,10,,11,cuMemAlloc_v2,,,4096,bytes,,,alloc,,,,,,,,,\r\n"
                        "api,370,10,,,10,,11,cudaMemcpyAsync,,,,,,,copy,,,,,,,,,\r\n"
                        "sync,400,50,1,,10,,11,wait (event),,,,,,,event,,,,,,,,,\r\n");
}

static uint64_t slice_time;

static void add_up(const struct event *begin, uint64_t end, int depth) {
    (void)depth;
    slice_time += end - begin->t;
    slices_seen++;
}

/* Anything at once on one track: every slice keeps its length, on as many lanes as it takes. */
TEST(overlapping) {
    struct fake_timeline *t = &timeline;
    uint64_t rng = 7, sum = 0;
    int launches = 0;
    uint32_t id[3] = {fake_tl_track(t, HEC_TRACK_STREAM, 10, 0, 7), fake_tl_track(t, HEC_TRACK_THREAD, 10, -1, 11),
                      fake_tl_track(t, HEC_TRACK_THREAD, 10, -1, 12)};
    uint32_t k = fake_tl_kernel(t, "k", 64), r = fake_tl_name(t, "range");
    for (int i = 0; i < 500; i++) {
        rng = rng * 6364136223846793005u + 1442695040888963407u;
        int64_t start = 100 + (int64_t)(rng >> 40) % 3000, length = (int64_t)(rng >> 20) % 20;
        uint32_t on = (uint32_t)(rng >> 60) % 3;
        struct hec_activity *a =
            fake_tl_add(t, on ? HEC_ACTIVITY_RANGE : HEC_ACTIVITY_KERNEL, id[on], start, start + length);
        a->name = on ? r : k;
        sum += (uint64_t)length;
        if (!on) { /* launched in another order than run */
            int64_t launch = start - (int64_t)(rng >> 10) % 100;
            fake_tl_launched(a, launch, launch + 2, id[1]);
            sum += 2;
            launches++;
        }
    }
    export_perfetto();
    slice_time = 0;
    slices_seen = 0;
    match_slices(add_up);
    assert_int_equal(slices_seen, 500 + launches);
    assert_int_equal(slice_time, sum);
}

/* Two ranks with one pid are two processes. */
TEST(ranks) {
    struct fake_timeline *t = &timeline;
    for (int rank = 0; rank < 2; rank++) {
        uint32_t thread = fake_tl_track(t, HEC_TRACK_THREAD, 99, -1, 99);
        t->tracks[thread - 1].rank = rank;
        fake_tl_add(t, HEC_ACTIVITY_RANGE, thread, 10, 20)->name = fake_tl_name(t, "work");
    }
    export_perfetto();
    assert_int_equal(track_count, 4); /* two processes, two threads */
    int64_t pids[2] = {0, 0};
    for (int i = 0, n = 0; i < track_count; i++)
        if (tracks[i].tid)
            pids[n++] = tracks[i].pid;
    assert_true(pids[0] > 0 && pids[1] > 0 && pids[0] != pids[1]);
}

TEST(counters) {
    int power = 0, last = -1;
    run.devices[run.device_count++] = fake_device(0);
    fake_add(&run, HEC_GPU_POWER, 0, -0.02, 90000);
    fake_add(&run, HEC_GPU_POWER, 0, 0.02, 100000);
    fake_add(&run, HEC_GPU_POWER, 0, 0.04, 200000);
    fake_add(&run, HEC_GPU_POWER, 0, 0.06, 300000);
    run.series[0].valid[2] = 0;
    fake_add(&run, HEC_GPU_MEM_USED, 0, 1, 2048);
    export_perfetto();
    for (int i = 0; i < event_count; i++) {
        assert_int_equal(events[i].type, EVENT_COUNTER);
        if (strcmp(track_name(events[i].track), "power") == 0) {
            power++;
            last = i;
        } else {
            assert_string_equal(track_name(events[i].track), "memory used");
            assert_true(events[i].value == 2048.0 * 1024);
        }
    }
    /* a mean is of the time before its reading; what is missing is not there, and nothing is before the run */
    assert_int_equal(power, 1);
    assert_true(events[last].t == 40000000 && events[last].value == 300);
    assert_int_equal(event_count, 2);

    /* in rows it is there, without an amount */
    assert_string_equal(export_csv(), "reading,-20000000,,0,,,,,power,,,90,W,,,,,,,,,,,,\r\n"
                                      "reading,-20000000,40000000,0,,,,,power,,,100,W,,,,,,,,,,,,\r\n"
                                      "reading,20000000,20000000,0,,,,,power,,,,W,,,,,,,,,,,,\r\n"
                                      "reading,40000000,20000000,0,,,,,power,,,300,W,,,,,,,,,,,,\r\n"
                                      "reading,1000000000,,0,,,,,memory used,,,2097152,B,,,,,,,,,,,,\r\n");
}

TEST(empty_and_failing) {
    struct hec_why why;
    struct hec_summary_input nothing = {0};
    assert_int_equal(hec_export_perfetto(&nothing, keep, NULL, &why), 0);
    assert_int_equal(hec_export_csv(&nothing, keep, NULL, &why), 0);
    uint32_t stream = fake_tl_track(&timeline, HEC_TRACK_STREAM, 10, 0, 7), k = fake_tl_kernel(&timeline, "k", 64);
    for (int i = 0; i < 5000; i++)
        fake_tl_add(&timeline, HEC_ACTIVITY_KERNEL, stream, i * 10, i * 10 + 5)->name = k;
    run.input.timeline = timeline.input;
    for (int at = 1; at <= 2; at++) {
        written.calls = 0;
        written.fail_at = at;
        assert_int_equal(hec_export_perfetto(&run.input, keep, NULL, &why), HEC_ERR_FULL);
        written.calls = 0;
        assert_int_equal(hec_export_csv(&run.input, keep, NULL, &why), HEC_ERR_FULL);
    }
    written.fail_at = 0;
    timeline.passes = 0;
    timeline.fail_pass = 1;
    assert_int_equal(hec_export_csv(&run.input, keep, NULL, &why), HEC_ERR_CORRUPT);
    timeline.passes = 0;
    assert_int_equal(hec_export_perfetto(&run.input, keep, NULL, &why), HEC_ERR_CORRUPT);
}

TEST(csv) {
    struct fake_timeline *t = &timeline;
    uint32_t stream = fake_tl_track(t, HEC_TRACK_STREAM, 10, 2, 7),
             thread = fake_tl_track(t, HEC_TRACK_THREAD, 10, -1, 11);
    t->tracks[thread - 1].rank = 3;
    struct hec_activity *a = fake_tl_add(t, HEC_ACTIVITY_KERNEL, stream, 100, 250);
    a->name = fake_tl_kernel(t, "_Z1fIfLi4EEvT_", 64);
    a->launch_ns = 50;
    a = fake_tl_copy(t, stream, 300, 310, 1048576, HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE);
    fake_tl_add(t, HEC_ACTIVITY_RANGE, thread, 400, 410)->name = fake_tl_name(t, "say \"hi\", twice\nor so");
    const char *rows = export_csv();
    assert_memory_equal(written.data, "kind,start_ns,duration_ns,device,", 33);
    /* a device's streams have the rank of the process that uses them */
    assert_string_equal(rows, "kernel,100,150,2,7,10,3,,\"f<float, 4>\",50,,,,,,,128,1,1,64,1,1,32,0,0\r\n"
                              "copy,300,10,2,7,10,3,,copy host to device (pageable),,,1048576,bytes,pageable,device,,"
                              ",,,,,,,,\r\n"
                              "range,400,10,,,10,3,11,\"say \"\"hi\"\", twice?or so\",,,,,,,,,,,,,,,,\r\n");
}

/* No spreadsheet computes what a program calls itself. */
TEST(formulas_in_csv) {
    static const char *const formulas[] = {"=1",      "+1",       "-1",       "@A",        " =1",      "\"=1",
                                           "'=1",     "  \"+1",   "\uff1d1",  "\uff0b1",   "\uff0d1",  "\uff201",
                                           "\u22121", " \u22121", "\u00a0=1", "\u3000 =1", "\u2009'@A"};
    struct fake_timeline *t = &timeline;
    uint32_t thread = fake_tl_track(t, HEC_TRACK_THREAD, 10, -1, 11);
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        fake_tl_add(t, HEC_ACTIVITY_RANGE, thread, 400, 410)->name = fake_tl_name(t, formulas[i]);
    const char *row = export_csv();
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++) {
        assert_int_equal(strncmp(row, "range,400,10,,,10,,11,\"'", 24), 0);
        row = strstr(row, "\r\n") + 2;
    }
}

/* Varints, negative numbers, doubles and messages longer than a byte of length can tell. */
TEST(encoding) {
    struct hec_proto p = {0};
    char text[5000];
    const unsigned char *at;
    struct field f, g;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    size_t outer = hec_proto_begin(&p, 99);
    hec_proto_uint(&p, 1, UINT64_MAX);
    hec_proto_int(&p, 2, -1);
    hec_proto_double(&p, 3, -0.5);
    hec_proto_text(&p, 4, text);
    size_t empty = hec_proto_begin(&p, 5);
    hec_proto_end(&p, empty);
    hec_proto_end(&p, outer);
    at = p.data;
    assert_true(next_field(&at, p.data + p.length, &f));
    assert_int_equal(f.number, 99);
    const unsigned char *inner = f.bytes, *end = f.bytes + f.length;
    assert_true(next_field(&inner, end, &g) && g.value == UINT64_MAX);
    assert_true(next_field(&inner, end, &g) && (int64_t)g.value == -1);
    double value;
    assert_true(next_field(&inner, end, &g));
    memcpy(&value, &g.value, sizeof value);
    assert_true(value == -0.5);
    assert_true(next_field(&inner, end, &g) && g.length == sizeof text - 1);
    assert_true(next_field(&inner, end, &g) && g.number == 5 && g.length == 0);
    assert_false(next_field(&inner, end, &g));
    assert_false(next_field(&at, p.data + p.length, &f));
    hec_proto_free(&p);
}

EACH_TEST(setup, NULL)
