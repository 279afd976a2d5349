/* A scratch layer: what a trial writes goes beside the user's files and is thrown away with the trial.
 *
 * In a mount namespace of its own the command sees the working folder, the home, the folders for temporary files and those for caches with
 * an overlay on top, at the same paths and under the same ids; /dev/shm is a fresh one. As root that takes CAP_SYS_ADMIN;
 * others need a user namespace, and in it the command has no more rights than before. All else, such as
 * /data/out, is written for real: hec_layer_folder lists what is covered.
 *
 *     if (hec_layer_open(&options, &layer, &why) < 0)
 *         ... why.text: why not here; --in-place has to be asked for ...
 *     for each trial
 *         hec_session_start with .layer = layer; hec_session_wait; hec_session_close
 *         hec_supervisor_sweep();                 nothing of the trial writes any more
 *         hec_layer_renew(layer, &why);       the next one finds everything as it was
 *     hec_layer_close(layer);
 *
 * A killed process leaves the scratch folder; hec_layer_sweep removes it (launch/supervisor.h does so by itself). */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All texts must live as long as the layer. */
struct hec_layer_options {
    char *const *environment;   /* of the trials, for HOME, TMPDIR, XDG_CACHE_HOME ...; NULL: this process's */
    const char *scratch_parent; /* where the scratch folder is made; NULL: chosen */
    const char *const
        *shared; /* files and folders that stay as they are and are written for real; NULL-terminated, or NULL */
    int64_t memory_max_bytes; /* what may be written where it has to be held in memory; 0: half of what is free */
};

struct hec_layer;

/* Make a layer, and try it for real in a process of its own: every mount, and what programs do with files. One clear sentence where
 * the system does not allow it. */
int hec_layer_open(const struct hec_layer_options *options, struct hec_layer **out, struct hec_why *why);

/* Throw away what the last trial wrote. None of its processes may be left. */
int hec_layer_renew(struct hec_layer *layer, struct hec_why *why);

/* The same, and the scratch folder. Nothing happens to NULL. */
void hec_layer_close(struct hec_layer *layer);

/* The folders that are covered, in order; NULL after the last. */
const char *hec_layer_folder(const struct hec_layer *layer, size_t i);

struct hec_layer_scratch {
    const char *path;   /* the folder that holds what is written; "": none, it is held in memory */
    int64_t free_bytes; /* there, when the layer was opened; in memory: the limit */
    bool
        private_shm; /* /dev/shm and System V IPC are the trial's own; not beside NVIDIA's MPS, which needs the system's */
    bool user_namespace;
};
struct hec_layer_scratch hec_layer_scratch(const struct hec_layer *layer);

/* Remove what killed processes left in the places where layers are made for this environment. */
void hec_layer_sweep(const struct hec_layer_options *options);

/* --- for launch/child.c --- */

struct hec_layer_fault {
    int errnum, step, at; /* enum hec_layer_step; the place in the layer's list, where it is about one */
};

/* In the child, between fork and exec: only calls that are safe there. `also`: more files and folders that stay as they are, at most
 * HEC_LAYER_ALSO_MAX, NULL-terminated. 0 or -1. */
#define HEC_LAYER_ALSO_MAX 4
int hec_layer_enter(const struct hec_layer *layer, const char *const *also, struct hec_layer_fault *fault);

/* The fault as a sentence. */
int hec_layer_explain(const struct hec_layer *layer, const struct hec_layer_fault *fault, struct hec_why *why);
