/*
 * How a run is stopped from another thread, and how deep its C stack may become.
 *
 * To stop a run, another thread stores its number and sends a signal to the thread that runs it. The handler sets
 * a hook, which raises an error at the next instruction, and again and again until the script has ended, whatever
 * it catches. LuaJIT is built so that compiled loops look at the hook too; our own C functions look at the number.
 * The signal is SIGURG: its default is to be ignored, and system calls are restarted (SA_RESTART), so that one that
 * comes late does no harm.
 *
 * A run takes no lock to begin and to end, since a call of a function of SQL takes less time than two of them: the
 * thread is named by its number in the kernel, which tgkill() takes whatever has become of it. Where the run has ended
 * meanwhile, the thread is gone, runs something else or has another run, whose number is not the one to stop.
 */
#include "stop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread sandbox *volatile on_this_thread;
static __thread int this_thread; /* its number; 0: not asked for yet */

int is_stopped(const sandbox *S)
{
    return S->ending || (S->current != 0 && atomic_load_explicit(&S->stop, memory_order_acquire) == S->current);
}

static void on_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    if (is_stopped(sandbox_of(L)))
        luaL_error(L, "the script was stopped");
    else
        lua_sethook(L, NULL, 0, 0);
}

/* NB: off and on again, since the signal may have come while LuaJIT was changing its dispatch itself. */
static void set_hook(sandbox *S)
{
    lua_sethook(S->L, NULL, 0, 0);
    lua_sethook(S->L, on_hook, LUA_MASKCOUNT, 1);
}

static void on_signal(int number)
{
    (void)number;
    sandbox *S = on_this_thread;
    if (S != NULL && is_stopped(S))
        set_hook(S);
}

/* The one thread of a forked child has another number. */
static void forget_thread(void)
{
    this_thread = 0;
}

void catch_signal(void)
{
    pthread_atfork(NULL, NULL, forget_thread);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGURG, &action, NULL);
}

void check_stop(sandbox *S, lua_State *L)
{
    if (is_stopped(S)) {
        set_hook(S);
        luaL_error(L, "the script was stopped");
    }
}

void check_depth(sandbox *S, lua_State *L)
{
    if (S->stack - (const char *)__builtin_frame_address(0) > STACK_BYTES)
        luaL_error(L, "C stack overflow");
}

int sandbox_stop(sandbox *S, uint64_t number)
{
    if (number == 0 || atomic_load_explicit(&S->running, memory_order_acquire) != number)
        return 0;
    atomic_store_explicit(&S->stop, number, memory_order_release);
    syscall(SYS_tgkill, getpid(), atomic_load_explicit(&S->thread, memory_order_relaxed), SIGURG);
    return 1;
}

void begin_stoppable(sandbox *S, uint64_t number)
{
    if (this_thread == 0)
        this_thread = (int)syscall(SYS_gettid);
    S->stack = (const char *)__builtin_frame_address(0);
    S->current = number;
    atomic_store_explicit(&S->thread, this_thread, memory_order_relaxed);
    atomic_store_explicit(&S->running, number, memory_order_release); /* with sandbox_stop(), which then reads the thread */
    S->outer = on_this_thread;
    on_this_thread = S;
}

void end_stoppable(sandbox *S)
{
    on_this_thread = S->outer;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&S->running, 0, memory_order_release);
    if (lua_gethookmask(S->L) != 0)
        lua_sethook(S->L, NULL, 0, 0);
}
