/* The double of libcupti: the one subscriber and its callbacks, which are those of the driver API. */
#include "sim/cupti/double.h"

#include <stdio.h>
#include <string.h>

#define DRIVER 1u

struct CUpti_Subscriber_st {
    CUpti_CallbackFunc callback; /* NULL: nobody */
    void *user_data;
    char name[SIM_HOLDER_MAX];
    uint64_t driver[SIM_CBID_MAX / 64];
};

static struct CUpti_Subscriber_st the_one;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUptiResult subscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *user_data,
                             const char *name, char *holder, size_t holder_size) {
    CUptiResult result = sim_cupti_ready();
    if (result != SIM_CUPTI_SUCCESS)
        return result;
    if (!subscriber)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    const char *other = sim_cupti_held() ? sim_cupti_spec()->holder : the_one.callback ? the_one.name : NULL;
    if (other) {
        if (holder && holder_size)
            snprintf(holder, holder_size, "%s", other);
        result = SIM_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    } else {
        memset(the_one.driver, 0, sizeof the_one.driver);
        snprintf(the_one.name, sizeof the_one.name, "%s", name ? name : "");
        the_one.user_data = user_data;
        the_one.callback = callback;
        *subscriber = &the_one;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SIM_EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                      void *user_data) {
    return subscribe(subscriber, callback, user_data, NULL, NULL, 0);
}

SIM_EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                         void *user_data, CUpti_SubscriberParams *parameters) {
    if (!parameters)
        return subscribe(subscriber, callback, user_data, NULL, NULL, 0);
    return subscribe(subscriber, callback, user_data, parameters->subscriberName, parameters->oldSubscriberName,
                     parameters->oldSubscriberSize);
}

void sim_cupti_forget_subscriber(void) {
    pthread_mutex_lock(&lock);
    memset(&the_one, 0, sizeof the_one);
    pthread_mutex_unlock(&lock);
}

static bool is_current(CUpti_SubscriberHandle subscriber) {
    return subscriber == &the_one && the_one.callback;
}

SIM_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
    if (!is_current(subscriber))
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    sim_cupti_forget_subscriber();
    return SIM_CUPTI_SUCCESS;
}

static CUptiResult set(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain, uint32_t first,
                       uint32_t last) {
    if (!is_current(subscriber) || domain == 0 || domain > 6 || last >= SIM_CBID_MAX)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    pthread_mutex_lock(&lock);
    for (uint32_t cbid = first; cbid <= last && domain == DRIVER; cbid++) {
        uint64_t bit = UINT64_C(1) << cbid % 64, *word = &the_one.driver[cbid / 64];
        __atomic_store_n(word, enable ? *word | bit : *word & ~bit, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain,
                                           uint32_t cbid) {
    return set(enable, subscriber, domain, cbid, cbid);
}

SIM_EXPORT CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain) {
    return set(enable, subscriber, domain, 0, SIM_CBID_MAX - 1);
}

SIM_EXPORT CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
    return set(enable, subscriber, DRIVER, 0, SIM_CBID_MAX - 1);
}

static bool enabled(uint32_t cbid) {
    return cbid < SIM_CBID_MAX && (__atomic_load_n(&the_one.driver[cbid / 64], __ATOMIC_RELAXED) >> cbid % 64 & 1);
}

SIM_EXPORT CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle subscriber, uint32_t domain,
                                             uint32_t cbid) {
    if (!enable || !is_current(subscriber))
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *enable = domain == DRIVER && enabled(cbid);
    return SIM_CUPTI_SUCCESS;
}

void sim_cupti_call(void *context, int site, uint32_t cbid, const char *name, uint32_t correlation, void *cu_context,
                    uint32_t context_id, int result) {
    (void)context;
    if (!enabled(cbid))
        return;
    pthread_mutex_lock(&lock);
    CUpti_CallbackFunc callback = the_one.callback;
    void *user_data = the_one.user_data;
    pthread_mutex_unlock(&lock);
    if (!callback)
        return;
    uint64_t correlation_data = 0;
    CUpti_CallbackData data = {.callbackSite = (uint32_t)site,
                               .functionName = name,
                               .functionReturnValue = site ? &result : NULL,
                               .context = cu_context,
                               .contextUid = context_id,
                               .correlationData = &correlation_data,
                               .correlationId = correlation};
    callback(user_data, DRIVER, cbid, &data);
}

SIM_EXPORT CUptiResult cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name) {
    CUptiResult ready = sim_cupti_ready();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    if (!name)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    *name = domain == DRIVER ? sim_cupti_driver_name(cbid) : NULL;
    return *name ? SIM_CUPTI_SUCCESS : SIM_CUPTI_ERROR_INVALID_PARAMETER;
}
