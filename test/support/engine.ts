import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { lendSnapshot } from "../../src/query/translator/shared-snapshot.test-kit.ts";
import { removeUnmounted } from "../../src/sandbox/runtime/removal.test-kit.ts";

/** A real server in a process of its own, on a free port and a temporary home; what whole-system tests talk to. */
export type Engine = {
  url: string;
  home: string;
  pid: number;
  /** Everything the server wrote to standard error so far. */
  log(): string;
  /** Sends a signal and resolves when the process is gone. */
  stop(signal?: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
};

export type EngineOptions = {
  home: string;
  env?: Record<string, string>;
  /** Words before the program, e.g. `["strace", "-f", "-o", file]`. */
  prefix?: readonly string[];
  port?: number;
  /** Where it listens; 127.0.0.1 unless given. */
  host?: string;
  /** What to run instead of the checkout. */
  entry?: string;
  /** The words of a program that starts without this Node; `entry` is not read then. */
  program?: readonly string[];
};

const ENTRY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const START_TIMEOUT_MS = 90_000;

export async function temporaryHome(): Promise<{ home: string; remove: () => Promise<void> }> {
  const home = await mkdtemp(join(tmpdir(), "engine-test-"));
  return { home, remove: () => removeUnmounted(home) };
}

/** Starts a server and resolves once it listens; rejects with its log when it ends before that. */
export async function startEngine(options: EngineOptions): Promise<Engine> {
  const [command, ...args] = [
    ...(options.prefix ?? []),
    ...(options.program ?? [process.execPath, options.entry ?? ENTRY]),
    "serve",
    "--addr",
    `${options.host ?? "127.0.0.1"}:${options.port ?? 0}`,
  ];
  const isThisNode = options.prefix === undefined && options.program === undefined;
  if (isThisNode) lendSnapshot(join(options.home, "cache", "kql"));
  // The default port is one for the whole machine, and many servers run at a time.
  const env = { ...cleanEnv(), ENGINE_HOME: options.home, ENGINE_GRPC_ADDR: "off", ...options.env };
  const child = endsWithThisProcess(spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] }));
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  child.stdout.setEncoding("utf8").on("data", (text: string) => (log += text));
  const gone = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  const url = await listening(child, () => log);
  return {
    url,
    home: options.home,
    pid: child.pid ?? 0,
    log: () => log,
    stop: (signal = "SIGTERM") => {
      child.kill(signal);
      return gone;
    },
  };
}

/** This process's environment without settings that a developer's shell may carry. */
export function cleanEnv(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("ENGINE_") && name !== "NODE_OPTIONS",
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

function listening(child: ChildProcess, log: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      clearTimeout(timer);
      clearInterval(poll);
      child.kill("SIGKILL");
      reject(new Error(`the server ${why}; its log:\n${log()}`));
    };
    const timer = setTimeout(() => fail("did not listen in time"), START_TIMEOUT_MS);
    const poll = setInterval(() => {
      const url = /"url":"(https?:[^"]+)"/.exec(log())?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      clearInterval(poll);
      resolve(url);
    }, 10);
    child.once("exit", (code) => fail(`ended with exit code ${code} before it listened`));
  });
}
