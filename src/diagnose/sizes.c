/* Sizes of what the processes of a run train, from the facts of the Python hooks (python/hec/_hooks/sizes.py). */
#include "diagnose/build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MOST 1e18 /* a damaged file may say anything */

const char *hec_sharing_name(enum hec_sharing sharing) {
    static const char *const names[] = {
#define HEC_SHARING(id, name) name,
#include "diagnose/parallelism.def"
    };
    return (unsigned)sharing < HEC_SHARINGS ? names[sharing] : "?";
}

/* The value of NAME=VALUE among words; NULL: there is none. *length is its. */
static const char *value_of(const char *text, const char *name, size_t *length) {
    size_t of = strlen(name);
    for (; *text; text += strspn(text, " ")) {
        size_t word = strcspn(text, " ");
        if (word > of && strncmp(text, name, of) == 0 && text[of] == '=') {
            *length = word - of - 1;
            return text + of + 1;
        }
        text += word;
    }
    return NULL;
}

static double number_of(const char *text, const char *name) {
    size_t length;
    char *end;
    const char *value = value_of(text, name, &length);
    double number = value ? strtod(value, &end) : NAN;
    return value && end == value + length && number >= 0 && number <= NUMBER_MOST ? number : NAN;
}

/* 0 where it is not known. */
static int count_of(const char *text, const char *name) {
    double number = number_of(text, name);
    return number <= 1e6 ? (int)number : 0;
}

/* NAN stands for none. */
static void raise(double *most, double value) {
    *most = fmax(*most, value);
}

static void take_model(struct hec_sizes *out, const char *text) {
    double parameters = number_of(text, "parameters");
    size_t length = 0;
    const char *sharing = value_of(text, "sharing", &length);
    if (out->known && out->parameters != parameters)
        out->alike = false;
    if (!out->known) {
        out->known = parameters > 0;
        out->parameters = parameters;
        out->trained = number_of(text, "trained");
        out->bytes = number_of(text, "bytes");
        out->gradient_bytes = number_of(text, "gradient_bytes");
        out->bucket_view = count_of(text, "bucket_view") > 0;
        for (int i = 0; i < HEC_SHARINGS && sharing; i++) {
            const char *name = hec_sharing_name((enum hec_sharing)i);
            if (strlen(name) == length && strncmp(name, sharing, length) == 0)
                out->sharing = (enum hec_sharing)i;
        }
    }
    raise(&out->held_bytes, number_of(text, "held_bytes"));
    raise(&out->held_gradient_bytes, number_of(text, "held_gradient_bytes"));
}

static void take_optimizer(struct hec_sizes *out, const char *text) {
    size_t length = 0;
    const char *kind = value_of(text, "kind", &length);
    if (kind && length < sizeof out->optimizer && !out->optimizer[0])
        memcpy(out->optimizer, kind, length);
    raise(&out->state_bytes, number_of(text, "bytes"));
    raise(&out->held_state_bytes, number_of(text, "held_bytes"));
}

static void take_layers(struct hec_sizes *out, const char *text) {
    out->layers = count_of(text, "count");
    out->layer_bytes = number_of(text, "bytes");
    out->layer_matrices = count_of(text, "matrices");
    out->layer_matrix_bytes = number_of(text, "matrix_bytes");
    double input = number_of(text, "input_bytes");
    if (input > 0)
        raise(&out->layer_input_bytes, input);
}

static void take_experts(struct hec_sizes *out, const char *text) {
    out->experts = count_of(text, "count");
    out->expert_top = count_of(text, "top");
    out->expert_bytes = number_of(text, "bytes");
}

static void take_memory(struct hec_sizes *out, const char *text) {
    double activations = number_of(text, "activations");
    raise(&out->allocated, number_of(text, "allocated"));
    raise(&out->reserved, number_of(text, "reserved"));
    if (activations > 0)
        raise(&out->activations, activations);
}

static int take(void *context, const char *what, const char *text) {
    static const struct {
        const char *what;
        void (*take)(struct hec_sizes *out, const char *text);
    } facts[] = {{"model", take_model},
                 {"optimizer", take_optimizer},
                 {"layers", take_layers},
                 {"experts", take_experts},
                 {"memory", take_memory}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (strcmp(facts[i].what, what) == 0)
            facts[i].take(context, text);
    return 0;
}

int hec_sizes_read(const struct hec_summary_input *input, struct hec_sizes *out) {
    *out = (struct hec_sizes){.alike = true,
                              .sharing = HEC_SHARING_UNKNOWN,
                              .parameters = NAN,
                              .trained = NAN,
                              .bytes = NAN,
                              .gradient_bytes = NAN,
                              .state_bytes = NAN,
                              .held_bytes = NAN,
                              .held_gradient_bytes = NAN,
                              .held_state_bytes = NAN,
                              .layer_bytes = NAN,
                              .layer_input_bytes = NAN,
                              .layer_matrix_bytes = NAN,
                              .expert_bytes = NAN,
                              .allocated = NAN,
                              .reserved = NAN,
                              .activations = NAN};
    return input->size_facts ? input->size_facts(input->context, take, out) : 0;
}
