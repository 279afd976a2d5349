#include "act/apply.h"

#include "act/power_levers.h"
#include "diagnose/input.h"
#include "observe/marks/marks.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fact(struct hec_applied *out, const char *lever, enum hec_attest state, const char *what) {
    int at = 0;
    while (out->facts[2 * at])
        at++;
    snprintf(out->facts_text[at][0], HEC_SESSION_FACT, "lever.%s.%s", lever, hec_attest_name(state));
    snprintf(out->facts_text[at][1], HEC_SESSION_FACT, "%s", what);
    out->facts[2 * at] = out->facts_text[at][0];
    out->facts[2 * at + 1] = out->facts_text[at][1];
}

/* Whether the list has an entry for what "KEY=..." sets. */
static bool names(const char *list, const char *value) {
    char key[128];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(value, "="), value);
    return strstr(list, key) != NULL;
}

static int set_variable(const struct hec_lever_use *use, const struct hec_lever_variable *variable,
                        struct hec_applied *out, bool *already, struct hec_why *why) {
    const char *there = hec_environ_get(&out->environ, variable->name);
    const char *value = strcmp(variable->value, "%s") == 0 ? use->value : variable->value;
    char joined[4096];
    bool set = there && *there, list = variable->how != HEC_LEVER_SET;
    if (set && (strcmp(there, value) == 0 || (list && strstr(there, value))))
        return HEC_OK;
    if (set && (!list || names(there, value)))
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "lever %s would set %s=%s, which is %.100s already: take it out of the environment",
                        use->row->name, variable->name, value, there);
    *already = false;
    if (set) {
        if (snprintf(joined, sizeof joined, "%s%c%s", there, variable->how == HEC_LEVER_LIST ? ',' : ':', value) >=
            (int)sizeof joined)
            return hec_fail(why, HEC_ERR_LIMIT, "%s is too long for lever %s", variable->name, use->row->name);
        value = joined;
    }
    return hec_environ_set(&out->environ, variable->name, value) < 0
               ? hec_fail(why, HEC_ERR_NOMEM, "no memory for the environment")
               : HEC_OK;
}

static int set_variables(const struct hec_lever_use *use, struct hec_applied *out, struct hec_why *why) {
    const struct hec_lever_variable *variable;
    char what[HEC_SESSION_FACT] = "";
    bool already = true;
    int err = HEC_OK, i;
    for (i = 0; err == HEC_OK && (variable = hec_lever_variable(use->row, i)); i++) {
        err = set_variable(use, variable, out, &already, why);
        size_t length = strlen(what);
        snprintf(what + length, sizeof what - length, "%s%s=%s", i ? " " : "", variable->name,
                 strcmp(variable->value, "%s") == 0 ? use->value : variable->value);
    }
    if (err == HEC_OK && i)
        fact(out, use->row->name, already ? HEC_ATTEST_ALREADY : HEC_ATTEST_SET, what);
    return err;
}

/* After the knobs that are set anyway: of two values of a knob the last one counts. */
static int set_knob(const struct hec_lever_use *use, const char *before, struct hec_applied *out, struct hec_why *why) {
    char assignment[sizeof use->knob + HEC_LEVER_VALUE];
    if (!out->knobs.length && before)
        hec_buf_puts(&out->knobs, before);
    snprintf(assignment, sizeof assignment, "%s=%s", use->knob, use->value);
    return hec_marks_knob_add(&out->knobs, assignment, why);
}

/* Those that python/hec/levers may know. */
static void set_text(const struct hec_lever_set *set, char text[HEC_LEVERS_TEXT]) {
    struct hec_lever_set levers = {.count = 0};
    for (int i = 0; i < set->count; i++)
        if (!set->list[i].knob[0])
            levers.list[levers.count++] = set->list[i];
    hec_lever_set_text(&levers, text);
}

int hec_apply(const struct hec_lever_set *set, char *const *from, const char *knobs, struct hec_applied *out,
              struct hec_why *why) {
    char levers[HEC_LEVERS_TEXT];
    *out = (struct hec_applied){0};
    hec_buf_init(&out->knobs, HEC_MARKS_KNOBS_MAX + 1);
    hec_lever_set_text(set, out->text);
    set_text(set, levers);
    int err = hec_environ_copy(&out->environ, from);
    if (err == HEC_OK)
        err = hec_environ_set(&out->environ, HEC_LEVERS_ENV, levers);
    if (err < 0)
        return hec_fail(why, err, "no memory for the environment");
    for (int i = 0; err == HEC_OK && i < set->count; i++) {
        const struct hec_lever_use *use = &set->list[i];
        char what[HEC_SESSION_FACT];
        if (use->knob[0]) {
            err = set_knob(use, knobs && knobs[0] ? knobs : hec_environ_get(&out->environ, HEC_MARKS_ENV_KNOBS), out,
                           why);
        } else if (use->row->place ==
                   HEC_LEVER_PLACE_DEVICE) { /* set and read back by the guard, or the command does not run */
            hec_power_lever_words(use, what);
            fact(out, use->row->name, HEC_ATTEST_SET, what);
        } else if (strcmp(use->row->name, "numa") == 0) {
            out->placed = true;
            if ((err = hec_place_beside_devices(&out->environ, NULL, &out->placement, what, why)) == HEC_OK)
                fact(out, use->row->name, HEC_ATTEST_SET, what);
        } else {
            err = set_variables(use, out, why);
        }
    }
    return err;
}

void hec_apply_to(const struct hec_applied *applied, struct hec_session_options *session) {
    session->environment = applied->environ.list;
    session->levers = applied->text;
    session->facts = applied->facts;
    session->placement = applied->placed ? &applied->placement : NULL;
    if (applied->knobs.length)
        session->knobs = hec_buf_text(&applied->knobs);
}

void hec_applied_free(struct hec_applied *applied) {
    hec_environ_free(&applied->environ);
    hec_buf_free(&applied->knobs);
}

#define DEVICES_MAX 64

static bool read_line(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 64, folder, name);
    FILE *file = fopen(path, "re");
    bool got = file && fgets(text, (int)size, file);
    if (file)
        fclose(file);
    if (got)
        text[strcspn(text, "\n")] = '\0';
    return got;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* NVIDIA's GPUs by their address, which is the order that CUDA gives like parts. Returns how many. */
static int find_devices(const char *sysfs, char *list[DEVICES_MAX]) {
    char folder[PATH_MAX], path[PATH_MAX], vendor[16], class[16];
    int count = 0;
    snprintf(folder, sizeof folder, "%s/bus/pci/devices", sysfs);
    DIR *devices = opendir(folder);
    for (struct dirent *entry; devices && (entry = readdir(devices)) && count < DEVICES_MAX;) {
        snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 300, folder, entry->d_name);
        if (entry->d_name[0] != '.' && read_line(path, "vendor", vendor, sizeof vendor) &&
            read_line(path, "class", class, sizeof class) && strcmp(vendor, "0x10de") == 0 &&
            strncmp(class, "0x03", 4) == 0 && (list[count] = strdup(path)))
            count++;
    }
    if (devices)
        closedir(devices);
    qsort(list, (size_t)count, sizeof *list, by_name);
    return count;
}

/* Whether CUDA_VISIBLE_DEVICES, where it is a list of numbers, has this one. */
static bool is_visible(const char *visible, int device) {
    char *end;
    if (!visible || strspn(visible, "0123456789, ") != strlen(visible))
        return true;
    for (const char *at = visible; *at; at = *end ? end + 1 : end) {
        long number = strtol(at, &end, 10);
        if (end != at && number == device)
            return true;
    }
    return false;
}

/* "0-3,8": into the set, those that this process may use. */
static void add_cpus(const char *list, const cpu_set_t *ours, cpu_set_t *out) {
    char *end;
    for (const char *at = list; *at; at = *end ? end + 1 : end) {
        long from = strtol(at, &end, 10), to = from;
        if (end == at)
            break;
        if (*end == '-')
            to = strtol(end + 1, &end, 10);
        for (long cpu = from; cpu <= to && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, ours))
                CPU_SET((size_t)cpu, out);
    }
}

/* The one node of the visible ones; -1: none says one, -2: there are several. */
static int common_node(char *const *devices, int count, const char *visible, char cpus[512]) {
    int node = -1;
    for (int i = 0; i < count; i++) {
        char text[16];
        if (!is_visible(visible, i) || !read_line(devices[i], "numa_node", text, sizeof text))
            continue;
        int here = atoi(text);
        if (here < 0 || !read_line(devices[i], "local_cpulist", cpus, 512))
            continue;
        if (node >= 0 && here != node)
            return -2;
        node = here;
    }
    return node;
}

int hec_place_beside_devices(const struct hec_environ *environment, const char *sysfs, struct hec_placement *out,
                             char what[HEC_PLACE_TEXT], struct hec_why *why) {
    char *devices[DEVICES_MAX], cpus[512] = "", second[PATH_MAX];
    cpu_set_t ours;
    sysfs = sysfs ? sysfs : "/sys";
    snprintf(second, sizeof second, "%s/devices/system/node/node1", sysfs);
    if (access(second, F_OK) != 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "lever numa: this machine has one NUMA node");
    int count = find_devices(sysfs, devices);
    int node = common_node(devices, count, hec_environ_get(environment, "CUDA_VISIBLE_DEVICES"), cpus);
    for (int i = 0; i < count; i++)
        free(devices[i]);
    if (node < 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "lever numa: %s",
                        node == -1 ? "the system does not say at which node the GPU is"
                                   : "the GPUs are at several nodes: their launcher has to place each rank");
    *out = (struct hec_placement){.node = node};
    sched_getaffinity(0, sizeof ours, &ours);
    add_cpus(cpus, &ours, &out->cpus);
    if (CPU_COUNT(&out->cpus) == 0)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "lever numa: no CPU of node %d may be used here", node);
    snprintf(what, HEC_PLACE_TEXT, "CPUs %.100s and memory of node %d", cpus, node);
    return HEC_OK;
}
