/* The lists of docs/metrics.md, in Markdown, an item a line. */
#include "agent/dcgm.h"
#include "agent/metrics.h"
#include "model/throttle.h"

#include <stdio.h>
#include <string.h>

static void put_own(void) {
    puts("### Metrics of HEC\n");
    for (int i = 0; i < HEC_AGENT_METRIC_COUNT; i++) {
        const struct hec_agent_metric_info *m = hec_agent_metric_info((enum hec_agent_metric)i);
        printf("- `%s` (%s%s%s): %s%s\n", m->name, hec_family_kind_name(m->kind), m->labels[0] ? " by " : "", m->labels,
               m->help, m->more ? " With `--all-series`." : "");
    }
}

static void put_values(void) {
    puts("\n### Values of their labels\n");
#define HEC_AGENT_PART(id, value, meaning) puts("- part `" value "`: " meaning);
#define HEC_AGENT_STATE(id, value, meaning) puts("- state `" value "`: " meaning);
#define HEC_AGENT_VERDICT(id, value, meaning) puts("- verdict `" value "`: " meaning);
#define HEC_AGENT_USE(value, meaning) puts("- use `" value "`: " meaning);
#define HEC_AGENT_BY(value, meaning) puts("- by `" value "`: " meaning);
#include "agent/values.def"
    for (int i = 0; i < HEC_THROTTLE_UNASKED; i++) {
        const struct hec_throttle_info *info = hec_throttle_info((enum hec_throttle)i);
        printf("- reason `%s`: %s\n", info->name, info->meaning);
    }
}

static const char *source_of(const struct hec_dcgm_field *field, char *text, size_t size) {
    if (field->how == HEC_DCGM_LABEL)
        return "a label of the others";
    if (field->how == HEC_DCGM_NODE)
        return "as `hec_device_throttled_seconds_total`";
    if (field->how == HEC_DCGM_POWER_DEFAULT)
        return "what the device says";
    if (field->how == HEC_DCGM_COUNT)
        return "devices of the vendor";
    const char *plus = field->plus == HEC_DCGM_NONE ? NULL : hec_metric_info(field->plus)->name;
    snprintf(text, size, "%s%s%s%s",
             field->how == HEC_DCGM_TOTAL   ? "integral of "
             : field->how == HEC_DCGM_SHARE ? "share of "
                                            : "",
             hec_metric_info(field->metric)->name, plus ? field->how == HEC_DCGM_SHARE ? " in it + " : " + " : "",
             plus ? plus : "");
    return text;
}

static void put_dcgm(void) {
    static const char *const sets[] = {[HEC_DCGM_DEFAULT] = "by default",
                                       [HEC_DCGM_LISTED] = "by `--all-series`, or `-f`",
                                       [HEC_DCGM_ASKED] = "by `-f`",
                                       [HEC_DCGM_OLD] = "by the option, or `-f`"};
    const struct hec_dcgm_field *field;
    char text[128];
    puts(
        "\n### Metrics of dcgm-exporter\n\nThe metric of HEC that each is made from stands in brackets, and which devices and drivers "
        "have it, where not all have.\n");
    for (size_t i = 0; (field = hec_dcgm_field(i)); i++) {
        const char *needs = hec_dcgm_needs(field);
        if (field->how == HEC_DCGM_ABSENT)
            continue;
        printf("- `%s` (%s, %s; %s%s%s): %s\n", field->name,
               field->kind == HEC_FAMILY_INFO ? "label" : hec_family_kind_name(field->kind), sets[field->set],
               source_of(field, text, sizeof text), needs ? "; " : "", needs ? needs : "", field->help);
    }
    puts("\n### Fields of dcgm-exporter's lists that are absent\n\nIts default list, what is commented out in it, or "
         "published dashboards ask for them.\n");
    for (size_t i = 0; (field = hec_dcgm_field(i)); i++)
        if (field->how == HEC_DCGM_ABSENT)
            printf("- `%s`, %.*s: %s\n", field->name,
                   (int)strlen(field->help) - (field->help[strlen(field->help) - 1] == '.'), field->help, field->why);
}

int main(void) {
    put_own();
    put_values();
    put_dcgm();
    return 0;
}
