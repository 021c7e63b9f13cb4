import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { chmodSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { renameSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { totalmem } from "node:os";
import { Worker } from "node:worker_threads";
import { messageOf, systemCodeOf } from "../../core/errors.ts";

/**
 * For tests: a confined process that does what it is told, and says how each attempt went: `done`, or the code of the
 * error. The attempts come as JSON: a list of names with arguments.
 */
const ATTEMPTS: Readonly<Record<string, (a: string, b: string) => unknown>> = {
  read: (path) => readFileSync(path),
  list: (path) => readdirSync(path),
  write: (path) => writeFileSync(path, "written"),
  rename: (from, to) => renameSync(from, to),
  link: (from, to) => linkSync(from, to),
  symlink: (from, to) => symlinkSync(from, to),
  mkdir: (path) => mkdirSync(path),
  remove: (path) => rmSync(path, { recursive: true }),
  truncate: (path) => truncateSync(path, 0),
  chmod: (path) => chmodSync(path, 0o777),
  touch: (path) => utimesSync(path, 1, 1),
  // bounded: the test names processes that it started, and the filter of system calls refuses.
  signal: (pid, signal) => process.kill(Number(pid), Number(signal)),
  signalSelf: () => process.kill(process.pid, 0),
  run: (file, argument) => execFileSync(file, [argument]),
  connect: (port) => outcomeOf((settle) => connect(Number(port), "127.0.0.1", settle).on("error", settle)),
  connectPath: (path) => outcomeOf((settle) => connect(path, settle).on("error", settle)),
  listen: () => outcomeOf((settle) => createServer().on("error", settle).listen(0, "127.0.0.1", settle)),
  datagram: () => outcomeOf((settle) => createSocket("udp4").on("error", settle).bind(0, settle)),
  thread: () => outcomeOf((settle) => new Worker("0", { eval: true }).on("error", settle).on("exit", () => settle())),
  look: () => [process.memoryUsage.rss(), totalmem(), new Date(0).toString()],
};

function outcomeOf(start: (settle: (error?: Error) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => (error === undefined ? resolve() : reject(error)));
  });
}

async function attempt([name, a = "", b = ""]: readonly string[]): Promise<string> {
  try {
    const run = ATTEMPTS[name ?? ""];
    if (run === undefined) return `${name} is not known`;
    await run(a, b);
    return "done";
  } catch (error) {
    return systemCodeOf(error) ?? messageOf(error);
  }
}

const outcomes: string[] = [];
for (const one of JSON.parse(process.argv[2] ?? "[]") as string[][]) outcomes.push(await attempt(one));
process.stdout.write(JSON.stringify(outcomes), () => process.exit(0));
