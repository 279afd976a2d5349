/* hec levers: what HEC can change of a command from outside; act/levers.def has it all. */
#include "act/levers.h"

#include "base/log.h"
#include "cli/cli.h"
#include "report/json_print.h"

#include <stdio.h>
#include <string.h>

#define NAME_WIDTH 21
#define TEXT_COLUMN 33

/* ---- JSON ---- */

static json_t *answers_of(const struct hec_lever_row *row) {
    json_t *list = json_array();
    for (int i = 0; i < HEC_LEVER_COUNT; i++)
        if (row->answers & (UINT64_C(1) << i))
            json_array_append_new(list, json_string(hec_lever_name((enum hec_lever_id)i)));
    return list;
}

static json_t *variables_of(const struct hec_lever_row *row) {
    json_t *object = json_object();
    const struct hec_lever_variable *variable;
    for (int i = 0; (variable = hec_lever_variable(row, i)); i++)
        json_object_set_new(object, variable->name, json_string(variable->value));
    return object;
}

static json_t *json_of(const struct hec_lever_row *row) {
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(row->name));
    json_object_set_new(object, "for", json_string(hec_lever_place_name(row->place)));
    json_object_set_new(object, "risk", json_string(hec_lever_risk_name(row->risk)));
    json_object_set_new(object, "live", json_boolean(row->live));
    json_object_set_new(object, "excludes", row->family[0] ? json_string(row->family) : json_null());
    json_object_set_new(object, "value", row->value[0] ? json_string(row->value) : json_null());
    json_object_set_new(object, "what", json_string(row->what));
    json_object_set_new(object, "needs", json_string(row->needs));
    json_object_set_new(object, "keep", json_string(row->code));
    json_object_set_new(object, "answers", answers_of(row));
    json_object_set_new(object, "variables", variables_of(row));
    return object;
}

static int print_json(const struct hec_lever_row *const *rows, int count) {
    struct hec_buf out;
    json_t *root = json_object(), *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_of(rows[i]));
    json_object_set_new(root, "schema", json_string("hec.levers/1"));
    json_object_set_new(root, "levers", list);
    hec_buf_init(&out, 1u << 20);
    int err = hec_json_print(root, &out);
    return hec_print_made(&out, err);
}

/* ---- for people ---- */

static void print_list(void) {
    static const char *const titles[HEC_LEVER_PLACES] = {
        [HEC_LEVER_PLACE_PROGRAM] = "Any program, by its environment:",
        [HEC_LEVER_PLACE_DEVICE] = "A device, its power and clocks:",
        [HEC_LEVER_PLACE_TORCH] = "PyTorch, by HEC's hooks:",
        [HEC_LEVER_PLACE_JAX] = "JAX:",
        [HEC_LEVER_PLACE_TENSORFLOW] = "TensorFlow:",
    };
    for (int place = 0; place < HEC_LEVER_PLACES; place++) {
        printf("%s%s\n", place ? "\n" : "", titles[place]);
        for (int i = 0; hec_lever_row(i); i++) {
            const struct hec_lever_row *row = hec_lever_row(i);
            if ((int)row->place != place)
                continue;
            printf("  %-*s %-10s", NAME_WIDTH - 1, row->name, hec_lever_risk_name(row->risk));
            hec_help_fold(row->what, TEXT_COLUMN, TEXT_COLUMN);
        }
    }
    puts("\n`hec run --with tf32,compile -- python train.py` runs a command under levers;\n"
         "`hec levers NAME` says what one needs, and how to keep it without HEC.");
}

static void print_one(const struct hec_lever_row *row) {
    bool may = row->value[0] && !hec_lever_needs_value(row);
    printf("%s%s%s%s%s (%s; risk: %s)\n", row->name, may ? "[" : "", row->value[0] ? "=" : "", row->value,
           may ? "]" : "", hec_lever_place_name(row->place), hec_lever_risk_name(row->risk));
    printf("  what     ");
    hec_help_fold(row->what, 11, 11);
    if (row->needs[0]) {
        printf("  needs    ");
        hec_help_fold(row->needs, 11, 11);
    }
    printf("  answers ");
    for (int i = 0; i < HEC_LEVER_COUNT; i++)
        if (row->answers & (UINT64_C(1) << i))
            printf(" %s", hec_lever_name((enum hec_lever_id)i));
    fputs(row->answers ? "" : " nothing that a finding asks for", stdout);
    puts("\n  to keep it without HEC:");
    for (const char *line = row->code; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0'))
        printf("    %.*s\n", (int)strcspn(line, "\n"), line);
}

/* ---- the whole ---- */

#define ROWS_MOST 64

static int find(const struct hec_args *args, const struct hec_lever_row *rows[ROWS_MOST]) {
    const char *names[ROWS_MOST + 1] = {NULL};
    int count = 0;
    for (int i = 0; hec_lever_row(i) && i < ROWS_MOST; i++)
        names[i] = hec_lever_row(i)->name;
    for (int i = 0; i < args->rest_count && count < ROWS_MOST; i++) {
        rows[count] = hec_lever_find(args->rest[i]);
        if (!rows[count++]) {
            const char *near = hec_nearest(args->rest[i], names);
            hec_error("levers: there is no lever \"%s\"%s%s%s", args->rest[i], near ? "; did you mean \"" : "",
                      near ? near : "", near ? "\"?" : "; `hec levers` lists them");
            return HEC_ERR_USAGE;
        }
    }
    for (int i = 0; args->rest_count == 0 && names[i]; i++)
        rows[count++] = hec_lever_row(i);
    return count;
}

int hec_verb_levers(struct hec_args *args) {
    const struct hec_lever_row *rows[ROWS_MOST];
    int count = find(args, rows), err = count;
    if (err >= 0 && hec_args_has(args, HEC_OPT_JSON)) {
        err = print_json(rows, count);
    } else if (err >= 0) {
        if (!args->rest_count)
            print_list();
        for (int i = 0; i < count && args->rest_count; i++)
            print_one(rows[i]);
        err = fflush(stdout) == 0 ? HEC_OK : hec_print_failed();
    }
    return err;
}
