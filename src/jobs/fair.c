#include "jobs/parts.h"
#include "base/clock.h"

static bool has_nothing(const struct hec_job_user *user) {
    return user->rings == 0 && user->jobs == 0 && user->requests == 0;
}

struct hec_job_user *hec_jobs_user(struct hec_jobs *jobs, uid_t uid) {
    struct hec_job_user *free_one = NULL;
    uid = hec_subuid_owner(&jobs->door.subuid, uid);
    for (int i = 0; i < jobs->user_count; i++) {
        struct hec_job_user *user = &jobs->user[i];
        if (user->uid == uid)
            return user;
        /* who owes least: a debt is not paid by leaving */
        if (has_nothing(user) && (!free_one || user->rest_until_ns < free_one->rest_until_ns))
            free_one = user;
    }
    if (jobs->user_count < HEC_JOBS_USERS_MAX)
        free_one = &jobs->user[jobs->user_count++];
    if (free_one)
        *free_one = (struct hec_job_user){.uid = uid};
    return free_one;
}

struct hec_job_user *hec_jobs_who_gives_way(struct hec_jobs *jobs, const struct hec_job_user *to, bool of_jobs) {
    struct hec_job_user *most = NULL;
    int has = 0, wants = to->uid == 0 ? 0 : (of_jobs ? to->jobs : to->rings) + 1;
    for (int i = 0; i < jobs->user_count; i++) {
        struct hec_job_user *user = &jobs->user[i];
        int count = of_jobs ? user->jobs : user->rings;
        if (user->uid != 0 && user != to && count > has) {
            most = user;
            has = count;
        }
    }
    return has > wants ? most : NULL;
}

struct hec_job_entry *hec_jobs_next_due(const struct hec_jobs *jobs, int64_t now_ns, int64_t *at_ns) {
    struct hec_job_entry *best = NULL;
    *at_ns = INT64_MAX;
    for (int i = 0; i < jobs->job_count; i++) {
        struct hec_job_entry *entry = jobs->job[i];
        const struct hec_job_user *user = entry->user;
        int64_t ns = entry->due_ns > user->rest_until_ns ? entry->due_ns : user->rest_until_ns;
        bool better = !best || ns < *at_ns;
        if (best && ns <= now_ns && *at_ns <= now_ns)
            better = user == best->user ? entry->due_ns < best->due_ns : user->served_ns < best->user->served_ns;
        if (entry->traced > 0 && !entry->in_window && better) {
            best = entry;
            *at_ns = ns;
        }
    }
    return best;
}

static bool has_window(const struct hec_jobs *jobs, uid_t uid) {
    uid = hec_subuid_owner(&jobs->door.subuid, uid);
    for (int which = HEC_JOBS_ASKED; which < HEC_JOBS_WINDOWS; which++)
        if (jobs->window[which].job && hec_subuid_owner(&jobs->door.subuid, jobs->window[which].request.uid) == uid)
            return true;
    return false;
}

int hec_jobs_next_asked(const struct hec_jobs *jobs, int window) {
    for (int i = 0; i < jobs->request_count; i++) {
        const struct hec_job_request *request = &jobs->request[i];
        bool may = request->uid == 0 || (window != HEC_JOBS_ROOT && !has_window(jobs, request->uid));
        if (may && !request->job->in_window)
            return i;
    }
    return -1;
}

/* Does the window `which` keep this request waiting? It has its job; or nobody has, all places are taken, and this is one of them. */
static bool blocks(const struct hec_jobs *jobs, int which, const struct hec_job_request *request, bool full) {
    const struct hec_job_entry *job = jobs->window[which].job;
    return job && jobs->window[which].request.uid != 0 &&
           (request->job->in_window ? job == request->job : full && which < HEC_JOBS_ROOT);
}

int hec_jobs_to_shorten(const struct hec_jobs *jobs) {
    bool full = true;
    for (int which = HEC_JOBS_ASKED; which < HEC_JOBS_ROOT; which++)
        full = full && jobs->window[which].job;
    for (int i = 0; i < jobs->request_count; i++) {
        const struct hec_job_request *request = &jobs->request[i];
        int oldest = -1;
        bool ending = request->uid != 0 && has_window(jobs, request->uid);
        for (int which = HEC_JOBS_ASKED; which < HEC_JOBS_WINDOWS && !ending; which++)
            if (blocks(jobs, which, request, full)) {
                ending = jobs->window[which].shortened;
                if (oldest < 0 || jobs->window[which].begun_ns < jobs->window[oldest].begun_ns)
                    oldest = which;
            }
        if (oldest >= 0 && !ending)
            return oldest;
    }
    return -1;
}

void hec_jobs_charge(struct hec_jobs *jobs, struct hec_job_user *user, double cpu_seconds, int64_t now_ns) {
    int sharing = 0; /* users with jobs that have windows */
    for (int i = 0; i < jobs->user_count; i++) {
        bool shares = false;
        for (int k = 0; k < jobs->job_count && !shares; k++)
            shares = jobs->job[k]->user == &jobs->user[i] && jobs->job[k]->traced > 0;
        sharing += shares;
    }
    double share = jobs->options.cpu_share / (sharing > 1 ? sharing : 1);
    if (!user || !(share > 0))
        return;
    int64_t from_ns = user->rest_until_ns > now_ns ? user->rest_until_ns : now_ns;
    user->rest_until_ns = from_ns + (int64_t)(cpu_seconds / share * (double)HEC_NS_PER_S);
}
