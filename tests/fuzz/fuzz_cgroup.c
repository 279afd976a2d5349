/* /proc/PID/cgroup: names of cgroups, which users may make. */
#include "agent/identity.h"
#include "text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_text(data, size);
    if (!text)
        return 0;
    struct hec_cgroup cgroup;
    hec_cgroup_parse(text, &cgroup);
    size_t uid = strlen(cgroup.pod_uid), container = strlen(cgroup.container), job = strlen(cgroup.job);
    if ((uid != 0 && uid != 32 && uid != 36) || strspn(cgroup.pod_uid, "0123456789abcdef-") != uid ||
        (container != 0 && container != HEC_CONTAINER_ID) ||
        strspn(cgroup.container, "0123456789abcdef") != container || strspn(cgroup.job, "0123456789") != job)
        abort();
    free(text);
    return 0;
}
