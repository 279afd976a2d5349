#include "cli/cli.h"

#include "launch/paths.h"

#include <dlfcn.h>
#include <string.h>

int hec_module_load(const char *name, const char *entry, void *function, struct hec_why *why) {
    char path[PATH_MAX];
    int err = hec_path_lib(name, path, why);
    if (err < 0)
        return err;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, entry) : NULL;
    if (!symbol)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "%s cannot be loaded: %s", name, dlerror());
    memcpy(function, &symbol, sizeof symbol);
    return HEC_OK;
}
