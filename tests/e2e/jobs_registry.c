/* The registry of jobs (jobs/jobs.h) with nothing of an agent around it, for test_agent_jobs.py:
 *     jobs_registry HEC SOCKET SPEC WINDOW_S PERIOD_S
 * makes the simulated machine SPEC, prints the variables by which a program finds it, an empty line, and then a line of
 * JSON for each window and, once a second, for the jobs; until standard input ends. */
#include "jobs/jobs.h"
#include "base/clock.h"
#include "launch/simulation.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static json_t *number(double value) {
    return value == value ? json_real(value) : json_null();
}

static void print(json_t *line) {
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(line);
}

static json_t *states(const double *values) {
    json_t *object = json_object();
    for (int state = 0; state < HEC_STATE_COUNT; state++)
        json_object_set_new(object, hec_state_name((enum hec_state)state), number(values[state]));
    return object;
}

static void observed(void *context, struct hec_job *job, const struct hec_window_result *result) {
    json_t *devices = json_array(), *units = json_object();
    (void)context;
    for (int i = 0; i < result->device_count; i++)
        json_array_append_new(devices,
                              json_pack("{s:s, s:o, s:o}", "uuid", result->device[i].uuid, "seconds",
                                        states(result->device[i].seconds), "joules", states(result->device[i].joules)));
    for (int i = 0; i < result->unit_count; i++)
        json_object_set_new(units, result->unit[i].name, number(result->unit[i].count));
    print(json_pack("{s:s, s:f, s:o, s:o, s:s, s:o, s:o, s:s, s:I}", "window", job->id, "seconds", result->seconds,
                    "devices", devices, "units", units, "cause",
                    result->cause < 0 ? "" : hec_cause_name((enum hec_cause)result->cause), "recoverable",
                    number(result->recoverable), "confidence", number(result->confidence), "why", result->why, "lost",
                    (json_int_t)result->lost));
}

static void print_jobs(const struct hec_jobs *jobs) {
    struct hec_jobs_counts counts;
    json_t *list = json_array();
    for (size_t i = 0; i < hec_jobs_count(jobs); i++) {
        const struct hec_job *job = hec_jobs_at(jobs, i);
        json_array_append_new(list, json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:f}", "id", job->id, "pid",
                                              (int)job->pid, "processes", job->processes, "rings", job->rings,
                                              "windows", (json_int_t)job->windows, "failed", (json_int_t)job->failed,
                                              "observed", job->observed_s));
    }
    hec_jobs_counts(jobs, &counts);
    print(json_pack("{s:o, s:I, s:I, s:I, s:f}", "jobs", list, "rings", (json_int_t)counts.rings, "refused",
                    (json_int_t)counts.refused, "silent", (json_int_t)counts.silent, "cpu", counts.window_cpu_seconds));
}

int main(int argc, char **argv) {
    struct hec_jobs_options options = hec_jobs_defaults();
    struct hec_simulation *simulation;
    struct hec_environ env = {0};
    struct hec_jobs *jobs;
    struct hec_why why;
    char *nothing[] = {NULL};
    if (argc != 6 || hec_simulation_begin(argv[3], &simulation, &why) < 0)
        return 2;
    hec_environ_copy(&env, nothing);
    hec_simulation_environ(simulation, &env);
    for (size_t i = 0; i < env.count; i++)
        puts(env.list[i]);
    puts("");
    options.program = argv[1];
    options.socket = argv[2];
    options.simulated = argv[3];
    options.nvml_path = hec_simulation_nvml(simulation);
    options.window_s = atof(argv[4]);
    options.period_s = atof(argv[5]);
    options.cpu_share = 0; /* tests wait for windows */
    options.observed = observed;
    if (hec_jobs_open(&options, &jobs, &why) < 0) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    fflush(stdout);
    struct pollfd on[] = {{.fd = 0, .events = POLLIN}, {.fd = hec_jobs_fd(jobs), .events = POLLIN}};
    int64_t print_ns = 0;
    while (!(on[0].revents & (POLLIN | POLLHUP))) {
        int64_t now_ns = hec_clock_mono_ns(), next_ns = hec_jobs_poll(jobs, now_ns);
        if (now_ns >= print_ns) {
            print_jobs(jobs);
            print_ns = now_ns + HEC_NS_PER_S / 4;
        }
        next_ns = next_ns < print_ns ? next_ns : print_ns;
        now_ns = hec_clock_mono_ns();
        poll(on, 2, next_ns > now_ns ? (int)((next_ns - now_ns) / HEC_NS_PER_MS) + 1 : 0);
    }
    hec_jobs_close(jobs);
    hec_simulation_end(simulation);
    hec_environ_free(&env);
    return 0;
}
