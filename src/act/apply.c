#include "act/apply.h"

#include "act/place.h"
#include "act/power_levers.h"
#include "diagnose/input.h"

#include <stdio.h>
#include <string.h>

static void fact(struct hec_applied *out, const char *lever, enum hec_attest state, const char *what) {
    int at = 0;
    while (out->facts[2 * at])
        at++;
    snprintf(out->facts_text[at][0], HEC_SESSION_FACT, "lever.%s.%s", lever, hec_attest_name(state));
    snprintf(out->facts_text[at][1], HEC_SESSION_FACT, "%s", what);
    out->facts[2 * at] = out->facts_text[at][0];
    out->facts[2 * at + 1] = out->facts_text[at][1];
}

/* Whether the list has an entry for what "KEY=..." sets. */
static bool names(const char *list, const char *value) {
    char key[128];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(value, "="), value);
    return strstr(list, key) != NULL;
}

static int set_variable(const struct hec_lever_use *use, const struct hec_lever_variable *variable,
                        struct hec_applied *out, bool *already, struct hec_why *why) {
    const char *there = hec_environ_get(&out->environ, variable->name);
    const char *value = strcmp(variable->value, "%s") == 0 ? use->value : variable->value;
    char joined[4096];
    bool set = there && *there, list = variable->how != HEC_LEVER_SET;
    if (set && (strcmp(there, value) == 0 || (list && strstr(there, value))))
        return HEC_OK;
    if (set && (!list || names(there, value)))
        return hec_fail(why, HEC_ERR_UNSUPPORTED,
                        "lever %s would set %s=%s, which is %.100s already: take it out of the environment",
                        use->row->name, variable->name, value, there);
    *already = false;
    if (set) {
        if (snprintf(joined, sizeof joined, "%s%c%s", there, variable->how == HEC_LEVER_LIST ? ',' : ':', value) >=
            (int)sizeof joined)
            return hec_fail(why, HEC_ERR_LIMIT, "%s is too long for lever %s", variable->name, use->row->name);
        value = joined;
    }
    return hec_environ_set(&out->environ, variable->name, value) < 0
               ? hec_fail(why, HEC_ERR_NOMEM, "no memory for the environment")
               : HEC_OK;
}

static int set_variables(const struct hec_lever_use *use, struct hec_applied *out, struct hec_why *why) {
    const struct hec_lever_variable *variable;
    char what[HEC_SESSION_FACT] = "";
    bool already = true;
    int err = HEC_OK, i;
    for (i = 0; err == HEC_OK && (variable = hec_lever_variable(use->row, i)); i++) {
        err = set_variable(use, variable, out, &already, why);
        size_t length = strlen(what);
        snprintf(what + length, sizeof what - length, "%s%s=%s", i ? " " : "", variable->name,
                 strcmp(variable->value, "%s") == 0 ? use->value : variable->value);
    }
    if (err == HEC_OK && i)
        fact(out, use->row->name, already ? HEC_ATTEST_ALREADY : HEC_ATTEST_SET, what);
    return err;
}

int hec_apply(const struct hec_lever_set *set, char *const *from, struct hec_applied *out, struct hec_why *why) {
    *out = (struct hec_applied){0};
    hec_lever_set_text(set, out->text);
    int err = hec_environ_copy(&out->environ, from);
    if (err == HEC_OK)
        err = hec_environ_set(&out->environ, HEC_LEVERS_ENV, out->text);
    if (err < 0)
        return hec_fail(why, err, "no memory for the environment");
    for (int i = 0; err == HEC_OK && i < set->count; i++) {
        const struct hec_lever_use *use = &set->list[i];
        char what[HEC_SESSION_FACT];
        if (use->row->place ==
            HEC_LEVER_PLACE_DEVICE) { /* set and read back by the guard, or the command does not run */
            hec_power_lever_words(use, what);
            fact(out, use->row->name, HEC_ATTEST_SET, what);
        } else if (strcmp(use->row->name, "numa") == 0) {
            out->placed = true;
            if ((err = hec_place_beside_devices(&out->environ, NULL, &out->placement, what, why)) == HEC_OK)
                fact(out, use->row->name, HEC_ATTEST_SET, what);
        } else {
            err = set_variables(use, out, why);
        }
    }
    return err;
}

void hec_apply_to(const struct hec_applied *applied, struct hec_session_options *session) {
    session->environment = applied->environ.list;
    session->levers = applied->text;
    session->facts = applied->facts;
    session->placement = applied->placed ? &applied->placement : NULL;
}

void hec_applied_free(struct hec_applied *applied) {
    hec_environ_free(&applied->environ);
}
