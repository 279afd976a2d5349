/* The second way in for HEC's Python hooks. They come by PYTHONPATH; where the program replaced that, or Python reads none
 * (python -E, -I), they would be missing. A Python that runs CUDA's initialisation is asked to load them: Py_AddPendingCall may
 * be called from any thread without the interpreter's lock, and has the main thread run a function between two instructions,
 * as handlers of signals are run. Where the interpreter is not found (PyPy, one that was loaded with RTLD_LOCAL) nothing
 * happens. */
#include "tracer/tracer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_INPUT 257 /* Py_file_input */

/* Of CPython 3.8 to 3.14: functions of its C interface, and two exceptions. */
static struct {
    int (*is_initialized)(void);
    int (*add_pending_call)(int (*function)(void *), void *argument);
    void *(*builtins)(void);
    void *(*dict_new)(void);
    int (*dict_set)(void *dict, const char *key, void *value);
    /* not PyRun_String, which has Python end itself by SIGINT at its exit when Ctrl-C came meanwhile, also where the program caught it */
    void *(*compile)(const char *code, const char *file, int start);
    void *(*evaluate)(void *code, void *globals, void *locals);
    int (*error_matches)(void *type);
    void (*error_clear)(void);
    void (*release)(void *object);
    void **exception; /* PyExc_Exception */
} python;

static const struct {
    const char *name;
    void **to;
} symbols[] = {
    {"Py_IsInitialized", (void **)&python.is_initialized}, {"Py_AddPendingCall", (void **)&python.add_pending_call},
    {"PyEval_GetBuiltins", (void **)&python.builtins},     {"PyDict_New", (void **)&python.dict_new},
    {"PyDict_SetItemString", (void **)&python.dict_set},   {"Py_CompileString", (void **)&python.compile},
    {"PyEval_EvalCode", (void **)&python.evaluate},        {"PyErr_ExceptionMatches", (void **)&python.error_matches},
    {"PyErr_Clear", (void **)&python.error_clear},         {"Py_DecRef", (void **)&python.release},
    {"PyExc_Exception", (void **)&python.exception},
};

/* In names of its own: nothing of it is left in the program's, and no bytecode is written. */
static const char code[] = "try:\n"
                           "    import os, sys\n"
                           "    if '_hec_hooks_start' not in sys.modules:\n"
                           "        writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True\n"
                           "        sys.path.append(os.environ['HEC_HOOKS_FOLDER'])\n"
                           "        try:\n"
                           "            try:\n"
                           "                import _hec_hooks_start\n"
                           "            finally:\n"
                           "                sys.path.remove(os.environ['HEC_HOOKS_FOLDER'])\n"
                           "            _hec_hooks_start.late()\n"
                           "        finally:\n"
                           "            sys.dont_write_bytecode = writes_none\n"
                           "except Exception:\n"
                           "    pass\n";

/* An error of ours ends here; what else comes meanwhile (Ctrl-C, what a handler raises) is the program's, and goes on. */
static int failed(void) {
    if (!python.error_matches(*python.exception))
        return -1;
    python.error_clear();
    return 0;
}

/* In Python's main thread, which has the lock. */
static int load_hooks(void *unused) {
    (void)unused;
    void *globals = python.dict_new(), *builtins = python.builtins(), *compiled = NULL, *result = NULL;
    if (globals && builtins && python.dict_set(globals, "__builtins__", builtins) == 0)
        compiled = python.compile(code, "<hec>", FILE_INPUT);
    if (compiled)
        result = python.evaluate(compiled, globals, globals);
    int outcome = result ? 0 : failed();
    if (result)
        python.release(result);
    if (compiled)
        python.release(compiled);
    if (globals)
        python.release(globals);
    return outcome;
}

/* sitecustomize has said so: it runs before all that a program could do. */
static bool has_hooks(void) {
    const char *text = secure_getenv("HEC_HOOKS_PID");
    return text && strtol(text, NULL, 10) == (long)getpid();
}

void hec_python_offer_hooks(void) {
    const char *wanted = secure_getenv("HEC_HOOKS"), *folder = secure_getenv("HEC_HOOKS_FOLDER");
    if (!wanted || strcmp(wanted, "0") == 0 || !folder || !folder[0] || has_hooks())
        return;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (!(*symbols[i].to = dlsym(RTLD_DEFAULT, symbols[i].name)))
            return;
    if (python.is_initialized())
        python.add_pending_call(load_hooks, NULL);
}
