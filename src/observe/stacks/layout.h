/* Where a version of CPython keeps what a stack is read from: of 3.8 to 3.12 by its headers, from 3.13 on as the
 * interpreter itself says it at the beginning of _PyRuntime. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_PYTHON_NONE UINT32_MAX
#define HEC_PYTHON_MINOR_FIRST 8
#define HEC_PYTHON_MINOR_LAST 14
#define HEC_PYTHON_MINOR_TOLD 13 /* from here on the interpreter says it */
#define HEC_PYTHON_TOLD_BYTES 1024

/* What is read as one block is no longer than that. */
#define HEC_PYTHON_THREAD_BYTES 512
#define HEC_PYTHON_FRAME_BYTES 256
#define HEC_PYTHON_CODE_BYTES 256

struct hec_python_layout {
    int minor;
#define HEC_PYTHON_FIELD(name, ...) uint32_t name;
#include "observe/stacks/layouts.def"
#undef HEC_PYTHON_FIELD
    /* of the blocks, from the beginning of the structure: all fields lie in them */
    uint32_t thread_bytes, frame_bytes, code_bytes;
};

/* By the headers of Python 3.MINOR. False: not a known version. */
bool hec_python_layout_of(int minor, struct hec_python_layout *layout);

/* As a _Py_DebugOffsets says, of which `told` is the beginning. False: it is none, of a version that is not known, of an
 * interpreter without a global lock, or makes no sense. */
bool hec_python_layout_told(const unsigned char *told, size_t size, struct hec_python_layout *layout);

static inline bool hec_python_has(uint32_t field) {
    return field != HEC_PYTHON_NONE;
}
