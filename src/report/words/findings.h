/* Inside src/report: findings in words. */
#pragma once

#include "diagnose/result.h"
#include "report/format.h"
#include "report/words/causes.h"

/* How devices of a run are counted in the report that this thread makes of it (report/format.h). */
void hec_count_devices(const struct hec_summary *summary);
/* What a device is called within a sentence: "the H200" where the run used one, "GPU 1" where several. */
/* "GPU 0", "GPU 0 and 1", "GPU 0 to 3, 6 and 7": of bits (1 << hec_device.index). */
const char *hec_devices_word(char out[HEC_FORMAT_SIZE], uint64_t devices);
const char *hec_device_word(char text[HEC_FORMAT_SIZE], const struct hec_summary *summary, int device);
/* The finding that is worth acting on most, NULL: none is. */
const struct hec_finding *hec_findings_top(const struct hec_findings *findings);
/* The first that would be worth acting on, and is too unsure for that; NULL: none is. */
const struct hec_finding *hec_findings_hint(const struct hec_findings *findings);
/* "38 % of the joules (31 to 44)", of the time where the joules are unknown; "" where both are. */
char *hec_saving_words(char text[HEC_FORMAT_SIZE], const struct hec_finding *finding);
#define HEC_SAVES_WORDS 256
/* "steps about 2.4 times as fast (1.9 to 3.1)"; "" where it would hardly be faster, or nobody knows. */
char *hec_speed_words(char text[HEC_FORMAT_SIZE], const struct hec_summary *summary, const struct hec_finding *finding);
/* The same, with the joules, and dollars where they are worth a word, and the speed: "..., about 1.7 kJ, $0.03; steps about 2.4 times as
 * fast (...)"; "" where nothing is saved. */
char *hec_saves_words(char out[HEC_SAVES_WORDS], const struct hec_summary *summary, const struct hec_finding *finding);
/* The same of a step: "41 % of its time (33 to 48), 9 % of its joules (5 to 20), by replay"; "": it was not replayed. */
char *hec_step_saving_words(char out[HEC_SAVES_WORDS], const struct hec_finding *finding);
/* "12 % of a step's time, 5 % of its joules"; "": unknown. */
char *hec_rest_words(char out[HEC_SAVES_WORDS], double seconds, double joules);
/* What limits all that the findings say of this run: a command that failed, steps that are too few, counters that are missing, a profiler
 * that slowed the host. The number of sentences. */
enum { HEC_CAVEATS_MAX = 8 };
/* A loss that is no number, which is the first of the caveats; false: there was none. */
bool hec_loss_words(char out[160], const struct hec_summary *summary);
int hec_caveats(const struct hec_summary *summary, char out[HEC_CAVEATS_MAX][160]);
/* Why set-up and loop are not separated, where there is a ledger, which is one of the caveats; false: they are. */
bool hec_unsteady_words(char out[160], const struct hec_summary *summary);
/* What was found; "" where no device was used. */
void hec_found_words(char *out, size_t size, const struct hec_summary *summary);
/* The same with what fixing it would save: the answer of a report in one sentence. */
void hec_headline(char *out, size_t size, const struct hec_summary *summary);
/* ".../loader/images.py:41 fetch", in at most `room` columns (>= 16), ASCII: the file loses its first folders. */
char *hec_place_words(char *out, size_t size, const char *file, int line, const char *function, int room);
/* What to paste: the code of the cause's advice that fits what the run executes, or of the finding's own lever; NULL: none. */
const char *hec_finding_code(const struct hec_summary *summary, const struct hec_finding *finding);

/* The finding of the same cause that a device with a chapter (terminal_device.h) has, of one whose devices have none; NULL: it
 * stands for itself. */
const struct hec_finding *hec_finding_stands_for(const struct hec_findings *all, const struct hec_finding *finding,
                                                 uint64_t chapters);
#define HEC_DEVICES_WORDS (2 * HEC_FORMAT_SIZE + 32)
/* "GPU 0 (and alike GPU 1 to 7): "; "" where one device was traced. */
char *hec_finding_devices_words(char out[HEC_DEVICES_WORDS], const struct hec_summary *summary,
                                const struct hec_finding *finding, uint64_t chapters);
