/**
 * How much a machine may have at once of what the kernel counts by user, or by instance of a file system, over all its
 * processes. Where the host's own limits for one user are lower, those hold.
 */
export type UserLimits = {
  /** `inotify_init`, and what they watch: as much memory as that needs counts as the machine's. */
  inotifyInstances: number;
  inotifyWatches: number;
  /** Of POSIX message queues. */
  messageQueueBytes: number;
  /** In `/dev/pts`; all machines together have no more than `kernel.pty.max` without `kernel.pty.reserve`. */
  terminals: number;
};

export const USER_LIMITS: UserLimits = {
  inotifyInstances: 1_024,
  // Editors and watchers of large source trees ask for so many.
  inotifyWatches: 524_288,
  messageQueueBytes: 819_200,
  terminals: 64,
};
