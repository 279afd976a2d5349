/* The node agent: samples, sums up, serves. It lives in a library of its own (lib/hec/libhecagent.so), so that nothing else
 * pays for the libraries that it needs; src/cli/agent.c loads it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEC_AGENT_LIBRARY "hec/libhecagent.so"
#define HEC_AGENT_ENTRY "hec_agent_main"
#define HEC_AGENT_LISTEN "127.0.0.1:9400"
#define HEC_AGENT_SCRAPE_S 15 /* Prometheus' interval in deploy/ */

struct hec_agent_options {
    const char *listen; /* as hec_http_listen */
    int64_t interval_ns;
    int64_t scrape_ns;      /* Prometheus' interval; 0: joules are shown at once */
    const char *state_dir;  /* NULL: nothing is kept */
    const char *web_config; /* NULL: neither TLS nor passwords */
    const char *kubelet;    /* its socket; NULL: the usual one */
    const char *account;    /* folder of the token for Kubernetes' API server; NULL: the usual one */
    const char *fields;     /* dcgm-exporter's file of fields; NULL: its default ones */
    const char *devices;    /* whose fields, as its -d; NULL: of all */
    bool old_names;         /* and those of its version 1 */
    const char *job_map;    /* folder of files that say which batch job has which GPU; NULL: the usual one */
    bool all_series;        /* all that is measured, whether anything that is deployed asks for it or not */
    bool no_hostname;
    bool dashes;      /* for blanks in the label modelName */
    const char *otlp; /* URL that metrics are pushed to; NULL: nowhere */
    const char *user; /* become this one; NULL: stay */
    bool no_sandbox;
    const char *nvml_path; /* of the simulated machine; NULL: the system's */
    const char *simulated; /* what it is; NULL: none */
    const char *jobs;      /* socket on which jobs report; NULL: they do not */
    double window_s, window_every_s;
    double power_budget_w; /* 0: none */
    const char *power_classes, *carbon_file, *price_file;
    bool allow_power;
    bool verbose;
};

/* Until SIGTERM or SIGINT. Returns the exit status. */
int hec_agent_main(const struct hec_agent_options *options);
