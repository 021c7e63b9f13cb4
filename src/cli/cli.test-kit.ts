import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { FEATURES } from "../../roles/features.ts";
import { MIGRATIONS } from "../catalog/migrations.test-kit.ts";
import { systemClock } from "../core/clock.ts";
import { systemRandom } from "../core/random.ts";
import { runCli, type CliDeps } from "./main.ts";

/** What the program consists of. */
export const features = () => Promise.resolve(FEATURES);

/** What the tests of the command line run it with: as a child process, or in this one with streams of their own. */
export type Outcome = { code: number | null; stdout: string; stderr: string };

const ENTRY = fileURLToPath(new URL("./cli-child.test-kit.ts", import.meta.url));

export type RunOptions = {
  /** Serves in place of the role; not for a process of its own. */
  serve?: CliDeps["serve"];
  env?: Readonly<Record<string, string>>;
  /** Where it runs; a process of its own only. */
  cwd?: string;
  input?: string | Uint8Array | Readable;
  /** In the place of the standard output that is collected; not for a process of its own. */
  stdout?: CliDeps["stdout"];
  /** Stops reading standard output after so many bytes. */
  closeStdoutAfterBytes?: number;
};

/** Runs the command line as a process of its own. */
export function runChild(argv: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...options.env };
  const child = spawn(process.execPath, [ENTRY, ...argv], { env, cwd: options.cwd });
  const outcome: Outcome = { code: null, stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    outcome.stdout += text;
    if (outcome.stdout.length > (options.closeStdoutAfterBytes ?? Number.POSITIVE_INFINITY)) child.stdout.destroy();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (outcome.stderr += text));
  // A command that fails early does not read all of its input.
  child.stdin.on("error", () => undefined);
  if (options.input instanceof Readable) options.input.pipe(child.stdin);
  else child.stdin.end(options.input ?? "");
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ ...outcome, code }));
  });
}

/** Runs the command line in this process, which is far quicker; its streams are no terminal. */
export function runHere(argv: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  return run(argv, options, undefined);
}

/** As `runHere`, with standard output and error that claim to be a terminal. */
export function runOnTerminal(
  argv: readonly string[],
  options: RunOptions & { columns?: number } = {},
): Promise<Outcome> {
  return run(argv, options, { isTTY: true, columns: options.columns ?? 80 });
}

async function run(argv: readonly string[], options: RunOptions, terminal: object | undefined): Promise<Outcome> {
  const [stdout, stderr] = [collector(terminal), collector(terminal)];
  const deps: CliDeps = {
    serve: options.serve ?? (() => Promise.resolve(0)),
    features,
    migrations: () => Promise.resolve(MIGRATIONS),
    version: "1.2.3",
    // The home of whoever runs the tests stays out of it.
    env: { ENGINE_HOME: "/nonexistent", ...options.env },
    stdin: inputOf(options.input),
    stdout: options.stdout ?? stdout.stream,
    stderr: stderr.stream,
    clock: systemClock,
    random: systemRandom,
  };
  const code = await runCli(argv, deps);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

function inputOf(input: RunOptions["input"]): Readable {
  return input instanceof Readable ? input : Readable.from(input === undefined ? [] : [Buffer.from(input)]);
}

function collector(properties: object | undefined) {
  const chunks: Buffer[] = [];
  const stream = new PassThrough().on("data", (chunk: Buffer) => chunks.push(chunk));
  return { stream: Object.assign(stream, properties), text: () => Buffer.concat(chunks).toString("utf8") };
}

export type TestServer = { url: string; server: Server; close(): Promise<void> };

/** An HTTP server that answers with what `handle` does. */
export async function startServer(
  handle: (request: IncomingMessage, body: Buffer, response: ServerResponse) => void,
): Promise<TestServer> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => handle(request, Buffer.concat(chunks), response));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
