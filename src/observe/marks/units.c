#include "observe/marks/units.h"

#include <stdio.h>
#include <string.h>

void hec_marks_units_add(struct hec_marks_units *units, const char *name, double count) {
    if (!name || !name[0])
        name = HEC_MARKS_UNIT_DEFAULT;
    int i = 0;
    while (i < units->count && strcmp(units->unit[i].name, name) != 0)
        i++;
    if (i == HEC_MARKS_UNITS_MAX) {
        units->refused++;
        return;
    }
    if (i == units->count) {
        units->count++;
        snprintf(units->unit[i].name, sizeof units->unit[i].name, "%s", name);
        units->unit[i].pending = 0;
    }
    units->unit[i].pending += count;
}

void hec_marks_units_flush(struct hec_marks_units *units, const struct hec_sink *sink) {
    for (int i = 0; i < units->count; i++) {
        if (units->unit[i].pending != 0)
            sink->units(sink->context, units->unit[i].name, units->unit[i].pending);
        units->unit[i].pending = 0;
    }
}
