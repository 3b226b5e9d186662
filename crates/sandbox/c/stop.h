/* How a run is stopped from another thread, and how deep its C stack may become. */
#ifndef PERILUNE_SANDBOX_STOP_H
#define PERILUNE_SANDBOX_STOP_H

#include "sandbox.h"

void catch_signal(void);
int is_stopped(const sandbox *S);
/* Raises if the script is to stop; called every so many steps by all that may take long. */
void check_stop(sandbox *S, lua_State *L);
/* Raises if the C stack is deep; called by all that call back into Lua. */
void check_depth(sandbox *S, lua_State *L);
int is_deep(const sandbox *S);
/* Raises if the thread's stack is nearly full; called by all that call themselves. */
void check_nesting(sandbox *S, lua_State *L);
/* Raises if what the host does may not fit on the C stack. */
void check_host_depth(sandbox *S, lua_State *L);
/* Between these two a run can be stopped. */
void begin_stoppable(sandbox *S, uint64_t number);
void end_stoppable(sandbox *S);
/* Stops run `number` if it runs; to be called again until it has ended. 1 if it still runs. For any thread. */
int sandbox_stop(sandbox *S, uint64_t number);
/* Lets the signal that stops runs come to this thread, and keeps it away again. 1 if the thread had kept it away. */
int sandbox_listen(void);
void sandbox_deafen(void);

#endif
