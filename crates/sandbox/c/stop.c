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
 * thread is named by its number in the kernel, which the signal takes whatever has become of it. Where the run has ended
 * meanwhile, the thread is gone, runs something else or has another run, whose number is not the one to stop.
 *
 * The program may be anybody's. It may have a handler of its own for SIGURG (Go's runtime has): then that gets all that
 * is not ours, which a mark in the signal tells. It may set one later, which does not hand on ours: then ours is put in
 * front again. It may keep signals away from its threads: then ours comes during calls (sandbox_listen). Its threads may
 * have small stacks: what a run may use is what is left. It may unload the library, whose threads go on: the first
 * sandbox pins it.
 */
#include "stop.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPARE_BYTES = 96 << 10, /* of a thread's stack, for what calls nothing back */
    LEAST_BYTES = 48 << 10, /* of that, where it calls itself */
    HOST_BYTES = 256 << 10, /* of that, for what the host does when it is asked */
    HANDLERS = 16,          /* of the program's that are remembered */
    PASSAGES = 64           /* signals that are passed on at once */
};

static __thread sandbox *volatile on_this_thread;
static __thread int this_thread; /* its number; 0: not asked for yet */
static __thread const char *stack_low, *stack_high;

/* In our signals: its address. NB: at one without it the handler must not touch what is the thread's, which is made with
 * the first touch, by malloc, and the thread may never have had a run. */
static const char mark = 1;
static _Atomic int is_unmarked; /* the system takes no marks */
/* The handlers that ours has replaced, in their order; what is not ours goes to the last one. */
static struct sigaction replaced[HANDLERS];
static _Atomic unsigned replaced_count;
/* A signal that is passed on, and how many of the handlers have not had it. */
typedef struct passage {
    _Atomic(void *) context; /* NULL: none */
    unsigned left;
} passage;
static passage passages[PASSAGES];
static _Atomic unsigned heard; /* signals of ours that have come */
static atomic_flag replacing = ATOMIC_FLAG_INIT;

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

/*
 * Calls the program's handler. That may call ours, which it has replaced once, and so may one of another copy of this
 * library: then the one before it is next. A signal on its way is known by its context, which lies on its thread's stack.
 */
static void pass_on(int number, siginfo_t *info, void *context)
{
    passage *own = NULL, *known = NULL;
    for (int i = 0; i < PASSAGES && known == NULL; i++)
        if (atomic_load_explicit(&passages[i].context, memory_order_relaxed) == context)
            known = &passages[i];
    for (int i = 0; i < PASSAGES && known == NULL; i++) {
        void *nothing = NULL;
        if (atomic_compare_exchange_strong(&passages[i].context, &nothing, context))
            known = own = &passages[i];
    }
    passage alone;
    if (known == NULL)
        known = &alone; /* all are taken: it goes to the last handler */
    if (known == own || known == &alone)
        known->left = atomic_load_explicit(&replaced_count, memory_order_acquire);
    if (known->left > 0) {
        const struct sigaction *its = &replaced[--known->left];
        if (its->sa_flags & SA_SIGINFO)
            its->sa_sigaction(number, info, context);
        else if (its->sa_handler != SIG_DFL && its->sa_handler != SIG_IGN)
            its->sa_handler(number);
    }
    if (own != NULL)
        atomic_store_explicit(&own->context, NULL, memory_order_release);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int is_ours = info->si_code == SI_QUEUE && info->si_value.sival_ptr == &mark;
    if (is_ours)
        atomic_fetch_add_explicit(&heard, 1, memory_order_relaxed);
    if (is_ours || (info->si_code == SI_TKILL && atomic_load_explicit(&is_unmarked, memory_order_relaxed))) {
        sandbox *S = on_this_thread;
        if (S != NULL && is_stopped(S))
            set_hook(S);
    }
    if (!is_ours)
        pass_on(number, info, context);
}

/* Puts the handler in front of the program's, if it is not there. */
static void be_first(void)
{
    if (atomic_flag_test_and_set(&replacing))
        return; /* another thread does */
    struct sigaction now;
    int is_ours = sigaction(SIGURG, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal;
    unsigned count = atomic_load_explicit(&replaced_count, memory_order_relaxed);
    if (!is_ours && count < HANDLERS) {
        replaced[count] = now;
        atomic_store_explicit(&replaced_count, count + 1, memory_order_release); /* with pass_on() */
        /* On the stack that a thread has for handlers, if it has one: Go's are too small otherwise. */
        struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK};
        sigaction(SIGURG, &ours, NULL);
    }
    atomic_flag_clear(&replacing);
}

/* The one thread of a forked child has another number. */
static void forget_thread(void)
{
    this_thread = 0;
    atomic_flag_clear(&replacing);
    for (int i = 0; i < PASSAGES; i++)
        atomic_store_explicit(&passages[i].context, NULL, memory_order_relaxed);
}

/* NB: the handle is not closed. A program's own file is not found, and is not unloaded. */
static void pin_library(void)
{
    Dl_info found;
    if (dladdr(&mark, &found) != 0 && found.dli_fname != NULL)
        dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    dlerror();
}

void catch_signal(void)
{
    pin_library();
    pthread_atfork(NULL, NULL, forget_thread);
    be_first();
}

static int mask_signal(int how)
{
    sigset_t signals, old;
    sigemptyset(&signals);
    sigaddset(&signals, SIGURG);
    return pthread_sigmask(how, &signals, &old) == 0 && sigismember(&old, SIGURG) == 1;
}

int sandbox_listen(void)
{
    return mask_signal(SIG_UNBLOCK);
}

void sandbox_deafen(void)
{
    mask_signal(SIG_BLOCK);
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
    if (is_deep(S))
        luaL_error(L, "C stack overflow");
}

void check_host_depth(sandbox *S, lua_State *L)
{
    if ((const char *)__builtin_frame_address(0) < S->host_stack)
        luaL_error(L, "C stack overflow");
}

void check_nesting(sandbox *S, lua_State *L)
{
    if ((const char *)__builtin_frame_address(0) < S->least_stack)
        luaL_error(L, "C stack overflow");
}

int is_deep(const sandbox *S)
{
    return (const char *)__builtin_frame_address(0) < S->stack;
}

/* Sends the signal, with the mark. */
static void signal_thread(int thread)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGURG;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)&mark;
    if (syscall(SYS_rt_tgsigqueueinfo, info.si_pid, thread, SIGURG, &info) == 0 || errno == ESRCH)
        return;
    atomic_store_explicit(&is_unmarked, 1, memory_order_relaxed);
    syscall(SYS_tgkill, info.si_pid, thread, SIGURG);
}

int sandbox_stop(sandbox *S, uint64_t number)
{
    if (number == 0 || atomic_load_explicit(&S->running, memory_order_acquire) != number)
        return 0;
    unsigned now = atomic_load_explicit(&heard, memory_order_relaxed);
    if (atomic_exchange_explicit(&S->stop, number, memory_order_release) == number && S->heard == now)
        be_first(); /* it was told and has not heard */
    S->heard = now;
    signal_thread(atomic_load_explicit(&S->thread, memory_order_relaxed));
    return 1;
}

/* Its number, and where its stack is. */
static void know_thread(void)
{
    this_thread = (int)syscall(SYS_gettid);
    stack_low = stack_high = NULL;
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        stack_low = low;
        stack_high = stack_low + size;
    }
    pthread_attr_destroy(&attributes);
}

/* How far the C stack may reach. On another stack than the thread's, as coroutines of C have, nothing is known. */
static void bound_stack(sandbox *S)
{
    const char *here = __builtin_frame_address(0);
    int is_known = here > stack_low && here <= stack_high;
    S->stack = here - STACK_BYTES;
    if (is_known && S->stack < stack_low + SPARE_BYTES)
        S->stack = stack_low + SPARE_BYTES;
    S->host_stack = is_known ? stack_low + HOST_BYTES : NULL;
    S->least_stack = is_known ? stack_low + LEAST_BYTES : NULL;
}

void begin_stoppable(sandbox *S, uint64_t number)
{
    if (this_thread == 0)
        know_thread();
    bound_stack(S);
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
