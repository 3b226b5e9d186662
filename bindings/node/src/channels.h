/*
 * Channels of messages: created, removed, posted to. Waiting for a message is in waiting.h.
 */
#ifndef PERILUNE_NODE_CHANNELS_H
#define PERILUNE_NODE_CHANNELS_H

#include "state.h"

/* post(database, channel, body): the message's number. */
napi_value channel_post(napi_env env, napi_callback_info info);

/* channelCreate(database, channel, dropOldest, messages, bytes), channelRemove(database, channel): 1. */
napi_value channel_create(napi_env env, napi_callback_info info);
napi_value channel_remove(napi_env env, napi_callback_info info);

#endif
