/* Inside src/report: what the table HEC_JSON_TABLE needs, and its tables of stable names as functions name_ID(int), with
 * COUNT_ID of them. */
#pragma once

#include "base/clock.h"
#include "base/trace.h"
#include "diagnose/parallelism.h"
#include "diagnose/rules/facts.h"
#include "diagnose/result.h"
#include "report/format.h"
#include "report/run/report.h"
#include "report/words/timeline.h"

#include <jansson.h>

#define HEC_JSON_NAMES(id, function, type, count)                                                                      \
    enum { COUNT_##id = count };                                                                                       \
    static inline const char *name_##id(int i) {                                                                       \
        return function((type)i);                                                                                      \
    }
#define HEC_JSON_BEGIN(object, parameters, meaning)
#define HEC_JSON_BEGIN_MAYBE(object, parameters, absent, meaning)
#define HEC_JSON(key, kind, value, meaning)
#define HEC_JSON_LATER(key, kind, value, meaning)
#define HEC_JSON_NAME(key, names, value, meaning)
#define HEC_JSON_NAME_KNOWN(key, names, known, value, meaning)
#define HEC_JSON_OBJECT(key, object, arguments, meaning)
#define HEC_JSON_LIST(key, object, rows, meaning)
#define HEC_JSON_LIST_LATER(key, object, rows, meaning)
#define HEC_JSON_ROWS(function, parameters, count, when, row)
#define HEC_JSON_END
#include HEC_JSON_TABLE
#include "report/json_end.h"
