/* Names of kernels by the handles under which they are launched, as the driver was asked for them. A handle may come again
 * for another kernel; the last name counts. */
#include "tracer/tracer.h"

#include <string.h>
#include <sys/mman.h>

#define SLOTS 16384u /* a power of two */
#define MOST (SLOTS / 2)
#define TEXT_BYTES (1u << 20)
#define NAME_BYTES 512u /* the rest of a longer one is left out */

static struct tables {
    struct {
        uint64_t handle; /* 0: free */
        uint32_t text;
    } slots[SLOTS];
    uint32_t count, text_bytes;
    char text[TEXT_BYTES];
} * tables;

int hec_functions_open(void) {
    void *map = mmap(NULL, sizeof *tables, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    tables = map;
    tables->text_bytes = 1; /* 0: no name */
    return 0;
}

void hec_functions_forget(void) {
    if (tables)
        munmap(tables, sizeof *tables);
    tables = NULL;
}

/* The slot of a handle, or the free one where it belongs. */
static uint32_t find(uint64_t handle) {
    uint32_t at = (uint32_t)((handle * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (SLOTS - 1);
    while (tables->slots[at].handle != 0 && tables->slots[at].handle != handle)
        at = (at + 1) & (SLOTS - 1);
    return at;
}

const char *hec_functions_name(uint64_t handle) {
    uint32_t at = tables && handle ? find(handle) : 0;
    return tables && handle && tables->slots[at].handle ? tables->text + tables->slots[at].text : NULL;
}

static void add(uint64_t handle, const char *name) {
    size_t length = strnlen(name, NAME_BYTES - 1);
    uint32_t at = find(handle);
    const char *known = hec_functions_name(handle);
    if (known && strncmp(known, name, length) == 0 && !known[length])
        return;
    if (tables->count == MOST || tables->text_bytes + length + 1 > TEXT_BYTES) {
        tables->slots[at].text = 0; /* of a known handle: not the name of another kernel */
        return;
    }
    tables->count += !known;
    tables->slots[at].handle = handle;
    tables->slots[at].text = tables->text_bytes;
    memcpy(tables->text + tables->text_bytes, name, length); /* zeros follow */
    tables->text_bytes += (uint32_t)length + 1;
}

void hec_functions_named(uint64_t handle, const char *name) {
    hec_out_lock();
    if (tables && handle && name && name[0])
        add(handle, name);
    hec_out_unlock();
}

void hec_functions_same(uint64_t handle, uint64_t as) {
    hec_out_lock();
    const char *name = hec_functions_name(as);
    if (name && handle)
        add(handle, name);
    hec_out_unlock();
}
