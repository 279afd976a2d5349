/* Inside src/report: the macros of a table of JSON, to be defined anew for another reading of it. */
#undef HEC_JSON_NAMES
#undef HEC_JSON_BEGIN
#undef HEC_JSON_BEGIN_MAYBE
#undef HEC_JSON
#undef HEC_JSON_LATER
#undef HEC_JSON_NAME
#undef HEC_JSON_NAME_KNOWN
#undef HEC_JSON_OBJECT
#undef HEC_JSON_LIST
#undef HEC_JSON_LIST_LATER
#undef HEC_JSON_ROWS
#undef HEC_JSON_END
