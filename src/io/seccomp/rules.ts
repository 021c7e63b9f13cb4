/**
 * What programs in a machine may ask of the kernel: an allow-list. It is the default profile of the OCI runtimes
 * (https://github.com/moby/profiles, `seccomp/default.json`) for a process without capabilities, and stricter:
 *
 * - no io_uring, no `modify_ldt`, no fanotify: large or old parts of the kernel that tools do without;
 * - sockets of the families unix, inet and inet6, and netlink for reading routes;
 * - no `TIOCSTI` and `TIOCLINUX`, which type into a terminal that somebody else reads;
 * - no calls in the i386 and x32 conventions.
 *
 * Whatever has to do with namespaces, mounts, modules, kexec, bpf, keys, userfaultfd and perf is not in the list.
 *
 * `ptrace` and `process_vm_readv` are: debuggers need them. They take pids of the caller's pid namespace, so that they
 * reach only processes inside, and of these only those that the caller might signal, with no capability that it lacks.
 * `pidfd_getfd`, which takes file descriptors out of another process, is not.
 */
export const ALLOWED = `
  accept accept4 access adjtimex alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_adjtime
  clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3
  epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
  eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2
  fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync
  ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu
  getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid
  getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday
  getuid getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents
  io_pgetevents io_setup io_submit ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset
  landlock_restrict_self lchown lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr lstat
  madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2
  mlockall mmap mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal msgctl
  msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2
  pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64 preadv
  preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6 ptrace pwrite64 pwritev pwritev2
  read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat
  renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
  rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
  sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr
  sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg
  sendmsg sendto set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer
  setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl
  shmdt shmget shutdown sigaltstack signalfd signalfd4 splice stat statfs statx symlink symlinkat sync
  sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime
  timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat
  utime utimensat utimes vfork vmsplice wait4 waitid write writev
`
  .trim()
  .split(/\s+/);

/** Of an argument only the low 32 bits count, as for the kernel; of these, those in the mask (default: all). */
export type ArgumentTest = { argument: 0 | 1 | 2; mask?: number } & (
  | { isOneOf: readonly number[] }
  | { isNoneOf: readonly number[] }
);

/** What is allowed always, and what for some arguments; the rule counts where a call has both. */
export type SeccompPolicy = { allowed: readonly string[]; rules: readonly ArgumentRule[] };

/** A call that is allowed when all tests of one of the lists hold; else it fails with the error. */
export type ArgumentRule = { call: string; errno: number; anyOf: readonly (readonly ArgumentTest[])[] };

export const EPERM = 1;
export const ENOSYS = 38;
export const EAFNOSUPPORT = 97;

/** CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET. */
export const NEW_NAMESPACES = 0x7e02_0000;
/** Not for `clone`, where these bits are the signal at the end. */
const CLONE_NEWTIME = 0x80;

const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16];
const NETLINK_ROUTE = 0;
const [TIOCSTI, TIOCLINUX] = [0x5412, 0x541c];
/** What it is, Linux 2.6 by its name, both for a 32-bit name of the machine; and the question what it is. */
const PERSONALITIES = [0x0, 0x2_0000, 0x8, 0x2_0008, 0xffff_ffff];

export const RULES: readonly ArgumentRule[] = [
  { call: "clone", errno: EPERM, anyOf: [[{ argument: 0, mask: NEW_NAMESPACES, isOneOf: [0] }]] },
  // Its flags are in memory, where no filter can look; the C libraries fall back to `clone`.
  { call: "clone3", errno: ENOSYS, anyOf: [] },
  { call: "ioctl", errno: EPERM, anyOf: [[{ argument: 1, isNoneOf: [TIOCSTI, TIOCLINUX] }]] },
  { call: "personality", errno: EPERM, anyOf: [[{ argument: 0, isOneOf: PERSONALITIES }]] },
  {
    call: "socket",
    errno: EAFNOSUPPORT,
    anyOf: [
      [{ argument: 0, isOneOf: [AF_UNIX, AF_INET, AF_INET6] }],
      [
        { argument: 0, isOneOf: [AF_NETLINK] },
        { argument: 2, isOneOf: [NETLINK_ROUTE] },
      ],
    ],
  },
  { call: "socketpair", errno: EAFNOSUPPORT, anyOf: [[{ argument: 0, isOneOf: [AF_UNIX] }]] },
  { call: "unshare", errno: EPERM, anyOf: [[{ argument: 0, mask: NEW_NAMESPACES | CLONE_NEWTIME, isOneOf: [0] }]] },
];

/** For programs of all kinds. */
export const PROGRAMS: SeccompPolicy = { allowed: ALLOWED, rules: RULES };
