/* The RAPL zones of powercap (Documentation/power/powercap/powercap.rst of Linux); AMD's are under the same name. */
#ifndef HEC_OBSERVE_RAPL_ZONE_H
#define HEC_OBSERVE_RAPL_ZONE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define HEC_RAPL_ZONES_MAX 64

enum hec_rapl_kind {
    HEC_RAPL_PACKAGE,
    HEC_RAPL_DRAM,     /* not part of the package's energy */
    HEC_RAPL_PLATFORM, /* "psys": the packages are part of it */
    HEC_RAPL_PART      /* cores, uncore: part of a package */
};

struct hec_rapl_zone {
    enum hec_rapl_kind kind;
    int index;        /* K of intel-rapl:K, also for the zones below it */
    char name[32];    /* "package-0", "dram" */
    char path[192];   /* of energy_uj */
    int64_t range_uj; /* at which it wraps; 0: unknown */
    double power_w;   /* highest power limit that the zone states, 0: none */
    int error;        /* HEC_OK, or why energy_uj cannot be read */
};

/* The zones under path, packages first, ascending. Returns their number (0: no RAPL here) or HEC_ERR_*. */
int hec_rapl_zones(const char *path, struct hec_rapl_zone zones[HEC_RAPL_ZONES_MAX]);

/* One number from a file; returns HEC_OK or HEC_ERR_*. fd: an open file. */
int hec_rapl_read_number(int fd, int64_t *out);

#endif
