/* The argument of `hec run --sim`, and the list of visible devices: text typed by people. */
#include "sim/ids.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_text(data, size);
    if (!text)
        return 0;
    struct sim_spec spec;
    struct hec_why why = {""};
    int err = sim_spec_parse(text, &spec, &why);
    if (err == HEC_OK ? !sim_profile_find(spec.profile) || spec.count < 1 || spec.count > SIM_DEVICE_MAX
                      : why.text[0] == '\0')
        abort();
    spec = (struct sim_spec){.count = 3, .mig = true};
    int device, instance;
    for (int ordinal = 0; ordinal < 3; ordinal++)
        if (sim_visible_device(&spec, text, ordinal, &device, &instance, &why) == HEC_OK &&
            (device < 0 || device >= spec.count || instance < 0 || instance > 1))
            abort();
    free(text);
    return 0;
}
