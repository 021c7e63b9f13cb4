import { ALLOWED, EAFNOSUPPORT, EPERM, NEW_NAMESPACES, RULES, type SeccompPolicy } from "../seccomp/rules.ts";

/**
 * What query processes may ask of the kernel: what programs in sandboxes may, without all that Node and DuckDB do not
 * need to answer a query.
 *
 * - No new processes, no sockets but those that are open (the channel to the server), no shared memory or messages.
 * - Nothing that reaches another process. `kill` and `tgkill`, with which a process aborts, are held to the process
 *   itself by `confine.pl`, which knows its id; so is `execve`, to the start of Node.
 * - Nothing that changes files in ways over which Landlock has no say (modes, owners, attributes, times; `truncate`
 *   before its third version), and no links, which would lead the server to another file than that of a result.
 */
const UNNEEDED = new Set(
  `
  accept accept4 bind connect listen
  fork vfork execveat setpgid setsid
  pidfd_open pidfd_send_signal process_mrelease process_vm_readv process_vm_writev ptrace rt_sigqueueinfo
  rt_tgsigqueueinfo tkill
  ioprio_set sched_setattr sched_setparam sched_setscheduler setpriority
  memfd_create memfd_secret mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv
  msgsnd semctl semget semop semtimedop shmat shmctl shmdt shmget
  chmod chown fchmod fchmodat fchmodat2 fchown fchownat fremovexattr fsetxattr futimesat lchown lremovexattr lsetxattr
  removexattr setxattr truncate utime utimensat utimes
  link linkat mknod mknodat symlink symlinkat
  inotify_add_watch inotify_init inotify_init1 name_to_handle_at sync syncfs
  capset setfsgid setfsuid setgid setgroups setregid setresgid setresuid setreuid setuid
  adjtimex clock_adjtime
  io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit remap_file_pages splice tee vmsplice
  landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp
`
    .trim()
    .split(/\s+/),
);

const CLONE_THREAD = 0x1_0000;

export const QUERY_PROCESSES: SeccompPolicy = {
  allowed: ALLOWED.filter((call) => !UNNEEDED.has(call)),
  rules: [
    ...RULES.filter(({ call }) => call === "clone3" || call === "ioctl"),
    {
      call: "clone",
      errno: EPERM,
      anyOf: [
        [
          { argument: 0, mask: CLONE_THREAD, isOneOf: [CLONE_THREAD] },
          { argument: 0, mask: NEW_NAMESPACES, isOneOf: [0] },
        ],
      ],
    },
    { call: "prlimit64", errno: EPERM, anyOf: [[{ argument: 0, isOneOf: [0] }]] },
    { call: "socket", errno: EAFNOSUPPORT, anyOf: [] },
    { call: "socketpair", errno: EAFNOSUPPORT, anyOf: [] },
  ],
};
