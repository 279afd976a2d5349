/* Bytes as a run file (run_bytes.h), through what `hec report` makes of it: text without control characters, JSON that is
 * JSON, and a page. In a recorded run a GPU ran kernels of two streams, launched by two threads, beside readings of its power. */
#include "run_bytes.h"

#include "cli/load.h"
#include "report/html.h"

#include <jansson.h>
#include <stdint.h>

static const char rows[] =
    "INSERT INTO meta VALUES ('command', 'python train.py'), ('complete', '1'), "
    "('exit_code', '0'), ('cores', '8');"
    "INSERT INTO device VALUES (0, 'GPU-0', 'NVIDIA H200', '0000:1A:00.0', '580', 'hopper', 9, 0, 146800640, 700000, 700000, "
    "61532160, 0, 1, 1, 1, 1, 1, 'nvidia');"
    "INSERT INTO process VALUES (100, 0, NULL, 1, 'python', 9000, 1000, 10, 10);"
    "INSERT INTO gpu_process VALUES (0, 100, 1000, 19000000000, 5, 5, 1);"
    "INSERT INTO trace_name VALUES (2, 'ampere_sgemm_128x64_nn'), (3, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), "
    "(4, 'DataLoader.__next__'), (5, 'train.py');"
    "INSERT INTO track VALUES (2, 'thread', 100, NULL, NULL, 0, 101, 'loader'), (3, 'stream', 100, NULL, 0, 1, 7, NULL), "
    "(4, 'stream', 100, NULL, 0, 1, 8, NULL);"
    "INSERT INTO kernel (id, name, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers) VALUES "
    "(1, 2, 10, 1, 1, 128, 1, 1, 32), (2, 3, 10, 1, 1, 128, 1, 1, 32), (3, 4, 1, 1, 1, 1, 1, 1, 8), (4, 1, 1, 1, 1, 1, 1, 1, 8);"
    "INSERT INTO frame VALUES (1, 0, 5, 1, 5), (2, 1, 5, 4, 9), (3, 2, 5, 4, 30), (4, 0, 5, 1, 7);"
    "INSERT INTO tracer VALUES (100, 'full', 130000, 13000, 'libcupti.so.13', NULL, NULL, 0, 20000000000, 20000000000, 0, 1, "
    "1000, 0, 0, 0, 5, NULL, 10000);";

/* What load.c asks of the rest of the command line tool: no option was given, no GPU calibrated. */
int hec_load_unit(const char *text, char name[64], double *count) {
    (void)text, (void)name, (void)count;
    abort();
}

int hec_calibration_read(const char *uuid, struct hec_peaks *peaks, struct hec_why *why) {
    (void)uuid, (void)peaks, (void)why;
    return HEC_ERR_NOTFOUND;
}

static void check_text(const struct hec_summary *summary, uint8_t how) {
    const struct hec_report_style style = {.utf8 = how & 1, .columns = 20 + how, .brief = how & 2, .all = how & 4};
    struct hec_buf out;
    hec_buf_init(&out, 64u << 20);
    if (hec_report_terminal(summary, &style, &out) != HEC_OK)
        abort();
    if (style.utf8 && hec_report_markdown(summary, &out) != HEC_OK)
        abort();
    for (const unsigned char *c = (const unsigned char *)hec_buf_text(&out); *c; c++)
        if ((*c < 0x20 && *c != '\n') || *c == 0x7f || (*c >= 0x80 && !style.utf8))
            abort();
    hec_buf_free(&out);
}

static void check_json(const struct hec_summary *summary) {
    struct hec_buf out;
    hec_buf_init(&out, 64u << 20);
    if (hec_report_json(summary, 1, &out) != HEC_OK)
        abort();
    json_error_t error;
    json_t *json = json_loads(hec_buf_text(&out), 0, &error);
    if (!json) {
        fprintf(stderr, "%s at %d\n", error.text, error.position);
        abort();
    }
    json_decref(json);
    hec_buf_free(&out);
}

/* The page is markup of ours alone, and its data is JSON of nothing but ASCII. */
static void check_page(const struct hec_summary *summary) {
    static const char begin[] = "id=\"hec-page\">", end[] = "</script>";
    struct hec_buf out;
    hec_buf_init(&out, HEC_HTML_MOST);
    if (hec_html_report(summary, 1, &out) != HEC_OK)
        abort();
    const char *data = strstr(hec_buf_text(&out), begin), *to = data ? strstr(data, end) : NULL;
    json_t *json = to ? json_loadb(data + sizeof begin - 1, (size_t)(to - data) - (sizeof begin - 1), 0, NULL) : NULL;
    if (!json || !json_is_object(json_array_get(json_object_get(json, "views"), 0)))
        abort();
    for (const char *c = data + sizeof begin - 1; c < to; c++)
        if (*c < 0x20 || *c == 0x7f || *c == '<' || *c == '>' || *c == '&')
            abort();
    json_decref(json);
    hec_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct hec_args args;
    if (size == 0)
        return 0;
    run_write(data, size, rows);
    struct hec_summary summary = {0};
    struct hec_why why = {""};
    const struct hec_price price = hec_price_default();
    int err = hec_load_summary(run_path, &args, &price, 1, &summary, &why);
    if (err < 0 && !why.text[0])
        abort(); /* every error has a sentence */
    if (err < 0)
        return 0;
    check_text(&summary, data[size - 1]);
    check_json(&summary);
    check_page(&summary);
    hec_summary_free(&summary);
    return 0;
}
