import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * System calls of a real process, from `strace -f -y`: what no test from inside can see, and `kill -9` does not show
 * (the page cache survives it), namely whether bytes and names were synced before somebody was told so.
 */
export type SystemCall = {
  thread: number;
  name: string;
  /** As strace prints them; descriptors carry their path: `21</data/x>`. */
  args: readonly string[];
  /** The returned number as text, or `?`. */
  result: string;
  /** `EIO` and the like, when the call failed. */
  error?: string;
  /** Line numbers of the trace: one call happened before another when its `end` is smaller than the other's `start`. */
  start: number;
  end: number;
};

/** What a process did, and what it printed. */
export type Trace = { calls: SystemCall[]; stdout: string; stderr: string; exitCode: number | null };

/** The calls that make, write, name, sync and answer. */
const FILE_CALLS = `
  open openat creat mkdir mkdirat rmdir rename renameat renameat2 unlink unlinkat link linkat
  ftruncate fsync fdatasync sync_file_range
  write writev pwrite64 pwritev pwritev2 sendto sendmsg
`;

export type TraceOptions = {
  /** Bytes kept of each string argument (64). */
  stringBytes?: number;
  /** Fault injection as strace takes it, e.g. `fsync:error=EIO:when=2` (counted per thread). */
  inject?: string;
  env?: Readonly<Record<string, string>>;
};

/** Runs a command under strace to its end. */
export async function traceCommand(command: readonly string[], options: TraceOptions = {}): Promise<Trace> {
  const folder = await mkdtemp(join(tmpdir(), "engine-trace-"));
  const file = join(folder, "trace");
  try {
    const [strace = "strace", ...flags] = straceCommand(file, options);
    const child = spawn(strace, [...flags, ...command], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...TRACEABLE_ENV, ...options.env },
    });
    const ended = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
    const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)]);
    const exitCode = await ended;
    return { calls: parseTrace(await readFile(file, "utf8")), stdout, stderr, exitCode };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** libuv may send file operations through io_uring, where no system call shows them. */
export const TRACEABLE_ENV = { UV_USE_IO_URING: "0" };

/** The words that go before a command to have its trace written to `file`. */
export function straceCommand(file: string, options: TraceOptions = {}): string[] {
  const calls = FILE_CALLS.trim().split(/\s+/).join(",");
  const strings = String(options.stringBytes ?? 64);
  const flags = ["strace", "-f", "-y", "-s", strings, "-o", file, "-e", `trace=${calls}`];
  return options.inject === undefined ? flags : [...flags, "-e", `inject=${options.inject}`];
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  return text;
}

const WHOLE = /^(\d+) +(\w+)\((.*)\) += (\S+)(?: (E[A-Z0-9]+))?/;
const UNFINISHED = /^(\d+) +(\w+)\((.*?)(?:, )? *<unfinished \.\.\.>$/;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (\S+)(?: (E[A-Z0-9]+))?/;

/** Parses the output of `strace -f -y -o`: calls in the order in which they ended. Signals and exits are passed over. */
export function parseTrace(text: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const open = new Map<number, { name: string; args: string; start: number }>();
  for (const [index, line] of text.split("\n").entries()) {
    const unfinished = UNFINISHED.exec(line);
    if (unfinished !== null) {
      const [, thread, name = "", args = ""] = unfinished;
      open.set(Number(thread), { name, args, start: index });
      continue;
    }
    const resumed = RESUMED.exec(line);
    const [, thread, name = "", args = "", result = "", error] = resumed ?? WHOLE.exec(line) ?? [];
    if (thread === undefined) continue;
    const begun = resumed === null ? undefined : open.get(Number(thread));
    if (resumed !== null) open.delete(Number(thread));
    calls.push({
      thread: Number(thread),
      name,
      args: splitArguments([begun?.args, args.replace(/^, /, "")].filter((part) => (part ?? "") !== "").join(", ")),
      result: result.replace(/<.*/, ""),
      ...(error === undefined ? {} : { error }),
      start: begun?.start ?? index,
      end: index,
    });
  }
  return calls;
}

/** Splits at the commas that are outside of strings, brackets and descriptor annotations. */
function splitArguments(text: string): string[] {
  const args: string[] = [];
  let depth = 0;
  let quoted = false;
  let current = "";
  for (let i = 0; i < text.length; i++) {
    const c = text.charAt(i);
    if (c === "\\" && quoted) current += c + text.charAt(++i);
    else if (c === "," && depth === 0 && !quoted) {
      args.push(current.trim());
      current = "";
    } else {
      if (c === '"') quoted = !quoted;
      else if (!quoted && "([{<".includes(c)) depth++;
      else if (!quoted && ")]}>".includes(c)) depth--;
      current += c;
    }
  }
  if (current.trim() !== "") args.push(current.trim());
  return args;
}

/** The text of a string argument (`"…"`), escapes undone as far as JSON knows them; undefined for anything else. */
export function stringOf(arg: string | undefined): string | undefined {
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(arg ?? "")?.[1];
  if (quoted === undefined) return undefined;
  // strace writes octal escapes for what is not printable.
  return quoted.replace(/\\([0-7]{1,3})|\\(.)/g, (_all, octal: string | undefined, char: string | undefined) =>
    octal === undefined ? (ESCAPES[char ?? ""] ?? char ?? "") : String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", v: "\v", f: "\f" };

/** The path that a descriptor argument is annotated with. */
export function pathOfDescriptor(arg: string | undefined): string | undefined {
  return /^(?:\d+|AT_FDCWD)<(\/.*)>$/.exec(arg ?? "")?.[1];
}
