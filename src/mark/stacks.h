/* Inside libhec.so: the tree of Python call stacks, as stacks.c samples it. */
#ifndef HEC_MARK_STACKS_H
#define HEC_MARK_STACKS_H

#include <stdbool.h>
#include <stdint.h>

/* The functions of CPython that are used, looked up in the program; all but the last two of every version since 3.9.
 * X(result, name, parameters) */
#define HEC_PYTHON_CALLS(X)                                                                                            \
    X(int, Py_AddPendingCall, (int (*call)(void *), void *argument))                                                   \
    X(int, PyGILState_Ensure, (void))                                                                                  \
    X(void, PyGILState_Release, (int state))                                                                           \
    X(void *, PyEval_SaveThread, (void))                                                                               \
    X(void, PyEval_RestoreThread, (void *state))                                                                       \
    X(void *, PyThreadState_Get, (void))                                                                               \
    X(void *, PyThreadState_GetFrame, (void *state))                                                                   \
    X(void *, PyFrame_GetBack, (void *frame))                                                                          \
    X(void *, PyFrame_GetCode, (void *frame))                                                                          \
    X(int, PyFrame_GetLineNumber, (void *frame))                                                                       \
    X(void *, PyObject_GetAttrString, (void *object, const char *name))                                                \
    X(const char *, PyUnicode_AsUTF8AndSize, (void *text, intptr_t *bytes))                                            \
    X(void, PyErr_Clear, (void))                                                                                       \
    X(void, Py_IncRef, (void *object))                                                                                 \
    X(void, Py_DecRef, (void *object))

struct hec_python {
#define X(result, name, parameters) result(*name) parameters;
    HEC_PYTHON_CALLS(X)
#undef X
    int (*PyFrame_GetLasti)(void *frame); /* since 3.11; NULL: a place is a line */
};

/* The node of the stack whose innermost frame this is (a new reference, taken over); 0: there is none, or no room. In a
 * thread that has the interpreter's lock. Runs none of the program's code. */
uint32_t hec_stacks_node(const struct hec_python *python, void *frame);
/* In the child of a fork: no node is defined. Code that is held stays held. */
void hec_stacks_forget_nodes(void);

#endif
