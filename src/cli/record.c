/* hec record: a run file of some seconds of a job, from the agent of this node (jobs/request.h). */
#include "base/text.h"
#include "jobs/jobs.h"
#include "jobs/request.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "store/create.h"
#include "store/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((off_t)1 << 30)

#define LIST_MAX (16u << 20)

/* A list that is too long for an answer. */
static void print_file(int file) {
    char text[4096];
    struct hec_buf all;
    ssize_t got;
    hec_buf_init(&all, LIST_MAX);
    for (off_t at = 0; (got = pread(file, text, sizeof text, at)) > 0 && hec_buf_error(&all) == 0; at += got)
        hec_buf_add(&all, text, (size_t)got);
    hec_text_print(stdout, hec_buf_text(&all));
    hec_buf_free(&all);
}

/* What the agent hands over goes to the output as it is; `hec report` trusts no run file. */
static int keep(int file, const char *path, bool overwrite, struct hec_why *why) {
    struct stat status;
    if (fstat(file, &status) != 0 || status.st_size <= 0 || status.st_size > FILE_MAX)
        return hec_fail(why, HEC_ERR_CORRUPT, "the agent handed over no run file");
    struct hec_image image = {.bytes = malloc((size_t)status.st_size), .length = (size_t)status.st_size};
    if (!image.bytes)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the run file");
    int err = HEC_OK;
    for (size_t at = 0; at < image.length && err == HEC_OK;) {
        ssize_t got = pread(file, image.bytes + at, image.length - at, (off_t)at);
        if (got <= 0)
            err = hec_fail(why, HEC_ERR_IO, "the run file cannot be read from the agent");
        at += got > 0 ? (size_t)got : 0;
    }
    if (err == HEC_OK)
        err = hec_create_write(path, overwrite, &image, why);
    free(image.bytes);
    return err;
}

static int ask(const struct hec_args *args, const struct hec_request *request, const char *path, struct hec_why *why) {
    const char *given = hec_args_value(args, HEC_OPT_AGENT);
    struct hec_answer answer;
    int file, fd = hec_request_send(given ? given : HEC_JOBS_SOCKET, request, why);
    if (fd < 0)
        return fd;
    int err = hec_request_await(fd, -1, &answer, &file);
    close(fd);
    if (err < 0)
        return hec_fail(why, err, "the agent has gone");
    if (answer.err < 0)
        return hec_fail(why, answer.err, "%.500s", answer.text);
    if (!request->job[0] && file >= 0)
        print_file(file);
    else if (!request->job[0])
        hec_text_print(stdout, answer.text[0] ? answer.text : "no job of yours reports to the agent");
    else
        err = keep(file, path, hec_args_has(args, HEC_OPT_FORCE), why);
    if (err == HEC_OK && request->job[0] && answer.text[0])
        hec_warn("record: %s", answer.text);
    if (file >= 0)
        close(file);
    return err;
}

int hec_verb_record(struct hec_args *args) {
    struct hec_why why = {""};
    struct hec_request request = {.magic = HEC_REQUEST_MAGIC, .seconds = 5};
    char path[PATH_MAX];
    const char *job = hec_args_value(args, HEC_OPT_JOB);
    if (hec_args_number(args, HEC_OPT_SECONDS, 0.1, HEC_WINDOW_SECONDS_MAX, &request.seconds) < 0)
        return HEC_ERR_USAGE;
    int err = hec_output_path(args, false, path, &why);
    if (err == HEC_OK && job && (!job[0] || strlen(job) >= sizeof request.job))
        err = hec_fail(&why, HEC_ERR_USAGE, "--job needs the id of a job; `hec record` lists them");
    if (err == HEC_OK && job && !path[0])
        err = hec_fail(&why, HEC_ERR_USAGE, "--job needs -o FILE too");
    if (err == HEC_OK && job)
        err = hec_create_check(path, hec_args_has(args, HEC_OPT_FORCE), &why);
    if (job)
        snprintf(request.job, sizeof request.job, "%s", job);
    if (err == HEC_OK)
        err = ask(args, &request, path, &why);
    if (err < 0)
        hec_error("record: %s", why.text);
    return err < 0 ? err : 0;
}
