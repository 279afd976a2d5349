/* What the files of the layer share; for no other. */
#pragma once

#include "base/scratch.h"
#include "launch/layer.h"

#include <linux/capability.h>
#include <sys/stat.h>

#define HEC_LAYER_PLACES_MAX 256
#define HEC_LAYER_PARENTS_MAX 3
#define HEC_LAYER_IN_MEMORY (-1)

enum hec_layer_kind {
    HEC_LAYER_OVERLAY, /* a folder with a scratch layer on top */
    HEC_LAYER_AS_IS,   /* a mount below one that nothing can be written into, or that holds no files: seen as before */
    HEC_LAYER_SHARED,  /* stays as it is by choice */
    HEC_LAYER_SOCKET,  /* of a server outside: through an overlay it would refuse connections; it may go at any time */
    HEC_LAYER_FRESH,   /* /dev/shm: an empty tmpfs */
};

/* A path that has another mount inside the layer. Parents stand before what lies in them. */
struct hec_layer_place {
    enum hec_layer_kind kind;
    char *path;
    char *type;          /* of its file system */
    bool mounted;        /* it is the root of a mount */
    unsigned long flags; /* of the mount: nosuid, noexec ... */
    char data[64];       /* fresh: size and mode */
    int scratch;         /* overlay: which scratch folder, or HEC_LAYER_IN_MEMORY */
    struct stat status;  /* overlay: of the folder beneath */
    mode_t mode;         /* overlay: the mode that gives this user the rights it has there */
    bool in_memory;      /* overlay: what is beneath it is memory */
    bool writable;       /* overlay: for this user */
    char acl[2][512];    /* overlay: access and default ACL, as the file system keeps them */
    size_t acl_length[2];
    char upper[32], work[32]; /* overlay: names in the scratch folder */
};

struct hec_layer {
    char *folder; /* the working folder */
    struct hec_layer_place *places;
    size_t count, capacity;
    char parents[HEC_LAYER_PARENTS_MAX][PATH_MAX]; /* where scratch folders may be made, the most free first */
    size_t parent_count;
    struct hec_scratch scratches[HEC_LAYER_PARENTS_MAX]; /* one a parent, where it is used */
    bool user_namespace;                                 /* else a mount namespace, as root */
    bool user_xattr;                                     /* overlayfs keeps its notes in user.overlay.* */
    bool own_shm, any_memory;
    int64_t memory_bytes, free_bytes;
    char memory_data[64];
    bool may_mount; /* without a user namespace */
    bool all_ids;   /* this user may map all ids into a user namespace, and does; else only its own */
    char uid_map[512], gid_map[512];
    struct __user_cap_data_struct caps[2]; /* what this process has */
};

/* Folders inside the layer and mounts below them. Nothing is made. */
int hec_layer_plan(struct hec_layer *layer, const struct hec_layer_options *options, struct hec_why *why);

/* What a scratch folder over this place has to look like. */
int hec_layer_describe(struct hec_layer *layer, size_t number, struct hec_why *why);

/* In a user namespace that has only the user's own ids: is there a folder from path up to `folder` that could not be changed with what
 * is in it? */
bool hec_layer_foreign_between(const struct hec_layer *layer, const char *folder, const char *path);

/* What this user could change in the folder without a layer, and could not in it: a sentence, rather than a program that fails. In
 * folders for temporary files lies much that is of no concern. */
int hec_layer_check_owners(const struct hec_layer *layer, const char *folder, struct hec_why *why);

/* The same path, or below it. */
bool hec_layer_inside(const char *path, const char *folder);

/* hec_layer_enter; probing: with one more overlay, on the folder HEC_LAYER_PROBE of the first scratch folder or of the memory, which
 * *probe is then open at. */
#define HEC_LAYER_PROBE "probe"
int hec_layer_enter_probing(const struct hec_layer *layer, const char *const *also, int *probe,
                            struct hec_layer_fault *fault);

/* Folders for what is written, in the open scratch folder: as the folders beneath them are. Safe between fork and exec. 0 or -1. */
int hec_layer_make_uppers(const struct hec_layer *layer, int scratch, int folder);

/* Try it in a process of its own. */
int hec_layer_try(const struct hec_layer *layer, struct hec_layer_fault *fault);

/* What went wrong, in order. Text: what could not be done, for a sentence "cannot ...: why". */
#define HEC_LAYER_STEPS(STEP)                                                                                          \
    STEP(NONE, "be used")                                                                                              \
    STEP(NAMESPACE, "make a namespace")                                                                                \
    STEP(MAP, "keep this user's id in a user namespace")                                                               \
    STEP(PRIVATE, "make its mounts its own")                                                                           \
    STEP(OPEN, "open")                                                                                                 \
    STEP(SCRATCH, "open the scratch folder for")                                                                       \
    STEP(MEMORY, "mount a file system in memory")                                                                      \
    STEP(MOUNT, "mount")                                                                                               \
    STEP(FOLDER, "enter the working folder")                                                                           \
    STEP(RIGHTS, "give up the rights of the namespace")                                                                \
    STEP(TRY, "change files in a scratch layer as programs do")                                                        \
    STEP(WRITE, "write through the scratch layer over")                                                                \
    STEP(FORK, "start a process")
enum hec_layer_step {
#define HEC_LAYER_STEP(name, text) HEC_LAYER_STEP_##name,
    HEC_LAYER_STEPS(HEC_LAYER_STEP)
#undef HEC_LAYER_STEP
};
