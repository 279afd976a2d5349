/* Nothing of a trial survives its experimenter.
 *
 * hec_supervisor_start forks. The process that the user knows becomes a supervisor: it passes signals on, follows job control,
 * waits, and exits as the worker does; where the worker dies, it kills all that is left below it and removes the scratch folders.
 * The worker goes on as hec, and a thread of it does the same where the supervisor is killed. Where both are killed at once, the
 * kernel ends the trial's command (hec_session_options.tied), and the next start kills what that had started, which it knows by a
 * mark in its environment, and removes the folders. */
#pragma once

#include "base/error.h"
#include "launch/layer.h"

#include <stdbool.h>

/* Before any thread starts, with the options that the layers will be made with; folders: more places where scratch folders may be made
 * (beside run files), NULL-terminated, or NULL; all texts must live as
 * long as the process. Cleans up after earlier ones that were killed. Returns in
 * the worker; on failure in the only process there is. */
int hec_supervisor_start(const struct hec_layer_options *layers, const char *const *folders, struct hec_why *why);

/* Kill every descendant of this process, and wait until there is none. False: some could not be killed in 30 s. */
bool hec_supervisor_sweep(void);

/* _exit, as exit does it, or the end by a signal (0: none), which the supervisor passes on: where the supervisor is gone, after what that
 * makes necessary. With or without a supervisor. */
_Noreturn void hec_supervisor_exit(int signal, int status);

/* NAME and value of the mark in the environment of all that this worker starts; the value is NULL without a supervisor. */
#define HEC_SUPERVISOR_ENV "HEC_TRIAL"
const char *hec_supervisor_mark(void);
