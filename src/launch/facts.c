#include "launch/facts.h"

#include "base/clock.h"
#include "observe/procfs/usable.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The value behind "key" and a separator in a small text file such as /proc/cpuinfo; false when absent. */
static bool file_value(const char *path, const char *key, char *value, size_t size) {
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char line[512];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) != 0)
            continue;
        char *text = line + length + strspn(line + length, " \t:=\"");
        text[strcspn(text, "\"\n")] = '\0';
        snprintf(value, size, "%s", text);
        found = true;
    }
    fclose(file);
    return found;
}

static void put(const struct hec_sink *sink, const char *key, const char *value) {
    sink->meta(sink->context, key, value);
}

void hec_facts_machine(const struct hec_sink *sink) {
    static const struct {
        const char *key, *path, *name;
    } files[] = {
        {"cpu", "/proc/cpuinfo", "model name"},
        {"os", "/etc/os-release", "PRETTY_NAME"},
        {"memory", "/proc/meminfo", "MemTotal"},
    };
    char text[PATH_MAX];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (file_value(files[i].path, files[i].name, text, sizeof text))
            put(sink, files[i].key, text);
    struct utsname name;
    if (uname(&name) == 0) {
        put(sink, "hostname", name.nodename);
        snprintf(text, sizeof text, "%s %s %s", name.sysname, name.release, name.machine);
        put(sink, "kernel", text);
    }
    snprintf(text, sizeof text, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    put(sink, "cores", text);
    snprintf(text, sizeof text, "%d", hec_cores_usable());
    put(sink, "cores_usable", text);
    if (getcwd(text, sizeof text))
        put(sink, "folder", text);
    put(sink, "hec_version", HEC_VERSION);
}

void hec_facts_start(const struct hec_sink *sink, int64_t start_ns) {
    int64_t wall_ns = hec_clock_wall_ns() - (hec_clock_mono_ns() - start_ns);
    hec_sink_meta(sink, "start_wall_ns", "%lld", (long long)wall_ns);
}

void hec_facts_wall_time(int64_t wall_ns, char text[40]) {
    time_t seconds = (time_t)(wall_ns / HEC_NS_PER_S);
    struct tm local;
    localtime_r(&seconds, &local);
    char raw[32];
    strftime(raw, sizeof raw, "%Y-%m-%dT%H:%M:%S%z", &local);
    /* ISO 8601 wants +hh:mm where strftime gives +hhmm */
    size_t length = strlen(raw);
    snprintf(text, 40, "%.*s:%s", (int)(length - 2), raw, raw + length - 2);
}
