import { FABRIC_OPTIONS } from "../../fabric/options.ts";
import { valuesOf } from "../../config/option.ts";
import { hostname } from "node:os";
import type { Command } from "commander";
import type { LoadedConfig } from "../../config/load.ts";
import type { JobHandler } from "../../fabric/handler.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT, type ExitCode } from "../../client/failure.ts";
import type { RegisterCommand } from "../../client/command.ts";
import type { DreamWorkerDeps } from "../../knowledge/dreaming/remote/worker.ts";
import type { Programs } from "../worker-exec.ts";
import { registerAdmin } from "./worker-admin.ts";
import { registerSync } from "./worker-sync.ts";

type RunFlags = {
  server?: string;
  token?: string;
  accept?: string;
  maxConcurrent: string;
  name?: string;
  exec?: string;
};

const MOST_CONCURRENT = 100;
const DEFAULT_KIND = "source_sync";
/** Jobs of this kind are sandboxes, which this program runs itself. */
const SANDBOX_KIND = "sandbox";
/** Jobs of this kind have a model asked, which this program does itself. */
const DREAM_KIND = "dreaming";

export const register: RegisterCommand = (program, context) => {
  const group = program.command("worker").description("Run jobs on this node, and manage the nodes that do.");
  registerRun(group, context);
  registerAdmin(group, context);
  registerSync(group, context);
};

function registerRun(group: Command, context: CliContext): void {
  const command = group
    .command("run")
    .description("Take jobs of a server and run them on this node, until it is told to stop.")
    .option("--server <url>", "control plane (ENGINE_SERVER_URL)")
    .option("--token <token>", "token of this node, from `engine worker create` (ENGINE_WORKER_TOKEN)")
    .option(
      "--accept <kinds>",
      `kinds of jobs to take, with commas between, or one after the other; ${DEFAULT_KIND} by default`,
      (kinds: string, before?: string) => (before === undefined ? kinds : `${before},${kinds}`),
    )
    .option("--max-concurrent <n>", "jobs at once", "1")
    .option("--name <name>", "what this node calls itself; node@<hostname> by default")
    .option("--exec <program>", "program that runs jobs of your own kinds (x.…): payload in, result out");
  withExamples(command, [
    'ENGINE_WORKER_TOKEN="$(engine worker create --name node-1)" engine worker run --server https://engine.example.com --accept x.report --exec ./report.sh',
    "engine worker run --accept x.render,x.report --exec ./run-job --max-concurrent 4",
    "engine worker run --accept sandbox",
    "engine worker run --accept dreaming",
  ]).action(context.action((flags: RunFlags) => run(context, flags)));
}

async function run(context: CliContext, flags: RunFlags): Promise<ExitCode> {
  const loaded = await context.loadConfig({ serverUrl: flags.server, workerToken: flags.token });
  const { url, token } = await serverOf(loaded);
  const slots = slotsOf(flags.maxConcurrent);
  const kinds = kindsIn(flags.accept ?? DEFAULT_KIND);
  const ownKinds = await ownKindsOf(kinds);
  const programs = ownKinds.length === 0 ? undefined : await programsFor(context, ownKinds, flags.exec);
  const waiting = kinds.filter((kind) => kind !== SANDBOX_KIND && kind !== DREAM_KIND && !ownKinds.includes(kind));
  const { name = `node@${hostname()}` } = flags;
  const [{ runDaemon }, { RemotePort }, { createLog, readable }, { KILL_AFTER_MS }] = await Promise.all([
    import("../worker-daemon.ts"),
    import("../../fabric/remote-port.ts"),
    import("../../core/log.ts"),
    import("../worker-exec.ts"),
  ]);
  const { clock, random, version, stderr } = context.deps;
  const unwindMs = KILL_AFTER_MS + 2_000;
  const server = { url, token, userAgent: `engine/${version}` };
  const port = new RemotePort(server);
  const write = (line: string) => void stderr.write(line);
  const log = createLog(loaded.config.logLevel, stderr.isTTY === true ? readable(write, context.deps.env) : { write });
  const shared = { port, clock, random, log };
  const sandboxes = async (workerId: string) => {
    const [{ daemonSandboxes }, { sandboxConfig }] = await Promise.all([
      import("../worker-sandboxes.ts"),
      import("../../sandbox/contract/options.ts"),
    ]);
    return await daemonSandboxes({ ...shared, config: sandboxConfig(loaded.config), server }, workerId);
  };
  const dreams = kinds.includes(DREAM_KIND) ? [await dreamHandler(loaded, shared)] : [];
  const taken = kinds.filter((kind) => !waiting.includes(kind));
  if (taken.length > 0) context.note(`${name} takes ${taken.join(", ")} of ${url}, ${slots} at once`);
  if (waiting.length > 0) {
    context.warn(
      `this version has no handler for jobs of ${waiting.join(", ")}: they wait for one that has; ${name} is online`,
    );
  }
  try {
    return await runDaemon({
      ...shared,
      node: { name, host: hostname(), version, kinds: taken },
      handlers: [...dreams, ...ownKinds.flatMap((kind): JobHandler[] => (programs ? [programs.handler(kind)] : []))],
      sandboxes: kinds.includes(SANDBOX_KIND) ? sandboxes : undefined,
      slots,
      drainMs: Math.max(0, loaded.config.drainTimeoutSecs * 1_000 - unwindMs),
      unwindMs,
    });
  } finally {
    programs?.kill();
  }
}

/** What runs dreams here: it asks models at the addresses, and with the keys, of this node's operator. */
async function dreamHandler({ config }: LoadedConfig, deps: Omit<DreamWorkerDeps, "settings">): Promise<JobHandler> {
  const [{ remoteDreamHandler }, { AGENT_OPTIONS }] = await Promise.all([
    import("../../knowledge/dreaming/remote/worker.ts"),
    import("../../knowledge/agent/options.ts"),
  ]);
  return remoteDreamHandler({ ...deps, settings: valuesOf(AGENT_OPTIONS, config) });
}

async function serverOf(loaded: LoadedConfig): Promise<{ url: string; token: string }> {
  const { serverUrl: url, workerToken: token, workerInsecure } = valuesOf(FABRIC_OPTIONS, loaded.config);
  if (url === undefined) throw usage("which server? set ENGINE_SERVER_URL, or give --server URL");
  if (token === undefined) {
    throw usage("a node needs its token: set ENGINE_WORKER_TOKEN to what `engine worker create --name NAME` printed");
  }
  const { checkServerUrl } = await import("../../fabric/remote-port-http.ts");
  checkServerUrl(url, workerInsecure);
  return { url, token };
}

function slotsOf(text: string): number {
  const slots = /^\d{1,3}$/.test(text.trim()) ? Number(text) : 0;
  if (slots >= 1 && slots <= MOST_CONCURRENT) return slots;
  throw usage(`--max-concurrent is ${JSON.stringify(text)}; expected an integer from 1 to ${MOST_CONCURRENT}`);
}

function kindsIn(text: string): string[] {
  const kinds = text.split(",").map((kind) => kind.trim());
  if (kinds.every((kind) => kind !== "")) return [...new Set(kinds)];
  throw usage(`--accept is ${JSON.stringify(text)}; expected kinds of jobs, with commas between`);
}

/** Those of the kinds that a program of the user's runs. Throws `CliError` for a name that no kind can have. */
async function ownKindsOf(kinds: readonly string[]): Promise<string[]> {
  const { isKindName, OWN_KIND_PREFIX } = await import("../../fabric/kinds.ts");
  const wrong = kinds.filter((kind) => !isKindName(kind));
  if (wrong.length > 0) throw usage(`--accept has ${JSON.stringify(wrong[0])}, and no kind of job is called so`);
  return kinds.filter((kind) => kind.startsWith(OWN_KIND_PREFIX));
}

/** What runs jobs of those kinds. */
async function programsFor(context: CliContext, kinds: readonly string[], exec: string | undefined): Promise<Programs> {
  if (exec === undefined) {
    throw usage(`which program runs jobs of ${kinds.join(", ")}? name it with --exec PROGRAM`);
  }
  const { findProgram, Programs } = await import("../worker-exec.ts");
  const program = findProgram(exec, context.deps.env["PATH"] ?? "");
  if (program === undefined) throw usage(`--exec is ${JSON.stringify(exec)}, which is no program that may be run`);
  return new Programs(program, context.deps.clock);
}

function usage(message: string): CliError {
  return new CliError(message, EXIT.usage);
}
