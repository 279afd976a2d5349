/* Copies: the same series to the last digit, no names, new facts; and what a path may and may not hold before. */
#include "store_file.h"

#include "base/buf.h"
#include "store/copy.h"

#include <dirent.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As on NFS: there is no rename that does not replace. */
static bool no_rename;
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (no_rename)
        errno = EINVAL;
    return no_rename ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

static int files_in(const char *path) {
    int count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void make(const char *path) {
    struct hec_writer *writer = store_create(path, 0);
    const struct hec_sink *s = hec_writer_sink(writer);
    store_fill(s, 0, 100);
    s->meta(s->context, "folder", "/home/ada/project");
    s->meta(s->context, "secret", "x");
    s->meta(s->context, "kernel", "Linux node17.example 6.1");
    store_close(writer);
}

static int got_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)kind, (void)device, (void)t_ns;
    return hec_buf_puts(context, text);
}

static int got_uuid(void *context, const struct hec_device *device) {
    return hec_buf_puts(context, device->uuid);
}

TEST(names_are_taken_out) {
    const char *from = in_folder("from.hec"), *to = in_folder("to.hec");
    make(from);
    static const char *const drop[] = {"secret", NULL};
    static const struct hec_store_fact facts[] = {{"part", "H200"}, {"command", "python train.py"}};
    struct hec_store_scrub scrub = {.hostname = true,
                                    .uuids = true,
                                    .paths = true,
                                    .arguments = true,
                                    .drop = drop,
                                    .facts = facts,
                                    .fact_count = 1};
    struct hec_why why = {""};
    if (hec_store_copy(from, to, false, &scrub, &why) != HEC_OK)
        fail_msg("%s", why.text);
    struct hec_reader *reader = store_open(to);
    assert_string_equal(hec_reader_meta(reader, "command"), "python");
    assert_string_equal(hec_reader_meta(reader, "hostname"), "host");
    assert_string_equal(hec_reader_meta(reader, "folder"), "project");
    assert_string_equal(hec_reader_meta(reader, "kernel"), "Linux host.example 6.1");
    assert_string_equal(hec_reader_meta(reader, "part"), "H200");
    assert_string_equal(hec_reader_meta(reader, "store_closed"), "1");
    assert_null(hec_reader_meta(reader, "secret"));
    struct hec_buf text;
    hec_buf_init(&text, 4096);
    assert_int_equal(hec_reader_devices(reader, got_uuid, &text, NULL), 0);
    assert_string_equal(hec_buf_text(&text), "GPU-00000000-0000-0000-0000-000000000000");
    hec_buf_clear(&text);
    assert_int_equal(hec_reader_events(reader, got_event, &text, NULL), 0);
    assert_string_equal(hec_buf_text(&text), "on host: GPU-00000000-0000-0000-0000-000000000000");
    hec_buf_free(&text);
    hec_reader_close(reader);
    assert_true(store_holds(from, "ada") && store_holds(from, "node17") && store_holds(from, "89ab-cdef"));
    assert_false(store_holds(to, "ada") || store_holds(to, "node17") || store_holds(to, "89ab-cdef") ||
                 store_holds(to, "secret"));

    /* a fact replaces what is there */
    scrub.fact_count = 2;
    assert_int_equal(hec_store_copy(from, to, false, &scrub, &why), HEC_ERR_EXISTS);
    assert_int_equal(hec_store_copy(from, to, true, &scrub, &why), HEC_OK);
    reader = store_open(to);
    assert_string_equal(hec_reader_meta(reader, "command"), "python train.py");
    hec_reader_close(reader);
}

TEST(series_are_exact) {
    const char *from = in_folder("from2.hec"), *to = in_folder("to2.hec");
    make(from);
    assert_int_equal(hec_store_copy(from, to, false, NULL, NULL), HEC_OK);
    struct hec_reader *a = store_open(from), *b = store_open(to);
    static const enum hec_metric metrics[] = {HEC_GPU_POWER, HEC_GPU_TEMPERATURE, HEC_GPU_ENERGY, HEC_GPU_POWER_LIMIT};
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        struct store_values x = store_series(a, metrics[i], 1), y = store_series(b, metrics[i], 1);
        assert_int_equal(x.count, y.count);
        assert_true(x.count >= 100);
        assert_memory_equal(x.t_ns, y.t_ns, x.count * sizeof *x.t_ns);
        assert_memory_equal(x.value, y.value, x.count * sizeof *x.value);
        assert_memory_equal(x.valid, y.valid, x.count);
    }
    assert_string_equal(hec_reader_meta(b, "folder"), "/home/ada/project");
    hec_reader_close(a);
    hec_reader_close(b);
}

TEST(a_bad_source_leaves_nothing) {
    struct hec_why why = {""};
    const char *to = in_folder("to3.hec");
    assert_int_equal(hec_store_copy(in_folder("absent"), to, false, NULL, &why), HEC_ERR_NOTFOUND);
    assert_int_equal(hec_store_copy(folder_write("text", "import torch\n", 13), to, false, NULL, &why),
                     HEC_ERR_CORRUPT);
    char command[256];
    snprintf(command, sizeof command, "test -z \"$(ls '%s' | grep to3)\"", folder);
    assert_int_equal(system(command), 0);
}

TEST(texts) {
    struct hec_store_scrub scrub = {.hostname = true, .uuids = true, .paths = true};
    struct hec_scrubber scrubber = {.scrub = &scrub, .hostname = "n1"};
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"n1 n12 xn1 n1-a (n1)", "host n12 xn1 n1-a (host)"},
        {"GPU-0a000000-0000-0000-0000-00000000000f,MIG-1b000000-0000-0000-0000-00000000000f "
         "GPU-0a000000-0000-0000-0000-00000000000f",
         "GPU-00000000-0000-0000-0000-000000000000,MIG-00000000-0000-0000-0000-000000000001 "
         "GPU-00000000-0000-0000-0000-000000000000"},
        {"GPU-0a000000-0000-0000-0000", "GPU-0a000000-0000-0000-0000"},
        {"/home/a/b.py --out=/data/x/ '/tmp/q r' /", "b.py --out=x 'q r' "},
        {"/home/a/.venv/lib/python3.11/site-packages/torch/nn/x.py", "site-packages/torch/nn/x.py"},
        {"/home/a/.pyenv/lib/python3.11/json/x.py /opt/lib/hec/python/hec/_hooks/x.py",
         "/lib/python3.11/json/x.py /hec/_hooks/x.py"},
        {"/dev/nvidia0 /usr/lib/x.so /proc/1/stat 12/5 a/b", "/dev/nvidia0 /usr/lib/x.so /proc/1/stat 12/5 a/b"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_buf out;
        hec_buf_init(&out, 4096);
        hec_scrub_text(&scrubber, cases[i].in, &out);
        assert_string_equal(hec_buf_text(&out), cases[i].out);
        hec_buf_free(&out);
    }
    free(scrubber.uuids);
}

TEST(what_may_be_overwritten) {
    struct hec_writer *writer = NULL;
    struct hec_why why = {""};
    const char *path = folder_write("train.py", "import torch\n", 13);
    for (int i = 0; i < 2; i++) {
        no_rename = i;
        assert_int_equal(hec_writer_create(path, false, 0, &writer, &why), HEC_ERR_EXISTS);
        const char *made = in_folder(i ? "linked.hec" : "renamed.hec");
        int before = files_in(folder);
        assert_int_equal(hec_writer_create(made, false, 0, &writer, &why), HEC_OK);
        store_close(writer);
        assert_int_equal(files_in(folder), before + 1);
        assert_int_equal(access(made, F_OK), 0);
        writer = NULL;
    }
    no_rename = false;
    assert_int_equal(hec_writer_create(path, false, 0, &writer, &why), HEC_ERR_EXISTS);
    assert_non_null(strstr(why.text, "exists already"));
    assert_int_equal(hec_writer_create(path, true, 0, &writer, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "is not a HEC run file, so it is not overwritten"));
    assert_true(store_holds(path, "import torch"));
    assert_int_equal(hec_writer_create(folder, true, 0, &writer, &why), HEC_ERR_USAGE);
    assert_int_equal(hec_writer_create("/dev/null", true, 0, &writer, &why), HEC_ERR_USAGE);
    assert_int_equal(hec_writer_create(in_folder("no/such/folder"), true, 0, &writer, &why), HEC_ERR_NOTFOUND);
    assert_null(writer);

    /* the log of a killed run does not come back in the run that replaces it */
    path = in_folder("again.hec");
    writer = store_create(path, 0);
    store_fill(hec_writer_sink(writer), 0, 5);
    assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    struct hec_writer *other = NULL;
    assert_int_equal(hec_writer_create(path, true, 0, &other, &why), HEC_ERR_BUSY); /* not while it is written */
    assert_non_null(strstr(why.text, "is being written by another run"));
    char command[512];
    snprintf(command, sizeof command, "cd '%s' && cp again.hec k.hec && cp again.hec-wal k.hec-wal", folder);
    assert_int_equal(system(command), 0);
    store_close(writer);
    path = in_folder("k.hec");
    writer = store_create(path, 0);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    int64_t values;
    assert_int_equal(store_read_all(reader, &values, NULL), 0);
    assert_int_equal(values, 0);
    hec_reader_close(reader);
    snprintf(command, sizeof command, "%s-wal", path);
    assert_int_not_equal(access(command, F_OK), 0);
}
