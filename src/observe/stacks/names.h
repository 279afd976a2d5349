/* The names and lines of frames, which a process's code objects hold: each is read once, and known again by where it lies
 * and what it points to. */
#pragma once

#include "model/run.h"
#include "observe/stacks/walk.h"

#define HEC_PYTHON_DEPTH_MAX 100 /* frames of a sample that are kept: the outermost 30, and the innermost */

struct hec_python_code {
    uint64_t address, filename, name, lines, size; /* size: instructions (from 3.11 on), or where they lie */
    int32_t first_line;
    uint32_t file, function; /* ids of the sink */
    bool imports;            /* of the import system, which says nothing */
    bool module;             /* the code of a module, or of the program */
    bool generated;          /* of no file: gone and made again at any time */
    bool ours;               /* of HEC's hooks */
};

struct hec_python_names {
    const struct hec_sink *sink;
    struct hec_python_code *codes;
    size_t code_count, code_room;
    uint32_t *code_slots; /* by address: index plus 1 */
    size_t code_slot_count;
    struct hec_python_place {
        uint32_t parent, code; /* code: index plus 1; 0: free */
        int32_t instruction;
        uint32_t frame;
    } * places;
    size_t place_count, place_slot_count;
};

/* By depth, from the outermost frame on: what the frames of a thread's stack are to the sink. */
struct hec_python_named {
    struct hec_python_level {
        uint32_t frame; /* so far; frames of the import system have none */
        bool imports, ours;
    } * levels;
    int count, room; /* count: so many are certain to be the same as long as frame and code are */
};

/* Names the frames of the stack, of which the outermost `same` are as they were. *leaf: the sink's id of the innermost one; 0: there
 * is nothing to tell. 0 or HEC_PYTHON_TORN, or HEC_ERR_NOMEM. */
int hec_python_name(struct hec_python_names *names, const struct hec_python *python, const struct hec_memory *memory,
                    struct hec_python_scratch *scratch, const struct hec_python_stack *stack, int same,
                    struct hec_python_named *named, uint32_t *leaf);

void hec_python_names_free(struct hec_python_names *names); /* to be used again, for another program */
void hec_python_named_free(struct hec_python_named *named);
