/* The tree of Python call stacks: (parent, code, place in it) to a node, which libhec tells once (hec_hook_frame). */
#include "mark/hooks.h"
#include "mark/stacks.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 100 /* frames of a sample that are kept: the outermost, and the innermost */
#define OUTERMOST 30
#define WALK_MAX 1000
#define NODES_MAX 60000u
#define PLACES_MAX 200000u
#define PLACES_FIRST 1024u
#define IMPORTS "<frozen importlib" /* frames of the import system say nothing */
#define MODULE "<module>"

/* What a place is in its code: an instruction, or a line as told by PLACE_LINE. */
#define PLACE_LINE INT32_MIN

struct place {
    uintptr_t code; /* the object, held; of a module that is being imported a hash of its file */
    uint32_t parent;
    int32_t at;
    uint32_t node; /* 0: the slot is free */
};

static struct place *places;
static uint32_t room, used, next_node = 1;

static uint32_t slot_of(const struct place *in, uint32_t size, uintptr_t code, uint32_t parent, int32_t at) {
    uint64_t hash = ((uint64_t)code ^ ((uint64_t)parent << 40) ^ (uint32_t)at) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t i = (uint32_t)(hash >> 32) & (size - 1);
    while (in[i].node && (in[i].code != code || in[i].parent != parent || in[i].at != at))
        i = (i + 1) & (size - 1);
    return i;
}

static bool grow(void) {
    uint32_t size = room ? 2 * room : PLACES_FIRST;
    struct place *grown = calloc(size, sizeof *grown);
    if (!grown)
        return false;
    for (uint32_t i = 0; i < room; i++)
        if (places[i].node)
            grown[slot_of(grown, size, places[i].code, places[i].parent, places[i].at)] = places[i];
    free(places);
    places = grown;
    room = size;
    return true;
}

static uint32_t find(uintptr_t code, uint32_t parent, int32_t at) {
    return room ? places[slot_of(places, room, code, parent, at)].node : 0;
}

static void keep(uintptr_t code, uint32_t parent, int32_t at, uint32_t node) {
    if (node == 0 || used >= PLACES_MAX || (3 * used >= 2 * room && !grow()))
        return;
    places[slot_of(places, room, code, parent, at)] = (struct place){code, parent, at, node};
    used++;
}

/* A text of a code object, in `to`; false: there is none. */
static bool text_of(const struct hec_python *python, void *code, const char *name, char *to, size_t size) {
    void *object = python->PyObject_GetAttrString(code, name);
    intptr_t bytes = 0;
    const char *text = object ? python->PyUnicode_AsUTF8AndSize(object, &bytes) : NULL;
    if (!text)
        python->PyErr_Clear();
    /* the end says more of a long path */
    const char *from = text && (size_t)bytes >= size ? text + (size_t)bytes - size + 1 : text;
    memcpy(to, from ? from : "?", from ? strlen(from) + 1 : 2);
    if (object)
        python->Py_DecRef(object);
    return text != NULL;
}

static uint32_t define(uint32_t parent, const char *file, const char *function, int line) {
    if (next_node >= NODES_MAX || !hec_hook_frame(next_node, parent, file, function, (uint32_t)(line > 0 ? line : 0)))
        return 0;
    return next_node++;
}

static uintptr_t hash_of(const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (uintptr_t)hash;
}

/* The node of a frame that was not met at this place before; 0: no room. */
static uint32_t meet(const struct hec_python *python, void *frame, void *code, uint32_t parent, int32_t at) {
    char file[256], function[256];
    uint32_t node;
    text_of(python, code, "co_filename", file, sizeof file);
    if (!text_of(python, code, "co_qualname", function, sizeof function)) /* since 3.11 */
        text_of(python, code, "co_name", function, sizeof function);
    if (parent && strcmp(function, MODULE) == 0) {
        /* of a module that is being imported the line does not matter, and its code is soon gone */
        uintptr_t module = hash_of(file);
        if (strncmp(file, IMPORTS, sizeof IMPORTS - 1) == 0)
            return parent;
        if ((node = find(module, parent, PLACE_LINE)) == 0)
            keep(module, parent, PLACE_LINE, node = define(parent, file, function, 0));
        return node;
    }
    int line = python->PyFrame_GetLineNumber(frame);
    if (strncmp(file, IMPORTS, sizeof IMPORTS - 1) == 0) {
        node = parent;
    } else if ((node = find((uintptr_t)code, parent, PLACE_LINE + line)) == 0) {
        node = define(parent, file, function, line);
        python->Py_IncRef(code);
        keep((uintptr_t)code, parent, PLACE_LINE + line, node);
    }
    python->Py_IncRef(code); /* the address stays its own */
    keep((uintptr_t)code, parent, at, node);
    return node;
}

uint32_t hec_stacks_node(const struct hec_python *python, void *frame) {
    void *frames[WALK_MAX];
    uint32_t count = 0, node = 0;
    bool room_left = true;
    for (; frame && count < WALK_MAX; frame = python->PyFrame_GetBack(frame))
        frames[count++] = frame;
    if (frame)
        python->Py_DecRef(frame);
    for (uint32_t i = count; i-- > 0;) {
        bool middle = count > DEPTH_MAX && i >= DEPTH_MAX - OUTERMOST && i < count - OUTERMOST;
        if (room_left && !middle) {
            void *code = python->PyFrame_GetCode(frames[i]);
            int32_t at = python->PyFrame_GetLasti ? python->PyFrame_GetLasti(frames[i])
                                                  : python->PyFrame_GetLineNumber(frames[i]);
            uint32_t known = find((uintptr_t)code, node, at);
            uint32_t met = known ? known : meet(python, frames[i], code, node, at);
            python->Py_DecRef(code);
            room_left = met != 0 || node == 0; /* an import may be outermost */
            node = met;
        }
        python->Py_DecRef(frames[i]);
    }
    return room_left ? node : 0;
}

void hec_stacks_forget_nodes(void) {
    free(places);
    places = NULL;
    room = used = 0;
    next_node = 1;
}
