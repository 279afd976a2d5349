/* Prototypes of what the doubles export, in CUPTI's names and shapes. Test programs use it in place of cupti.h. */
#pragma once

#include "sim/cuda/exports.h"

#include <stddef.h>
#include <stdint.h>

typedef int CUptiResult; /* results.def */
typedef uint32_t CUpti_ActivityKind;
typedef struct {
    CUpti_ActivityKind kind;
} CUpti_Activity;
typedef struct CUpti_Subscriber_st *CUpti_SubscriberHandle;
typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                                  size_t valid_size);
typedef uint64_t (*CUpti_TimestampCallbackFunc)(void);
typedef void (*CUpti_CallbackFunc)(void *user_data, uint32_t domain, uint32_t cbid, const void *data);

typedef struct {
    uint32_t callbackSite; /* 0 enter, 1 exit */
    const char *functionName;
    const void *functionParams; /* NULL in the double */
    void *functionReturnValue;
    const char *symbolName;
    CUcontext context;
    uint32_t contextUid;
    uint64_t *correlationData;
    uint32_t correlationId;
} CUpti_CallbackData;

typedef struct {
    size_t structSize;
    const char *subscriberName;
    char *oldSubscriberName;
    size_t oldSubscriberSize;
} CUpti_SubscriberParams;

/* Kinds that the double gives. */
enum {
    SIM_KIND_MEMCPY = 1,
    SIM_KIND_MEMSET = 2,
    SIM_KIND_KERNEL = 3,
    SIM_KIND_DRIVER = 4,
    SIM_KIND_RUNTIME = 5,
    SIM_KIND_CONCURRENT_KERNEL = 10,
    SIM_KIND_MEMCPY2 = 22,
    SIM_KIND_SYNCHRONIZATION = 38,
    SIM_KIND_GRAPH_TRACE = 51
};

/* activity.c, records.c */
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete);
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind);
CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable);
CUptiResult cuptiActivityEnableLaunchAttributes(uint8_t enable);
CUptiResult cuptiActivityEnableDeviceGraph(uint8_t enable);
CUptiResult cuptiActivityEnableHWTrace(uint8_t enable);
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable);
CUptiResult cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flag);
CUptiResult cuptiActivityFlushAll(uint32_t flag);
CUptiResult cuptiActivityFlushPeriod(uint32_t period_ms);
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_size, CUpti_Activity **record);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped);
CUptiResult cuptiActivityGetAttribute(int attribute, size_t *size, void *value);
CUptiResult cuptiActivitySetAttribute(int attribute, size_t *size, void *value);
CUptiResult cuptiActivityPushExternalCorrelationId(int kind, uint64_t id);
CUptiResult cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last);
CUptiResult cuptiFinalize(void);

/* subscribe.c */
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *user_data);
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *user_data,
                              CUpti_SubscriberParams *parameters);
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber);
CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain, uint32_t cbid);
CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber, uint32_t domain);
CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber);
CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle subscriber, uint32_t domain, uint32_t cbid);
CUptiResult cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name);

/* query.c */
CUptiResult cuptiGetVersion(uint32_t *version);
CUptiResult cuptiGetResultString(CUptiResult result, const char **text);
CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **text);
CUptiResult cuptiGetLastError(void);
CUptiResult cuptiGetTimestamp(uint64_t *timestamp);
CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id);
CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *id);
CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id);
CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id);
CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id);
CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t *id);
CUptiResult cuptiGetThreadIdType(int *type);
CUptiResult cuptiSetThreadIdType(int type);
