/**
 * Sends a signal to one process. A pid that a test has read may be missing: `Number("")` is 0, which is the group of this
 * process, -1 is every process of the computer, and 1 is the first of them. All these are refused, and so is this
 * process. Throws what `process.kill` throws: `ESRCH` where there is no such process any more.
 */
export function signalProcess(pid: number | undefined, signal: NodeJS.Signals): void {
  process.kill(checked(pid, signal), signal);
}

/** Sends it to all processes of the group that this process leads, as `spawn` with `detached` makes it one. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  process.kill(-checked(pid, signal), signal);
}

function checked(pid: number | undefined, signal: NodeJS.Signals): number {
  if (pid === undefined || !Number.isSafeInteger(pid) || pid <= 1 || pid === process.pid || pid === process.ppid) {
    throw new Error(`${pid} is not the pid of a process that a test may send ${signal}`);
  }
  return pid;
}
