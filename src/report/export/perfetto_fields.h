/* Inside src/report: the numbers of Perfetto's fields that are written (perfetto.dev/docs/reference/trace-packet-proto). */
#ifndef HEC_REPORT_EXPORT_PERFETTO_FIELDS_H
#define HEC_REPORT_EXPORT_PERFETTO_FIELDS_H

enum trace_field { TRACE_PACKET = 1 };

enum packet_field {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,
};
enum packet_flag { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

enum event_field {
    EVENT_CATEGORY_IID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_DOUBLE_VALUE = 44,
    EVENT_FLOW = 47,
};
enum event_type { EVENT_BEGIN = 1, EVENT_END = 2, EVENT_INSTANT = 3, EVENT_COUNTER = 4 };

enum track_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_CHILD_ORDER = 11,
    TRACK_RANK = 12,
};
enum track_child_order { TRACK_CHILDREN_EXPLICIT = 3 };
enum process_field { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum counter_field { COUNTER_UNIT_NAME = 6 };

enum interned_field {
    INTERNED_CATEGORY = 1,
    INTERNED_NAME = 2,
    INTERNED_ANNOTATION = 3,
    INTERNED_STRING = 29,
    INTERNED_IID = 1,
    INTERNED_TEXT = 2,
};
enum annotation_field { ANNOTATION_NAME_IID = 1, ANNOTATION_DOUBLE = 5, ANNOTATION_STRING_IID = 17 };

#endif
