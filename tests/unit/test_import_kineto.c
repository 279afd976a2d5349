/* Kineto's events as activities: crafted traces, one question each. */
#include "store/import/words.h"
#include "tests/unit/import_fixture.h"

#include <math.h>

#define KERNEL(ts, dur, correlation)                                                                                   \
    "{'ph':'X','cat':'kernel','name':'gemm','pid':0,'tid':7,'ts':" #ts ",'dur':" #dur                                  \
    ",'args':{'device':0,'context':1,'stream':7,'correlation':" #correlation                                           \
    ",'grid':[8,16,5],'block':[128,1,1],'registers per thread':122,'shared memory':12544}}"
#define LAUNCH(ts, dur, correlation)                                                                                   \
    "{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':42,'tid':43,'ts':" #ts ",'dur':" #dur              \
    ",'args':{'External id':9,'cbid':211,'correlation':" #correlation "}}"

TEST(test_launch_joined_in_either_order) {
    static const char *const orders[] = {LAUNCH(100, 5, 77) "," KERNEL(110, 20, 77),
                                         KERNEL(110, 20, 77) "," LAUNCH(100, 5, 77)};
    for (int i = 0; i < 2; i++) {
        import_events(orders[i]);
        assert_int_equal(kept.activities, 1); /* the launch is part of its kernel */
        const struct hec_activity *a = kept_nth(HEC_ACTIVITY_KERNEL, 0);
        assert_int_equal(a->start_ns, 10000); /* from the launch on, which is the earliest time */
        assert_int_equal(a->end_ns, 30000);
        assert_int_equal(a->launch_ns, 0);
        assert_int_equal(a->launch_end_ns, 5000);
        const struct hec_track *stream = kept_track(a->track), *thread = kept_track(a->launch_track);
        assert_int_equal(stream->kind, HEC_TRACK_STREAM);
        assert_int_equal(stream->stream, 7);
        assert_int_equal(stream->context, 1);
        assert_int_equal(stream->device, 0);
        assert_int_equal(stream->pid, 42);
        assert_int_equal(thread->kind, HEC_TRACK_THREAD);
        assert_int_equal(thread->pid, 42);
        assert_int_equal(thread->stream, 43);
        const struct hec_kernel *kernel = &kept.kernel[a->name - 1];
        assert_string_equal(kept_name(kernel->name), "gemm");
        assert_int_equal(kernel->grid[1], 16);
        assert_int_equal(kernel->block[0], 128);
        assert_int_equal(kernel->registers, 122);
        assert_int_equal(kernel->static_shared_bytes + kernel->dynamic_shared_bytes, 12544);
        assert_int_equal(imported.stats.events, 2);
        assert_int_equal(imported.stats.kept, 2);
        assert_int_equal(imported.stats.origin_ns, 100000);
        assert_int_equal(imported.stats.end_ns, 30000);
    }
}

/* A call that takes no time is one all the same; of two with one id the outer one counts, in either order. */
TEST(test_calls_of_one_id) {
    import_events(LAUNCH(100, 0, 7) "," KERNEL(110, 20, 7));
    assert_true(kept_nth(HEC_ACTIVITY_KERNEL, 0)->launch_ns == 0 &&
                kept_nth(HEC_ACTIVITY_KERNEL, 0)->launch_end_ns == 0);
    static const char *const orders[] = {LAUNCH(100, 9, 7) "," LAUNCH(102, 5, 7) "," KERNEL(110, 20, 7),
                                         LAUNCH(102, 5, 7) "," LAUNCH(100, 9, 7) "," KERNEL(110, 20, 7),
                                         LAUNCH(100, 9, 7) "," LAUNCH(100, 5, 7) "," KERNEL(110, 20, 7)};
    for (int i = 0; i < 3; i++) {
        import_events(orders[i]);
        const struct hec_activity *a = kept_nth(HEC_ACTIVITY_KERNEL, 0);
        assert_true(a->launch_ns == 0 && a->launch_end_ns == 9000);
        assert_int_equal(kept.activities, 1);
    }
}

TEST(test_unjoined) {
    import_events(LAUNCH(100, 5, 1) "," KERNEL(110, 20, 2) "," KERNEL(140, 20, 0));
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 1);
    const struct hec_activity *call = kept_nth(HEC_ACTIVITY_API, 0);
    assert_int_equal(call->detail, HEC_API_LAUNCH);
    assert_string_equal(kept_name(call->name), "cudaLaunchKernel");
    for (int i = 0; i < 2; i++) {
        assert_true(kept_nth(HEC_ACTIVITY_KERNEL, i)->launch_ns == HEC_TIME_UNKNOWN);
        assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, i)->launch_track, 0);
    }
}

/* "External id" is another number space. */
TEST(test_external_id_is_no_correlation) {
    import_events("{'ph':'X','cat':'cuda_runtime','name':'cudaMalloc','pid':1,'tid':1,'ts':1,'dur':1,"
                  "'args':{'External id':5}}," KERNEL(10, 1, 5));
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 1);
    assert_true(kept_nth(HEC_ACTIVITY_KERNEL, 0)->launch_ns == HEC_TIME_UNKNOWN);
}

static void copy_is(const char *name, int from, int to, bool peer) {
    char events[512];
    snprintf(events, sizeof events,
             "{'ph':'X','cat':'gpu_memcpy','name':'%s','pid':0,'tid':7,'ts':1,'dur':2,'args':{"
             "'device':0,'stream':7,'context':1,'bytes':4096,'memory bandwidth (GB/s)': inf}}",
             name);
    import_events(events);
    const struct hec_activity *a = kept_nth(HEC_ACTIVITY_COPY, 0);
    if (a->from != from || a->to != to || !(a->flags & HEC_ACTIVITY_PEER) == peer || a->amount != 4096)
        fail_msg("%s: from %s to %s, flags %d", name, hec_memory_kind_name(a->from), hec_memory_kind_name(a->to),
                 a->flags);
}

TEST(test_copies) {
    copy_is("Memcpy HtoD (Pageable -> Device)", HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, false);
    copy_is("Memcpy HtoD (Pinned -> Device)", HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, false);
    copy_is("Memcpy DtoH (Device -> Pinned)", HEC_MEMORY_DEVICE, HEC_MEMORY_PINNED, false);
    copy_is("Memcpy DtoD (Device -> Device)", HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, false);
    copy_is("Memcpy PtoP (Device -> Device)", HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, true);
    copy_is("Memcpy HtoD (Host -> Device)", HEC_MEMORY_HOST, HEC_MEMORY_DEVICE, false);
    copy_is("Memcpy DtoH", HEC_MEMORY_DEVICE, HEC_MEMORY_HOST, false);
    copy_is("Memcpy HtoA (Pageable -> Array)", HEC_MEMORY_PAGEABLE, HEC_MEMORY_ARRAY, false);
    copy_is("Memcpy HtoD (Unknown -> Device)", HEC_MEMORY_HOST, HEC_MEMORY_DEVICE, false);
    copy_is("Memcpy (", HEC_MEMORY_UNKNOWN, HEC_MEMORY_UNKNOWN, false);
    copy_is("", HEC_MEMORY_UNKNOWN, HEC_MEMORY_UNKNOWN, false);
    import_events("{'ph':'X','cat':'gpu_memset','name':'Memset (Device)','pid':0,'tid':7,'ts':1,"
                  "'dur':2,'args':{'device':0,'stream':7,'bytes':512}}");
    assert_int_equal(kept_nth(HEC_ACTIVITY_MEMSET, 0)->to, HEC_MEMORY_DEVICE);
    assert_int_equal(kept_nth(HEC_ACTIVITY_MEMSET, 0)->from, HEC_MEMORY_UNKNOWN);
    assert_true(kept_nth(HEC_ACTIVITY_MEMSET, 0)->amount == 512);
}

/* ROCm tells the size with the call, not with the copy. */
TEST(test_size_of_the_call) {
    import_events("{'ph':'X','cat':'cuda_runtime','name':'hipMemcpyWithStream','pid':1,'tid':1,'ts':1,'dur':9,"
                  "'args':{'correlation':117,'size':'2560','kind':'1','stream':'0x0'}},"
                  "{'ph':'X','cat':'gpu_memcpy','name':'Memcpy HtoD (Host -> Device)','pid':2,'tid':0,'ts':3,"
                  "'dur':2,'args':{'device':2,'stream':0,'correlation':117,'kind':'HtoD'}},"
                  "{'ph':'X','cat':'gpu_memcpy','name':'Memcpy HtoD (Host -> Device)','pid':2,'tid':0,'ts':7,"
                  "'dur':2,'args':{'device':2,'stream':0,'correlation':118,'kind':'HtoD'}}");
    assert_true(kept_nth(HEC_ACTIVITY_COPY, 0)->amount == 2560);
    assert_true(isnan(kept_nth(HEC_ACTIVITY_COPY, 1)->amount)); /* missing is not zero */
}

TEST(test_sync) {
    import_events("{'ph':'X','cat':'cuda_runtime','name':'cudaDeviceSynchronize','pid':1,'tid':5,'ts':10,'dur':9,"
                  "'args':{'correlation':3}},"
                  "{'ph':'X','cat':'cuda_sync','name':'Context Sync','pid':0,'tid':-1,'ts':11,'dur':7,'args':{"
                  "'cuda_sync_kind':'Context Sync','stream':-1,'correlation':3,'device':0,'context':1}},"
                  "{'ph':'X','cat':'cuda_sync','name':'Stream Wait Event','pid':0,'tid':7,'ts':21,'dur':7,"
                  "'args':{'stream':7,'correlation':4,'device':0}}");
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 1);
    assert_int_equal(kept_nth(HEC_ACTIVITY_API, 0)->detail, HEC_API_SYNC);
    const struct hec_activity *a = kept_nth(HEC_ACTIVITY_SYNC, 0);
    assert_int_equal(a->detail, HEC_SYNC_CONTEXT);
    assert_int_equal(kept_track(a->track)->stream, 5); /* on the thread that waits */
    a = kept_nth(HEC_ACTIVITY_SYNC, 1);
    assert_int_equal(a->detail, HEC_SYNC_STREAM_WAIT);
    assert_int_equal(kept_track(a->track)->kind, HEC_TRACK_THREAD);
    assert_int_equal(kept.devices, 0); /* nothing ran on one */
}

TEST(test_host_events) {
    import_events("{'ph':'X','cat':'user_annotation','name':'ProfilerStep#551','pid':1,'tid':1,'ts':1,'dur':100},"
                  "{'ph':'X','cat':'user_annotation','name':'## forward ##','pid':1,'tid':1,'ts':2,'dur':50},"
                  "{'ph':'X','cat':'gpu_user_annotation','name':'## forward ##','pid':0,'tid':7,'ts':2,'dur':50},"
                  "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':2,'ts':3,'dur':4,"
                  "'args':{'Input Dims':[[1,2],[]],'Call stack':'a;b'}},"
                  "{'ph':'X','cat':'Trace','name':'PyTorch Profiler (0)','pid':'Spans','tid':'x','ts':0,'dur':1000},"
                  "{'ph':'s','cat':'ac2g','name':'ac2g','id':1,'pid':1,'tid':1,'ts':2},"
                  "{'ph':'C','name':'count','pid':1,'tid':1,'ts':2,'args':{'x':1}},"
                  "{'ph':'i','name':'Iteration Start','s':'g','pid':'Traces','tid':'T','ts':1},"
                  "{'ph':'M','name':'process_name','pid':1,'tid':0,'ts':1,'args':{'name':'python3'}},"
                  "{'ph':'M','name':'thread_name','pid':1,'tid':2,'ts':1,'args':{'name':'autograd'}},"
                  "{'ph':'M','name':'thread_sort_index','pid':1,'tid':2,'ts':1,'args':{'sort_index':3}}");
    assert_int_equal(kept.activities, 3);
    const struct hec_activity *step = kept_nth(HEC_ACTIVITY_STEP, 0);
    assert_int_equal(step->detail, HEC_STEP_ANNOTATED);
    assert_true(isnan(step->amount));
    assert_int_equal(kept_track(step->track)->kind, HEC_TRACK_PROCESS);
    assert_string_equal(kept_track(step->track)->name, "python3");
    const struct hec_activity *range = kept_nth(HEC_ACTIVITY_RANGE, 0);
    assert_string_equal(kept_name(range->name), "## forward ##");
    assert_int_equal(range->end_ns - range->start_ns, 50000);
    const struct hec_activity *operation = kept_nth(HEC_ACTIVITY_OPERATOR, 0);
    assert_string_equal(kept_name(operation->name), "aten::mm");
    assert_string_equal(kept_track(operation->track)->name, "autograd");
    assert_int_equal(imported.stats.events, 11);
    assert_int_equal(imported.stats.kept, 3);
    assert_int_equal(imported.stats.skipped, 8);
    assert_int_equal(imported.stats.bad, 0);
}

/* What torch.utils.data puts around a loader's next, in all of its versions; not what a program calls its own ranges. */
TEST(test_loader_is_data) {
    static const char *const events[] = {
        "user_annotation','name':'enumerate(DataLoader)#_SingleProcessDataLoaderIter",
        "user_annotation','name':'enumerate(DataLoader)#_MultiProcessingDataLoaderIter",
        "cpu_op','name':'enumerate(DataLoader)#_MultiProcessingDataLoaderIter"};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        char event[512];
        snprintf(event, sizeof event, "{'ph':'X','cat':'%s.__next__','pid':1,'tid':1,'ts':2,'dur':50}", events[i]);
        import_events(event);
        const struct hec_activity *phase = kept_nth(HEC_ACTIVITY_PHASE, 0);
        assert_string_equal(kept_name(phase->name), "data");
        assert_int_equal(kept_track(phase->track)->kind, HEC_TRACK_THREAD);
        assert_int_equal(phase->end_ns - phase->start_ns, 50000);
    }
    import_events("{'ph':'X','cat':'user_annotation','name':'enumerate(DataLoader)#.__next','pid':1,"
                  "'tid':1,'ts':2,'dur':50}");
    assert_int_equal(kept_count(HEC_ACTIVITY_RANGE), 1);
}

TEST(test_names_of_ranges) {
    static const struct {
        const char *name;
        enum hec_import_range range;
    } rows[] = {
        {"ProfilerStep#7", HEC_IMPORT_RANGE_PROFILER_STEP},
        {"ProfilerStep#", HEC_IMPORT_RANGE_OTHER},
        {"step 7", HEC_IMPORT_RANGE_STEP},
        {"Iteration_7", HEC_IMPORT_RANGE_STEP},
        {"iter: 7", HEC_IMPORT_RANGE_STEP},
        {"train_step 12", HEC_IMPORT_RANGE_STEP},
        {"step", HEC_IMPORT_RANGE_OTHER},
        {"stepper 3", HEC_IMPORT_RANGE_OTHER},
        {"execute_32_context_0_generation_32", HEC_IMPORT_RANGE_STEP},
        {"execute_context_1(512)_generation_0(0)", HEC_IMPORT_RANGE_STEP},
        {"step[DECODE bs=64]", HEC_IMPORT_RANGE_STEP},
        {"enumerate(DataPipe)#Batcher", HEC_IMPORT_RANGE_DATA},
        {"[pl][profile][_TrainingEpochLoop].train_dataloader_next", HEC_IMPORT_RANGE_DATA},
        {"data loading", HEC_IMPORT_RANGE_DATA},
        {"DataLoading", HEC_IMPORT_RANGE_DATA},
        {"data_parallel", HEC_IMPORT_RANGE_OTHER},
        {"aten::data", HEC_IMPORT_RANGE_OTHER},
        {"save_checkpoint", HEC_IMPORT_RANGE_CHECKPOINT},
        {"CheckpointFunction", HEC_IMPORT_RANGE_OTHER},
        {"_compile.compile_inner (dynamo_timed)", HEC_IMPORT_RANGE_COMPILE},
        {"Torch-Compiled Region: 0/0", HEC_IMPORT_RANGE_OTHER},
        {"", HEC_IMPORT_RANGE_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (hec_import_range_of(rows[i].name, strlen(rows[i].name)) != rows[i].range)
            fail_msg("%s", rows[i].name);
}

#define CALL(name, ts, dur, id)                                                                                        \
    "{'ph':'X','cat':'cuda_runtime','name':'" name "','pid':1,'tid':1,'ts':" #ts ",'dur':" #dur                        \
    ",'args':{'correlation':" #id "}}"
#define RAN(device, stream, ts, dur, id)                                                                               \
    "{'ph':'X','cat':'kernel','name':'k','pid':" #device ",'tid':" #stream ",'ts':" #ts ",'dur':" #dur                 \
    ",'args':{'device':" #device ",'stream':" #stream ",'correlation':" #id "}}"

/* What a call launched is a graph's when the call is. */
TEST(test_nodes_of_a_graph) {
    import_events(CALL("cudaGraphLaunch", 1, 5, 1) "," RAN(0, 7, 10, 1, 1) "," RAN(0, 7, 12, 1, 1) "," //
                  CALL("cudaLaunchKernel", 14, 1, 2) "," RAN(0, 7, 16, 1, 2));
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 0)->flags, HEC_ACTIVITY_IN_GRAPH);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 1)->flags, HEC_ACTIVITY_IN_GRAPH);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 2)->flags, 0);
}

/* A stream runs one after the other: what lasts beyond the end of the next is cut. What the next one only overlaps is not, nor
 * what is on another stream, nor the nodes of a graph. */
TEST(test_longer_than_can_be) {
    import_events(RAN(0, 7, 10, 1000, 0) "," RAN(0, 7, 20, 10, 0) "," RAN(0, 7, 40, 15, 0) ","               //
                  RAN(0, 7, 50, 10, 0) "," RAN(0, 8, 5, 1000, 0) "," CALL("cudaGraphLaunch", 1100, 5, 1) "," //
                  RAN(0, 7, 1110, 100, 1) "," RAN(0, 7, 1120, 5, 1));
    static const int64_t durations[] = {10000, 10000, 15000, 10000, 1000000, 100000, 5000};
    for (int i = 0; i < 7; i++) {
        const struct hec_activity *a = kept_nth(HEC_ACTIVITY_KERNEL, i);
        if (a->end_ns - a->start_ns != durations[i])
            fail_msg("kernel %d lasts %lld ns", i, (long long)(a->end_ns - a->start_ns));
    }
    assert_int_equal(imported.stats.cut, 1);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "1 activity of a device lasted beyond"));
}

/* Of two that begin at once the one that is later in the file goes before what follows. */
TEST(test_two_that_begin_at_once) {
    import_events(RAN(0, 7, 10, 1000, 0) "," RAN(0, 7, 10, 5, 0) "," RAN(0, 7, 30, 10, 0));
    assert_int_equal(imported.stats.cut, 0);
    import_events(RAN(0, 7, 10, 5, 0) "," RAN(0, 7, 10, 1000, 0) "," RAN(0, 7, 30, 10, 0));
    assert_int_equal(imported.stats.cut, 1);
}

/* One device is named and one is used: it is that one, whatever its number. Where there are two, the numbers count. */
TEST(test_the_only_device) {
    static const char properties[] = "'deviceProperties':[{'id':0,'name':'AMD Instinct MI300X'}],'traceEvents':[";
    char text[1024];
    snprintf(text, sizeof text, "{%s%s]}", properties, RAN(2, 7, 1, 1, 0));
    assert_int_equal(import_text(text), HEC_OK);
    assert_string_equal(kept.device[0].name, "AMD Instinct MI300X");
    snprintf(text, sizeof text, "{%s%s,%s]}", properties, RAN(2, 7, 1, 1, 0), RAN(0, 7, 1, 1, 0));
    assert_int_equal(import_text(text), HEC_OK);
    assert_string_equal(kept.device[0].name, "");
    assert_string_equal(kept.device[1].name, "AMD Instinct MI300X");
}

/* Streams are of the process of the first thread that the file has, wherever it stands; a process 0 is one too. */
TEST(test_process_of_streams) {
    static const int32_t pids[] = {31, 0, 32};
    import_events(
        KERNEL(100, 5, 1) ",{'ph':'X','cat':'cpu_op','name':'a','pid':31,'tid':1,'ts':1,'dur':7},"
                          "{'ph':'X','cat':'cpu_op','name':'b','pid':0,'tid':1,'ts':2,'dur':7},"
                          "{'ph':'X','cat':'cpu_op','name':'c','pid':32,'tid':1,'ts':3,'dur':7}," KERNEL(200, 5, 2));
    int streams = 0, threads = 0;
    assert_int_equal(kept.activities, 5);
    for (int i = 0; i < kept.activities; i++) {
        const struct hec_track *track = kept_track(kept.activity[i].track);
        if (track->kind == HEC_TRACK_STREAM)
            assert_int_equal(track->pid, 31);
        else
            assert_int_equal(track->pid, pids[threads++]);
        streams += track->kind == HEC_TRACK_STREAM;
    }
    assert_int_equal(streams, 2);
}

TEST(test_no_device) {
    import_events("{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':1,'dur':7},"
                  "{'ph':'X','cat':'mtia_ccp_events','name':'x','pid':1,'tid':1,'ts':1,'dur':7},"
                  "{'ph':'X','cat':'mtia_ccp_events','name':'y','pid':1,'tid':1,'ts':1,'dur':7}");
    assert_string_equal(kept.event[0].text,
                        "the trace holds no activity of a device: no kernel, no copy; not used: 2 of category "
                        "mtia_ccp_events");
}

TEST(test_spellings) {
    import_events("{'ph':'X','cat':'Kernel','name':'k','pid':'0','tid':'7','ts':'1.5','dur':'2'},"
                  "{'ph':'X','cat':'Memcpy','name':'Memcpy DtoD (Device -> Device)','pid':0,'tid':7,'ts':4,'dur':1},"
                  "{'ph':'X','cat':'Memset','name':'Memset (Device)','pid':0,'tid':7,'ts':6,'dur':1},"
                  "{'ph':'X','cat':'Runtime','name':'cudaFree','pid':1,'tid':1,'ts':6,'dur':1},"
                  "{'ph':'X','cat':'Operator','name':'ProfilerStep#1','pid':1,'tid':1,'ts':1,'dur':7}");
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 1);
    assert_int_equal(kept_count(HEC_ACTIVITY_COPY), 1);
    assert_int_equal(kept_count(HEC_ACTIVITY_MEMSET), 1);
    assert_int_equal(kept_nth(HEC_ACTIVITY_API, 0)->detail, HEC_API_FREE);
    assert_int_equal(kept_count(HEC_ACTIVITY_STEP), 1);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 0)->start_ns, 500);
    const struct hec_kernel *kernel = &kept.kernel[0];
    assert_int_equal(kernel->registers, -1);
    assert_int_equal(kernel->grid[0], -1);
    assert_int_equal(kernel->static_shared_bytes, -1);
    assert_int_equal(kernel->dynamic_shared_bytes, -1);
}

TEST(test_begin_end) {
    import_events("{'ph':'B','cat':'cpu_op','name':'outer','pid':1,'tid':1,'ts':1},"
                  "{'ph':'B','cat':'user_annotation','name':'ProfilerStep#1','pid':1,'tid':1,'ts':2},"
                  "{'ph':'B','cat':'cpu_op','name':'other','pid':1,'tid':2,'ts':2},"
                  "{'ph':'E','pid':1,'tid':1,'ts':5},"
                  "{'ph':'E','pid':1,'tid':1,'ts':9},"
                  "{'ph':'E','pid':1,'tid':1,'ts':10}," /* nothing is open */
                  "{'ph':'B','cat':'cpu_op','name':'late','pid':1,'tid':1,'ts':11},"
                  "{'ph':'E','pid':1,'tid':1,'ts':10}"); /* before it began */
    assert_int_equal(kept.activities, 2);
    assert_int_equal(kept_nth(HEC_ACTIVITY_STEP, 0)->start_ns, 1000);
    assert_int_equal(kept_nth(HEC_ACTIVITY_STEP, 0)->end_ns, 4000);
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_OPERATOR, 0)->name), "outer");
    assert_int_equal(kept_nth(HEC_ACTIVITY_OPERATOR, 0)->end_ns, 8000);
    assert_int_equal(imported.stats.bad, 3); /* and "other" never ended */
    import_events("{'ph':'E'},{'ph':'B','cat':'kernel','ts':1},{'ph':'E','pid':1,'tid':1}");
    assert_int_equal(imported.stats.bad, 3);
}

TEST(test_bad_events) {
    import_events(
        KERNEL(10, 5, 1) ",{'ph':'X','cat':'kernel','name':'no ts','pid':0,'tid':7,'dur':1},"
                         "{'ph':'X','cat':'kernel','name':'no dur','pid':0,'tid':7,'ts':1},"
                         "{'ph':'X','cat':'kernel','name':'negative','pid':0,'tid':7,'ts':1,'dur':-1},"
                         "{'ph':'X','cat':'kernel','name':'nan','pid':0,'tid':7,'ts':NaN,'dur':1},"
                         "{'ph':'X','cat':'kernel','name':'inf','pid':0,'tid':7,'ts':1,'dur':Infinity},"
                         "{'ph':'X','cat':'kernel','name':'huge','pid':0,'tid':7,'ts':1e300,'dur':1},"
                         "{'ph':'X','cat':'kernel','name':'late','pid':0,'tid':7,'ts':3999999999999999,'dur':1},"
                         "{'ph':'X','cat':'kernel','name':'zero','pid':0,'tid':7,'ts':0,'dur':1},"
                         "{'ph':'X','cat':'kernel','name':'nowhere','pid':'x','tid':'stream 7','ts':1,'dur':1},"
                         "{'ph':'X','cat':'kernel','name':'device -1','pid':-1,'tid':7,'ts':1,'dur':1},"
                         "{'ph':'X','cat':'cpu_op','name':'no tid','pid':1,'ts':1,'dur':1},"
                         "{'ph':'X','cat':'cpu_op','name':'object','pid':{},'tid':[],'ts':1,'dur':1},"
                         "3, null, 'x', []");
    assert_int_equal(kept.activities, 1);
    assert_int_equal(imported.stats.bad, 16);
    assert_int_equal(imported.stats.events, 17);
}

/* A later key replaces an earlier one, as in Python's json. */
TEST(test_duplicate_keys) {
    import_events("{'ph':'X','cat':'cpu_op','name':'first','name':'second','pid':1,'pid':2,'tid':1,"
                  "'ts':1,'ts':5,'dur':1,'dur':2}");
    const struct hec_activity *a = kept_nth(HEC_ACTIVITY_OPERATOR, 0);
    assert_string_equal(kept_name(a->name), "second");
    assert_int_equal(kept_track(a->track)->pid, 2);
    assert_int_equal(a->end_ns, 2000);
    assert_int_equal(imported.stats.origin_ns, 5000);
}

TEST(test_names_are_cleaned) {
    import_events("{'ph':'X','cat':'cpu_op','name':'a\\u001b[31m\\u0000\xff\xc3\xa9','pid':1,'tid':1,'ts':1,'dur':1}");
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_OPERATOR, 0)->name), "a?[31m??\xc3\xa9");
}

TEST(test_document_in_any_order) {
    assert_int_equal(import_text("{'displayTimeUnit':'ms','traceEvents':[" KERNEL(
                         10.25, 5.5, 1) "],'trace_id':'x','deviceProperties':[3,{'id':0,'name':'NVIDIA H100',"
                                        "'totalGlobalMem':85899345920,'computeMajor':9,'computeMinor':0,'numSms':132}],"
                                        "'baseTimeNanoseconds':1735632360000000000,"
                                        "'distributedInfo':{'backend':'nccl','rank':5,'world_size':8,'pg':[]},"
                                        "'schemaVersion':1}"),
                     HEC_OK);
    assert_int_equal(imported.stats.origin_ns, INT64_C(1735632360000010250));
    assert_int_equal(imported.stats.end_ns, 5500);
    assert_int_equal(kept.devices, 1);
    assert_string_equal(kept.device[0].name, "NVIDIA H100");
    assert_int_equal(kept.device[0].memory_kib, 83886080);
    assert_int_equal(kept.device[0].cuda_major, 9);
    assert_string_equal(kept.device[0].vendor, "nvidia");
    assert_int_equal(kept.device[0].power_limit_mw, -1);
    assert_int_equal(kept_track(1)->rank, 5);
    assert_string_equal(kept_meta("imported"), "kineto");
    assert_string_equal(kept_meta("started"), "2024-12-31T08:06:00.000Z");
    assert_string_equal(kept_meta("duration_ns"), "5500");
    assert_string_equal(kept_meta("complete"), "1");
    assert_string_equal(kept.meta[kept.metas - 1].key, "complete"); /* last of all */
}

TEST(test_bare_array_and_no_wall_clock) {
    assert_int_equal(import_text("[" KERNEL(10, 5, 1) "]"), HEC_OK);
    assert_int_equal(kept.activities, 1);
    assert_null(kept_meta("started"));
    assert_int_equal(kept_track(1)->rank, -1);
}

TEST(test_nothing_to_report) {
    assert_int_equal(import_text("{'traceEvents':[]}"), HEC_OK);
    assert_int_equal(kept.activities + kept.tracks + kept.devices, 0);
    assert_string_equal(kept_meta("duration_ns"), "0");
    assert_int_equal(import_text("[]"), HEC_OK);
    assert_string_equal(kept_meta("complete"), "1");
    import_events("{'ph':'X','cat':'cpu_op','name':'a','pid':1,'tid':1,'ts':1,'dur':1}");
    assert_int_equal(kept.devices, 0);
    assert_int_equal(kept.activities, 1);
}

/* Devices go by the number of the rank, whatever the order of the files; how many ranks the job has is kept. */
TEST(test_ranks_in_any_order) {
    const char *paths[3];
    for (int i = 0; i < 3; i++) {
        char text[2048], name[16];
        snprintf(text, sizeof text,
                 "{'distributedInfo':{'rank':%d,'world_size':4},'traceEvents':[" KERNEL(100, 5, 1) "]}", 2 - i);
        snprintf(name, sizeof name, "%d.json", i);
        paths[i] = strdup(import_write(name, text));
    }
    assert_int_equal(import_files(paths, 3), HEC_OK);
    for (int i = 0; i < 3; i++) {
        const struct hec_track *t = kept_track(kept.activity[i].track);
        assert_int_equal(t->rank, i);
        assert_int_equal(t->device, i);
        free((char *)paths[i]);
    }
    assert_string_equal(kept_meta("python.world_size"), "4");
}

TEST(test_ranks) {
    static const char rank[] =
        "{'distributedInfo':{'rank':%d},'traceEvents':[" KERNEL(100, 5, 1) "," LAUNCH(90, 5, 1) "]}";
    static const char none[] = "{'traceEvents':[" KERNEL(70, 5, 1) "]}";
    char text[2048];
    snprintf(text, sizeof text, rank, 1);
    const char *paths[3];
    paths[0] = strdup(import_write("none.json", none));
    paths[1] = strdup(import_write("one.json", text));
    paths[2] = strdup(import_write("again.json", none));
    assert_int_equal(import_files(paths, 3), HEC_OK);
    assert_int_equal(kept.devices, 3); /* GPU 0 of each rank is another one */
    assert_int_equal(kept.activities, 3);
    static const int ranks[] = {0, 1, 2}; /* the first and the last do not say: those that are free */
    for (int i = 0; i < 3; i++) {
        const struct hec_track *t = kept_track(kept.activity[i].track);
        assert_int_equal(t->rank, ranks[i]);
        assert_int_equal(t->device, i);
        assert_int_equal(kept.activity[i].start_ns, i == 1 ? 30000 : 0); /* one origin for all */
    }
    assert_true(kept.activity[0].launch_ns == HEC_TIME_UNKNOWN); /* no join over files */
    assert_int_equal(kept.activity[1].launch_ns, 20000);
    assert_int_equal(imported.stats.ranks, 3);
    assert_non_null(strstr(kept_meta("command"), "one.json"));
    for (int i = 0; i < 3; i++)
        free((char *)paths[i]);
}

/* More records than the spool keeps in memory, and calls without order. */
TEST(test_many) {
    char *events = malloc(12000 * 512), *at = events;
    for (int i = 0; i < 12000; i++) {
        int k = i < 6000 ? i : 11999 - i; /* kernels forward, then their launches backward */
        at += sprintf(at,
                      i < 6000 ? "%s{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':%d.25,"
                                 "'dur':4,'args':{'correlation':%d}}"
                               : "%s{'ph':'X','cat':'cuda_driver','name':'cuLaunchKernel','pid':1,"
                                 "'tid':1,'ts':%d,'dur':4,'args':{'correlation':%d}}",
                      i ? "," : "", 10 * k + 10, k + 1);
    }
    import_events(events);
    free(events);
    assert_int_equal(kept.activities, 6000);
    for (int i = 0; i < 6000; i++) {
        const struct hec_activity *a = &kept.activity[i];
        assert_int_equal(a->start_ns, 10000 * i + 250);
        assert_int_equal(a->launch_ns, 10000 * i);
    }
}

static void api_is(const char *name, enum hec_api_class expected) {
    char events[256];
    snprintf(events, sizeof events, "{'ph':'X','cat':'cuda_runtime','name':'%s','pid':1,'tid':1,'ts':1,'dur':1}", name);
    import_events(events);
    if (kept_nth(HEC_ACTIVITY_API, 0)->detail != expected)
        fail_msg("%s is %s", name, hec_api_class_name(kept_nth(HEC_ACTIVITY_API, 0)->detail));
}

TEST(test_api_classes) {
    api_is("cudaLaunchKernel", HEC_API_LAUNCH);
    api_is("cudaLaunchKernelExC", HEC_API_LAUNCH);
    api_is("cuLaunchKernelEx", HEC_API_LAUNCH);
    api_is("cudaLaunchHostFunc", HEC_API_OTHER);
    api_is("hipLaunchKernel", HEC_API_LAUNCH);
    api_is("hipExtModuleLaunchKernel", HEC_API_LAUNCH);
    api_is("hipModuleLaunchKernel", HEC_API_LAUNCH);
    api_is("hipMemcpyWithStream", HEC_API_COPY);
    api_is("hipMemcpyAsync", HEC_API_COPY);
    api_is("cudaMemcpyAsync", HEC_API_COPY);
    api_is("cuMemcpyHtoDAsync_v2", HEC_API_COPY);
    api_is("cudaMemsetAsync", HEC_API_MEMSET);
    api_is("cudaStreamSynchronize", HEC_API_SYNC);
    api_is("hipDeviceSynchronize", HEC_API_SYNC);
    api_is("cudaEventSynchronize", HEC_API_SYNC);
    api_is("cudaStreamWaitEvent", HEC_API_OTHER);
    api_is("cudaMalloc", HEC_API_ALLOC);
    api_is("cudaMallocHost", HEC_API_ALLOC);
    api_is("cudaHostAlloc", HEC_API_ALLOC);
    api_is("cuMemCreate", HEC_API_ALLOC);
    api_is("cudaFreeHost", HEC_API_FREE);
    api_is("hipFree", HEC_API_FREE);
    api_is("cudaGraphLaunch", HEC_API_GRAPH);
    api_is("cudaGraphAddKernelNode", HEC_API_OTHER);
    api_is("cuModuleLoadDataEx", HEC_API_MODULE);
    api_is("cudaEventQuery", HEC_API_OTHER);
    api_is("INVALID", HEC_API_OTHER);
    api_is("", HEC_API_OTHER);
}

TEST(test_graph_nodes) {
    import_events("{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':5,'dur':1,'args':{"
                  "'graph id':2,'graph node id':8589934593,'correlation':7}},"
                  "{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':7,'dur':1,'args':{"
                  "'graph node id':0,'correlation':7}},"
                  "{'ph':'X','cat':'cuda_runtime','name':'cudaGraphLaunch','pid':1,'tid':1,'ts':1,"
                  "'dur':3,'args':{'correlation':7}}");
    assert_int_equal(kept.activities, 2); /* one launch for both */
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 0)->flags, HEC_ACTIVITY_IN_GRAPH);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 1)->flags, HEC_ACTIVITY_IN_GRAPH); /* its launch says so */
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 1)->launch_ns, 0);
}

/* What crosses the bus of a rank, by the message, its type, and how many ranks there are. */
TEST(test_bytes_of_collectives) {
    static const struct {
        const char *collective, *element;
        double in, out, ranks, bytes;
    } cases[] = {{"allreduce", "BFloat16", 1000, 1000, 4, 1000 * 2 * 2 * 3.0 / 4},
                 {"_allgather_base", "Float", 100, 800, 8, 800 * 4 * 7.0 / 8},
                 {"_reduce_scatter_base", "Half", 800, 100, 8, 800 * 2 * 7.0 / 8},
                 {"broadcast", "Long", 10, 10, 2, 80},
                 {"allreduce", "Float8_e4m3fn", 8, 8, 2, 8},
                 {"allreduce", "Float", 8, 8, 1, 0},
                 {"allreduce", "", 8, 8, 2, 0},
                 {"barrier", "Float", 8, 8, 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double bytes =
            hec_import_bus_bytes(cases[i].collective, cases[i].element, cases[i].in, cases[i].out, cases[i].ranks);
        assert_true(fabs(bytes - cases[i].bytes) < 1e-9);
    }
}

TEST(test_a_kernel_of_a_communicator) {
    import_events(
        "{'ph':'X','cat':'kernel','name':'ncclDevKernel_AllReduce','pid':0,'tid':7,'ts':1,'dur':2,'args':{'device':0,"
        "'stream':7,'correlation':1,'Collective name':'allreduce','In msg nelems':1000,'Out msg nelems':1000,"
        "'dtype':'Float','Group size':2,'Process Group Name':'3'}}," KERNEL(10, 2, 2));
    const struct hec_activity *reduce = kept_nth(HEC_ACTIVITY_KERNEL, 0), *gemm = kept_nth(HEC_ACTIVITY_KERNEL, 1);
    assert_string_equal(kept_name(kept.kernel[reduce->name - 1].name), "ncclDevKernel_AllReduce [pg 3]");
    assert_true(reduce->amount == 4000 && gemm->amount == 0);
}

/* ---- XLA's profiler: no categories, but names of processes and threads, which come before ---- */

#define NAMED(what, pid, tid, name)                                                                                    \
    "{'ph':'M','name':'" what "','pid':" #pid ",'tid':" #tid ",'args':{'name':'" name "'}},"
#define XLA_NAMES                                                                                                      \
    NAMED("process_name", 1, 0, "/device:GPU:3")                                                                       \
    NAMED("thread_name", 1, 14, "Stream #15(Compute)")                                                                 \
    NAMED("thread_name", 1, 2, "XLA Ops") NAMED("process_name", 7, 0, "/host:CPU") NAMED("process_name", 8, 0, "plugin")
#define XLA(pid, tid, name, ts, args)                                                                                  \
    "{'ph':'X','pid':" #pid ",'tid':" #tid ",'name':'" name "','ts':" #ts ",'dur':1,'args':{" args "}}"

TEST(test_xla) {
    import_events(
        XLA_NAMES XLA(1, 14, "fusion_1", 10,
                      "'correlation_id':'7','kernel_details':'regs:40 static_shared:5 dynamic_shared:16 "
                      "grid:2,3,4 block:128,2,1 occ_pct:12.5'") ","                           //
        XLA(1, 14, "MemcpyH2D", 12, "'bytes':64") "," XLA(1, 14, "memcpy32_post", 14, "") "," //
        XLA(1, 14, "Memset", 16, "") "," XLA(1, 14, "memset_kernel", 18, "") ","              //
        XLA(1, 2, "an operator", 10, "") ","                                                  //
        XLA(7, 1, "cuLaunchKernel (fusion_1)", 5, "'correlation_id':7") ","                   //
        XLA(7, 1, "hipLaunchKernel", 6, "") "," XLA(7, 1, "cumulative", 6, "") ","            //
        XLA(7, 1, "cu", 6, "") "," XLA(7, 1, "$profiler.py:307 trace", 6, "") ","             //
        XLA(7, 1, "train", 7, "'step_num':'4'") "," XLA(
            8, 1, "of no device", 7,
            "") "," //
                "{'ph':'X','pid':-1,'tid':1,'name':'n','ts':7,'dur':1},{'ph':'X','pid':7,'name':'n','ts':7,'dur':1}");
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 1);
    assert_int_equal(kept_count(HEC_ACTIVITY_COPY), 2);
    assert_int_equal(kept_count(HEC_ACTIVITY_MEMSET), 2);
    const struct hec_activity *a = kept_nth(HEC_ACTIVITY_KERNEL, 0);
    const struct hec_kernel *k = &kept.kernel[a->name - 1];
    assert_string_equal(kept_name(k->name), "fusion_1");
    assert_true(k->registers == 40 && k->static_shared_bytes == 21 && k->dynamic_shared_bytes == 0);
    assert_true(k->grid[0] == 2 && k->grid[1] == 3 && k->grid[2] == 4);
    assert_true(k->block[0] == 128 && k->block[1] == 2 && k->block[2] == 1);
    assert_int_equal(a->launch_ns, 0); /* the call before, by its correlation */
    assert_int_equal(kept_track(a->track)->stream, 15);
    assert_int_equal(kept_track(a->track)->kind, HEC_TRACK_STREAM);
    assert_int_equal(kept.devices, 1);
    assert_true(kept_nth(HEC_ACTIVITY_COPY, 0)->amount == 64);
    assert_int_equal(kept_count(HEC_ACTIVITY_API), 1);
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_API, 0)->name), "hipLaunchKernel");
    assert_int_equal(kept_count(HEC_ACTIVITY_RANGE), 2);
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_RANGE, 0)->name), "cumulative");
    assert_string_equal(kept_name(kept_nth(HEC_ACTIVITY_RANGE, 1)->name), "cu");
    assert_int_equal(kept_count(HEC_ACTIVITY_STEP), 1);
    assert_int_equal(kept_nth(HEC_ACTIVITY_STEP, 0)->detail, HEC_STEP_ANNOTATED);
    assert_string_equal(kept_track(kept_nth(HEC_ACTIVITY_STEP, 0)->track)->name, "/host:CPU");
    assert_int_equal(imported.stats.skipped, 5 + 5);
    assert_int_equal(imported.stats.bad, 0);
    assert_string_equal(kept_meta("imported"), "xla");
    /* what has a category is none of XLA's, and neither is a trace in which nothing is used */
    import_events(XLA_NAMES
                  "{'ph':'X','cat':'other','pid':1,'tid':14,'name':'k','ts':1,'dur':1}," XLA(1, 2, "op", 1, ""));
    assert_int_equal(kept.activities, 0);
    assert_string_equal(kept_meta("imported"), "kineto");
}

/* A kernel's configuration as XLA writes it; in any other shape nothing is known. */
TEST(test_kernel_details) {
    static const char *const texts[] = {
        "'regs:1 static_shared:2147483647 dynamic_shared:0 grid:1,1,1 block:1,1,1'", /* no sum that is one */
        "'regs:1 static_shared:-1 dynamic_shared:4 grid:1,1,1 block:1,1,1'",
        "'regs:1 static_shared:2 dynamic_shared:3 grid:1,1 block:1'", "'registers: 5'", "[1]"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char events[600];
        snprintf(events, sizeof events,
                 XLA_NAMES "{'ph':'X','pid':1,'tid':14,'name':'k','ts':1,'dur':1,'args':{'kernel_details':%s}}",
                 texts[i]);
        import_events(events);
        const struct hec_kernel *k = &kept.kernel[kept_nth(HEC_ACTIVITY_KERNEL, 0)->name - 1];
        assert_int_equal(k->registers, i < 2 ? 1 : -1);
        assert_int_equal(k->grid[0], i < 2 ? 1 : -1);
        assert_int_equal(k->static_shared_bytes, -1);
    }
}

/* Arguments of another type than they should be, and more of them than are used. */
TEST(test_odd_arguments) {
    import_events(
        "{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':5,'dur':1,'args':{'grid':7,'block':[1,2,3,4,5],"
        "'registers per thread':'0x20','shared memory':'1e3','device':'0','stream':7.9,'context':{},'bytes':null}},"
        "{'ph':'X','cat':'kernel','name':'l','pid':0,'tid':7,'ts':7,'dur':1,'args':[1,2]},"
        "{'ph':'X','cat':'kernel','name':'m','pid':0,'tid':7,'ts':9,'dur':1,'args':{'block':[1],'grid':['4','x',-1],"
        "'registers per thread':-7,'shared memory':-1}}");
    const struct hec_kernel *k = kept.kernel;
    assert_int_equal(kept.kernels, 3);
    assert_true(k[0].grid[0] == -1 && k[0].block[0] == 1 && k[0].block[1] == 2 && k[0].block[2] == 3);
    assert_true(k[0].registers == 32 && k[0].static_shared_bytes == 1000 && k[0].dynamic_shared_bytes == 0);
    assert_int_equal(kept_track(kept_nth(HEC_ACTIVITY_KERNEL, 0)->track)->stream, 7);
    assert_true(k[1].grid[0] == -1 && k[1].block[0] == -1 && k[1].registers == -1 && k[1].dynamic_shared_bytes == -1);
    assert_true(k[2].block[0] == 1 && k[2].block[1] == -1 && k[2].grid[0] == 4 && k[2].grid[1] == -1 &&
                k[2].grid[2] == -1);
    assert_true(k[2].registers == -1 && k[2].static_shared_bytes == -1 && k[2].dynamic_shared_bytes == 0);
}

#define DAY 86400000000 /* us */

/* Events of other times than the trace's are left out, and a trace of no time is none. */
TEST(test_events_of_other_times) {
    static const char op[] = "{'ph':'X','cat':'cpu_op','name':'a','pid':1,'tid':1,'ts':%lld,'dur':%lld}";
    char events[4096];
    size_t length = 0;
    for (int i = 0; i < 20; i++) {
        length += (size_t)snprintf(events + length, sizeof events - length, op, 100LL * DAY + i, 1LL);
        events[length++] = ',';
    }
    snprintf(events + length, sizeof events - length, op, 300LL * DAY, 1LL);
    import_events(events);
    assert_int_equal(kept.activities, 20);
    assert_true(imported.stats.kept == 20 && imported.stats.stray == 1 && imported.stats.end_ns == 20000);
    assert_int_equal(imported.stats.origin_ns, 100LL * DAY * 1000);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "left out: 1 event more than a day from the others of the trace"));
    snprintf(events + length, sizeof events - length, op, 100LL * DAY, 2LL * DAY); /* longer than a day */
    import_events(events);
    assert_true(imported.stats.kept == 20 && imported.stats.stray == 1);
    snprintf(events + length, sizeof events - length, op, 100LL * DAY, 1LL * DAY); /* exactly one */
    import_events(events);
    assert_true(imported.stats.kept == 21 && imported.stats.stray == 0);
    length = (size_t)snprintf(events, sizeof events, "{'traceEvents':[");
    length += (size_t)snprintf(events + length, sizeof events - length, op, 1LL, 1LL);
    length += (size_t)snprintf(events + length, sizeof events - length, ",");
    length += (size_t)snprintf(events + length, sizeof events - length, op, 100LL * DAY, 1LL);
    snprintf(events + length, sizeof events - length, "]}");
    assert_int_equal(import_text(events), HEC_ERR_CORRUPT);
    assert_non_null(strstr(imported.why.text, "of its events 1 lie more than a day from the others"));
}

/* A launch that is none of the trace's time is not known; the kernel is. */
TEST(test_a_launch_of_another_time) {
    char events[8192];
    size_t length = (size_t)snprintf(events, sizeof events,
                                     "{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernel','pid':1,"
                                     "'tid':1,'ts':%lld,'dur':1,'args':{'correlation':1}}",
                                     1LL);
    for (int i = 0; i < 15; i++)
        length += (size_t)snprintf(events + length, sizeof events - length,
                                   ",{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,"
                                   "'ts':%lld,'dur':1,'args':{'correlation':%d}}",
                                   100LL * DAY + i, i + 1);
    import_events(events);
    assert_int_equal(kept.activities, 15);
    const struct hec_activity *a = kept_nth(HEC_ACTIVITY_KERNEL, 0);
    assert_true(a->launch_ns == HEC_TIME_UNKNOWN && a->launch_end_ns == HEC_TIME_UNKNOWN && a->launch_track == 0);
    assert_int_equal(imported.stats.stray, 1);
}

/* Files of one run: each once, and of one time. */
TEST(test_files_of_several_runs) {
    static const struct {
        long long ts;
        int err;
        const char *sentence;
    } cases[] = {
        {101 * DAY + 1, HEC_OK, ""},
        {101 * DAY + 2, HEC_ERR_USAGE, "was recorded 1 days after the files before it: they are of several runs"},
        {97 * DAY, HEC_ERR_USAGE, "was recorded 3 days before the files before it"},
        {99 * DAY - 1, HEC_OK, ""}};
    const char *paths[2];
    char text[300];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char op[] = "[{'ph':'X','cat':'cpu_op','name':'a','pid':1,'tid':1,'ts':%lld,'dur':1}]";
        snprintf(text, sizeof text, op, 100LL * DAY);
        paths[0] = strdup(import_write("first.json", text));
        snprintf(text, sizeof text, op, cases[i].ts);
        paths[1] = strdup(import_write("second.json", text));
        if (import_files(paths, 2) != cases[i].err || !strstr(imported.why.text, cases[i].sentence))
            fail_msg("case %zu: %s", i, imported.why.text);
        if (i == 3)
            assert_true(imported.stats.origin_ns == cases[i].ts * 1000 && imported.stats.end_ns == (DAY + 2) * 1000);
        free((char *)paths[0]);
        free((char *)paths[1]);
    }
    paths[0] = strdup(import_write("one.json", "[]"));
    paths[1] = strdup(in_folder("link.json"));
    assert_int_equal(symlink(paths[0], paths[1]), 0);
    assert_int_equal(import_files(paths, 2), HEC_ERR_USAGE); /* under whatever name */
    assert_non_null(strstr(imported.why.text, "link.json is given twice"));
    free((char *)paths[0]);
    free((char *)paths[1]);
}

TEST(test_begin_of_no_thread) {
    import_events(
        "{'ph':'B','cat':'cpu_op','name':'a','pid':-1,'tid':1,'ts':1},{'ph':'B','cat':'cuda_sync','name':'Stream Sync',"
        "'pid':1,'tid':1,'ts':1},{'ph':'B','cat':'kernel','name':'k','pid':0,'tid':7,'ts':2,'args':{'device':0,'stream':7}},"
        "{'ph':'E','pid':0,'tid':7,'ts':9},{'ph':'X','cat':'cpu_op','name':'a','pid':1,'tid':1,'ts':4000000000000000,'dur':4e15}");
    assert_int_equal(kept_count(HEC_ACTIVITY_KERNEL), 1);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 0)->end_ns, 7000);
    assert_int_equal(imported.stats.bad, 3);
}

/* What was left out or read otherwise than it stands there is told: of one, and of several. */
TEST(test_notes) {
    static const char one[] = "{'ph':'X','cat':'cpu_op','name':'a\\xb','pid':1,'tid':1,'ts':1,'dur':7}";
    char events[4096];
    import_events(one);
    assert_int_equal(imported.stats.repaired, 1);
    assert_int_equal(kept.events, 2);
    assert_string_equal(kept.event[0].text, "1 byte of the trace is not valid JSON: it was read as it was meant");
    assert_string_equal(kept.event[1].text, "the trace holds no activity of a device: no kernel, no copy");
    assert_true(kept.event[0].kind == HEC_EVENT_NOTE && kept.event[0].device == HEC_DEVICE_NONE);
    snprintf(
        events, sizeof events,
        "%s,%s," RAN(0, 7, 10, 1000, 0) "," RAN(0, 7, 20, 10, 0) "," RAN(0, 7, 40, 1000, 0) "," RAN(0, 7, 50, 5, 0),
        one, one);
    import_events(events);
    assert_int_equal(kept.events, 2);
    assert_string_equal(kept.event[0].text,
                        "2 activities of devices lasted beyond what their stream ran next: they were cut to the "
                        "start of that");
    assert_string_equal(kept.event[1].text,
                        "2 bytes of the trace are not valid JSON: they were read as they were meant");
    /* categories that are not used, as many as there is room for, by name */
    size_t length = 0;
    for (int i = 0; i < 10; i++)
        length +=
            (size_t)snprintf(events + length, sizeof events - length,
                             "%s{'ph':'X','cat':'c%d','name':'n','pid':1,'tid':1,'ts':1,'dur':1}", i ? "," : "", i % 9);
    import_events(events);
    assert_int_equal(imported.stats.skipped, 10);
    assert_string_equal(imported.stats.unused[0].category, "c0");
    assert_true(imported.stats.unused[0].count == 2 && imported.stats.unused[7].count == 1);
    assert_string_equal(
        kept.event[0].text,
        "the trace holds no activity of a device: no kernel, no copy; not used: 2 of category c0, 1 of category c1, "
        "1 of category c2, 1 of category c3, 1 of category c4, 1 of category c5, 1 of category c6, 1 of category c7");
    import_events(RAN(0, 7, 10, 1, 0));
    assert_int_equal(kept.events, 0);
}

/* Where a device's event says its device and its stream, that counts, and not the row in which it is drawn. */
TEST(test_rows_are_drawn_anywhere) {
    import_events(
        "{'ph':'X','cat':'kernel','name':'k','pid':4,'tid':9,'ts':1,'dur':1,'args':{'device':0,'stream':7,'context':3}},"
        "{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':3,'dur':1,'args':{'context':3}}");
    const struct hec_track *track = kept_track(kept_nth(HEC_ACTIVITY_KERNEL, 0)->track);
    assert_true(track->stream == 7 && track->context == 3 && kept.devices == 1);
    assert_int_equal(kept_nth(HEC_ACTIVITY_KERNEL, 1)->track, kept_nth(HEC_ACTIVITY_KERNEL, 0)->track);
}
