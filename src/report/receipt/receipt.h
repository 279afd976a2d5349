/* The receipt of an experiment: all that it takes to check its verdict and to run it again. One side alone is a baseline of
 * `hec check`. Pure: bytes out; cli/receipt_read.h reads them back. */
#pragma once

#include "prove/experiment.h"
#include "report/run/report.h"

#define HEC_RECEIPT_SCHEMA "hec.receipt/1"
#define HEC_RECEIPT_TRIALS_MOST 4096
#define HEC_RECEIPT_LEVERS 1536
#define HEC_RECEIPT_TRIED 400
#define HEC_RECEIPT_EFFECT                                                                                             \
    "levers_in_effect" /* a fact: of levers of B that acted, what they say of themselves in the first trial */
#define HEC_RECEIPT_NO_EFFECT                                                                                          \
    "levers_without_effect" /* a fact: of levers of B that did nothing, what they say of themselves */

/* Lists own their texts; hec_receipt_add_* fill them. A failed one makes the receipt's `error`, so that who fills it checks once. */
struct hec_receipt_words {
    char **list; /* ends with NULL, as argv does; NULL where there is none */
    int count;
};
struct hec_receipt_facts {
    struct hec_receipt_fact {
        char *name, *value;
    } * list;
    int count;
};

/* What `hec try` found of a set of levers before the experiment: rows in the order in which they were first tried. */
enum hec_tried {
    HEC_TRIED_BASE,
    HEC_TRIED_KEPT,    /* the set of the experiment */
    HEC_TRIED_BETTER,  /* less than all before it: the search went on from it */
    HEC_TRIED_NO_GAIN, /* no better than the best before it */
    HEC_TRIED_SLOWER,  /* slower than is allowed */
    HEC_TRIED_NOTHING, /* it did nothing, or the program has it already */
    HEC_TRIED_FAILED,  /* the command failed under it, or took too long, or its results are wrong */
    HEC_TRIEDS
};
const char *hec_tried_name(enum hec_tried tried); /* "base": stable, in JSON */
struct hec_receipt_tried {
    char levers[HEC_RECEIPT_LEVERS]; /* "tf32,compile"; "": the base */
    enum hec_tried outcome;
    int trials;
    double joules_per_unit, units_per_second; /* NAN: not known */
    double joules[3], rate[3];                /* by the base: low, best, high; NAN: not known */
    char text[HEC_RECEIPT_TRIED];             /* what it saw, or why it failed; "": nothing */
};

/* A block of steps of the program in which `hec try` switched levers. */
struct hec_receipt_block {
    char levers[HEC_RECEIPT_LEVERS];         /* "": none was on */
    bool failed;                             /* the set is out by it */
    double switching_s, settling_s, seconds; /* as in act/live.h; NAN: not known */
    double joules_per_unit, units_per_second;
};

enum hec_receipt_writes { HEC_RECEIPT_IN_PLACE, HEC_RECEIPT_ON_DISK, HEC_RECEIPT_IN_MEMORY, HEC_RECEIPT_WRITES };
/* As act/trials.h has them. */
enum hec_receipt_caches {
    HEC_RECEIPT_CACHES_TRIALS,
    HEC_RECEIPT_CACHES_FRESH,
    HEC_RECEIPT_CACHES_USER,
    HEC_RECEIPT_CACHES
};

struct hec_receipt {
    char created[40]; /* wall time, ISO 8601 with zone */
    char hec_version[32];
    char *folder;                        /* where the commands ran; NULL: unknown */
    struct hec_receipt_words command[2]; /* A, B; of a baseline B has no words */
    struct hec_receipt_words levers;     /* that B ran under: NAME or NAME=VALUE */

    struct hec_receipt_facts environment; /* what of it matters: receipt/environment.def */
    struct hec_receipt_words withheld;    /* names whose values look like secrets */
    struct hec_receipt_facts facts;       /* versions and machine; names as of hec_condition_name where there is one */

    /* How trials ran. */
    int64_t steps;                    /* a trial was ended after so many; 0: not by this */
    enum hec_step_source steps_by;    /* the worst that counts; HEC_STEP_NONE: any */
    double seconds;                   /* the same */
    int warm_up;                      /* trials of each side before the first pair */
    char *simulated;                  /* --sim; NULL: real devices */
    struct hec_receipt_words units;   /* --units */
    struct hec_receipt_words printed; /* --unit */
    enum hec_receipt_writes writes;   /* where what trials wrote went: a layer that is gone, or in place */
    struct hec_receipt_words covered; /* folders over which that layer lay */
    struct hec_receipt_words left;    /* sentences: what trials may have left behind all the same */
    enum hec_receipt_caches caches;   /* those of compilers */
    int trace;                        /* enum hec_trace_mode */
    double trace_memory_mb;
    bool hooks;

    char unit[64];                   /* of work; "": none known of all trials */
    struct hec_receipt_tried *tried; /* by `hec try`; owned */
    int tried_count;
    struct hec_receipt_block *blocks; /* in the order in which they came; owned */
    int block_count;
    struct hec_experiment_plan plan;
    struct hec_experiment_trial *trials; /* in the order in which they ran; owned */
    int trial_count;
    struct hec_experiment_result result; /* hec_receipt_judge; of a baseline nothing */
    int error;                           /* of filling it: HEC_ERR_NOMEM, HEC_ERR_LIMIT */
};

/* An empty one is all 0. */
void hec_receipt_free(struct hec_receipt *receipt);
/* text: a member of the receipt, which it replaces. */
void hec_receipt_set(struct hec_receipt *receipt, char **text, const char *value);
void hec_receipt_add_word(struct hec_receipt *receipt, struct hec_receipt_words *words, const char *word);
/* Where it ran, without what looks like a secret. */
void hec_receipt_set_folder(struct hec_receipt *receipt, const char *folder);
void hec_receipt_add_fact(struct hec_receipt *receipt, struct hec_receipt_facts *facts, const char *name,
                          const char *value);
/* Of NAME=VALUE, NULL at the end, those that matter, in order of their names; secrets by name alone. */
void hec_receipt_add_environment(struct hec_receipt *receipt, char *const *variables);
/* The words of command A (0) or B (1), NULL at the end, without what looks like a secret. words NULL: none. */
void hec_receipt_add_command(struct hec_receipt *receipt, int side, char *const *words);
/* Whether they can be run as they are: nothing of them is withheld. */
bool hec_receipt_has_commands(const struct hec_receipt *receipt);

#define HEC_RECEIPT_WITHHELD "[withheld]" /* in the place of a secret */
/* Whether a name, of a variable or of an option of a command, says that its value is a secret. */
bool hec_receipt_is_secret(const char *name, size_t length, const char *value, bool option);
/* A copy, with HEC_RECEIPT_WITHHELD in place of what looks like a secret: who logs in in a URL, what begins like a token of a
 * known service, what was drawn at random. *withheld: is increased for each. The caller frees it. NULL: no memory. */
char *hec_receipt_without_secrets(const char *value, int *withheld);
/* Whose options the words of a command are. */
enum hec_receipt_program {
    HEC_RECEIPT_NONE,
    HEC_RECEIPT_UNKNOWN,
    HEC_RECEIPT_KNOWN,
    HEC_RECEIPT_WRAPPER,     /* of the program after it: env, nice */
    HEC_RECEIPT_SHELL,       /* -c: a command */
    HEC_RECEIPT_INTERPRETER, /* -c, -e: code */
    HEC_RECEIPT_CODE,
};
/* The same of the words of one command in turn: -p of mysql is a password. It begins as {.before = ""}; words stay where they are. */
struct hec_receipt_reading {
    uint64_t programs; /* that have rows for their options: a bit each */
    enum hec_receipt_program program;
    const char *before;
    size_t before_length;
    unsigned sets;          /* so many words more may be the name and value that a setter has */
    size_t argument, words; /* row of secret arguments, and 1; words without "-" since */
    bool counts;            /* the word from which on they count has been there */
};
char *hec_receipt_read_word(struct hec_receipt_reading *reading, const char *value, int *withheld);
void hec_receipt_add_tried(struct hec_receipt *receipt, const struct hec_receipt_tried *tried);
void hec_receipt_add_block(struct hec_receipt *receipt, const struct hec_receipt_block *block);
void hec_receipt_add_trial(struct hec_receipt *receipt, const struct hec_experiment_trial *trial);

/* The same of a trial, of which the others say the same: each value once, joined by "; ". */
void hec_receipt_add_fact_of_trial(struct hec_receipt *receipt, const char *name, const char *value);
const char *hec_receipt_fact(const struct hec_receipt_facts *facts, const char *name); /* NULL: it has none */
bool hec_receipt_is_baseline(const struct hec_receipt *receipt);

/* The result, from plan and trials. HEC_ERR_NOMEM. */
int hec_receipt_judge(struct hec_receipt *receipt);

/* JSON of docs/receipt.schema.json, and that schema: both from receipt.def. Numbers are exact. */
int hec_receipt_json(const struct hec_receipt *receipt, struct hec_buf *out);
int hec_receipt_schema(struct hec_buf *out);
/* For a pull request: the verdict first. */
int hec_receipt_markdown(const struct hec_receipt *receipt, struct hec_buf *out);
/* The verdict for people, as `hec ab` prints it at its end. */
int hec_receipt_terminal(const struct hec_receipt *receipt, const struct hec_report_style *style, struct hec_buf *out);
