import { spawn, type ChildProcess } from "node:child_process";
import type { Writable } from "node:stream";

/**
 * Kills what is on its list when its standard input ends, which is when the process that started it is gone: however it
 * ended, a test's servers do not outlive it.
 */
const WATCHDOG = `
pids=' '
while read -r what pid; do
  case $what in
    add) pids="$pids$pid " ;;
    remove) pids="\${pids%%" $pid "*} \${pids#*" $pid "}" ;;
  esac
done
for pid in $pids; do kill -KILL "$pid"; done
`;

let watchdog: Writable | undefined;

/** Has a server that a test started end with this process at the latest, and returns it. */
export function endsWithThisProcess<T extends ChildProcess>(child: T): T {
  const { pid } = child;
  // It did not start; whoever started it is told so by its event `error`.
  if (pid === undefined) return child;
  watchdog ??= startWatchdog();
  watchdog.write(`add ${pid}\n`);
  child.once("exit", () => watchdog?.write(`remove ${pid}\n`));
  return child;
}

function startWatchdog(): Writable {
  // In a group of its own: a terminal's Ctrl-C, which ends the tests, is not for it.
  const child = spawn("sh", ["-c", WATCHDOG], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  child.unref();
  const input = child.stdin;
  (input as unknown as { unref(): void }).unref();
  return input;
}
