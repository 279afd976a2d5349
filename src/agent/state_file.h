/* What the agent sums up, kept over its restarts: a text file, replaced as a whole, with a digest that is checked on reading.
 * "state" is written before a page is shown, so that no counter that was scraped is lower after a restart, kill -9 included.
 * Nobody waits for a disk for that: "state.synced", written once a minute and at the end, is the one that a crash of the
 * machine leaves whole. */
#pragma once

#include "agent/node.h"
#include "base/error.h"

#include <sys/types.h>

struct hec_state_file {
    int folder, lock; /* -1: nothing is kept */
    uid_t owner;      /* another user who may own it: the one that the agent becomes */
    bool saved;       /* the last write worked */
    uint64_t failed;  /* writes that did not */
    struct hec_buf text;
};

/* Makes the folder where it is missing. HEC_ERR_BUSY: another agent keeps its state there; HEC_ERR_PERMISSION: others but owner may write
 * there (base/own.h); errors with a sentence. */
int hec_state_file_open(struct hec_state_file *file, const char *folder, uid_t owner, struct hec_why *why);
/* Into a node that has seen nothing. HEC_ERR_NOTFOUND: there is none yet; HEC_ERR_CORRUPT, _VERSION, with a sentence: neither is
 * whole, and the first was set aside as state.damaged. */
int hec_state_file_load(struct hec_state_file *file, struct hec_node *node, struct hec_why *why);
/* synced: "state.synced", and wait until the disk has it. */
int hec_state_file_save(struct hec_state_file *file, struct hec_node *node, bool synced);
/* What root opened becomes that user's, who goes on with it: the folder where it is new or holds nothing but such state, and the state
 * in it. HEC_ERR_PERMISSION with a sentence: it is somebody else's. */
int hec_state_file_give(struct hec_state_file *file, const char *folder, uid_t user, gid_t group, struct hec_why *why);
void hec_state_file_close(struct hec_state_file *file);
