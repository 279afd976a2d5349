/* kubelet_list SOCKET RESULTS SPEED: asks for the kubelet's list until there were so many results, on a clock that goes so many
 * times as fast, and prints each: rows, then "list COUNT LEFT_OUT"; failures as "error CODE WHY". */
#include "agent/kubelet.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void show(const struct hec_pod_devices *devices) {
    for (size_t i = 0; i < devices->count; i++) {
        const struct hec_pod_device *row = &devices->rows[i];
        printf("%s %d %d %s %s %s\n", row->name.uuid[0] ? row->name.uuid : "-", row->name.minor, row->name.instance,
               row->holder.pod_namespace, row->holder.pod, row->holder.container);
    }
    printf("list %zu %llu\n", devices->count, (unsigned long long)devices->left_out);
}

int main(int count, char **arguments) {
    struct hec_kubelet *kubelet;
    if (count != 4 || hec_kubelet_create(arguments[1], &kubelet) != HEC_OK)
        return 2;
    int left = atoi(arguments[2]);
    for (int64_t now_ns = 0; left > 0; now_ns += atoi(arguments[3]) * 5 * HEC_NS_PER_MS) {
        struct hec_why why = {""};
        int got = hec_kubelet_poll(kubelet, now_ns, &why);
        if (got == 1)
            show(hec_kubelet_devices(kubelet));
        else if (got < 0)
            printf("error %d %s\n", got, why.text);
        fflush(stdout);
        left -= got != 0;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    hec_kubelet_free(kubelet);
    return 0;
}
