import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { AUTH_OPTIONS } from "../../auth/options.ts";
import { readHealth } from "../../client/health.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { loadConfig, type LoadedConfig } from "../../config/load.ts";
import { OBJECT_STORE_OPTIONS, objectStoreSettings } from "../../config/object-store.ts";
import { optionOf, type OptionName } from "../../config/options.ts";
import { sleep } from "../../core/clock.ts";
import { programCommand } from "../../core/distribution.ts";
import { VERSION } from "../../core/version.ts";
import type {
  Applied,
  Change,
  ConnectIdentity,
  DeploymentStatus,
  DeployTarget,
  InitRequest,
  Plan,
  ProcessStatus,
} from "../target.ts";
import type { Prepared, Workspace } from "../workspace.ts";
import {
  chooseLayout,
  isFree,
  LAYOUT_FILE,
  layoutSchema,
  makeSecrets,
  MEMBERS,
  SECRETS_FILE,
  secretsSchema,
  type Layout,
  type Secrets,
} from "./layout.ts";
import { launch } from "./launch.ts";
import { POSTGRES_USER } from "./postgres.ts";
import { isAlive, signal } from "./process-identity.ts";
import { CONFIG_FILE, edgeUrls, inherited, postgresOf, programsOf } from "./programs.ts";
import { checkServices } from "./services.ts";
import {
  DESIRED_FILE,
  desiredSchema,
  STATE_FILE,
  stateSchema,
  type ProgramSpec,
  type SupervisorState,
} from "./state.ts";
import { isSupervised, runningOf } from "./supervisor.ts";

/** A cluster on this machine: PostgreSQL, a shared folder or an S3 server, and every role as processes of its own. */
export const LOCAL_TARGET: DeployTarget = { prepare, addIdentity, plan, apply, status, losses, destroy };

const POLL_MS = 100;
/** How long nothing may change while `up` waits. A restarted process drains for less. */
const STALL_TIMEOUT_MS = 120_000;
const SUPERVISOR_STOP_MS = 10_000;
const SHOWN_LOG_CHARS = 1_500;
/** A process that ended so often while `up` waits does not come up by waiting. */
const MOST_RESTARTS = 4;

/** The settings of this shell that say where the data is go into the deployment's own file. */
async function prepare({ flags, context, name }: InitRequest): Promise<Prepared> {
  for (const flag of ["tool", "region", "domain"] as const) {
    if (flags[flag] !== undefined) throw new CliError(`--${flag} is for --target cloud`, EXIT.usage);
  }
  const { config, origins } = await context.loadConfig({});
  const given: OptionName[] = OBJECT_STORE_OPTIONS.filter((option) => origins[option] !== "default");
  if (config.catalogUrl.kind === "postgres") given.unshift("catalogUrl");
  const lines = given.map((option) => {
    const value =
      option === "catalogUrl" && config.catalogUrl.kind === "postgres"
        ? withUser(config.catalogUrl.url, context.deps.env)
        : config[option];
    return `${optionOf(option).toml} = ${JSON.stringify(value)}`;
  });
  const header = [
    `# Options of every process of ${name} (docs/configuration.md). \`engine deploy up\` restarts one after the other`,
    "# when they change. Without catalog.url the deployment has a PostgreSQL of its own, and without objstore options a",
    "# shared folder.",
  ];
  const file = { path: CONFIG_FILE, text: `${[...header, ...lines].join("\n")}\n`, isSecret: lines.length > 0 };
  const roles = MEMBERS.map((member) => `${programCommand().join(" ")} server  # ${member.name}`);
  const postgres = config.catalogUrl.kind === "postgres" ? [] : ["initdb", "postgres"];
  return { settings: {}, files: [file], commands: [...postgres, ...roles] };
}

/** Into `engine.toml`. The addresses need the ports, which the first `up` would choose otherwise. */
async function addIdentity(workspace: Workspace, prepared: Prepared, connect: ConnectIdentity): Promise<Prepared> {
  const known = await workspace.readJson(LAYOUT_FILE, layoutSchema);
  const layout = known ?? (await chooseLayout(workspace.context.deps.random));
  const [first = "", ...others] = edgeUrls(layout);
  const { url, publicKey } = await connect([first, ...others]);
  const lines = [
    `${AUTH_OPTIONS.idpUrl.toml} = ${JSON.stringify(url)}`,
    `${AUTH_OPTIONS.idpAnonKey.toml} = ${JSON.stringify(publicKey)}`,
  ];
  const files = prepared.files.map((file) =>
    file.path === CONFIG_FILE ? { ...file, text: `${file.text}${lines.join("\n")}\n` } : file,
  );
  const layoutFile = { path: LAYOUT_FILE, text: `${JSON.stringify(layout, undefined, 2)}\n`, isSecret: false };
  return { ...prepared, files: [...files, layoutFile] };
}

/** The processes do not get `PGUSER` and `PGPASSWORD` of this shell. */
function withUser(text: string, env: CliContext["deps"]["env"]): string {
  const url = new URL(text);
  const { PGUSER = "", PGPASSWORD = "" } = env;
  const before = url.href;
  if (url.username === "" && PGUSER !== "") url.username = encodeURIComponent(PGUSER);
  if (url.password === "" && url.username !== "" && PGPASSWORD !== "") url.password = encodeURIComponent(PGPASSWORD);
  return url.href === before ? text : url.href;
}

type Loaded = {
  layout: Layout | undefined;
  secrets: Secrets | undefined;
  config: LoadedConfig;
  state: SupervisorState | undefined;
};

async function load(workspace: Workspace): Promise<Loaded> {
  return {
    layout: await workspace.readJson(LAYOUT_FILE, layoutSchema),
    secrets: await workspace.readJson(SECRETS_FILE, secretsSchema),
    config: await configOf(workspace),
    state: await workspace.readJson(STATE_FILE, stateSchema),
  };
}

/** What `engine.toml` says. @throws StartupError for what it may not */
async function configOf(workspace: Workspace): Promise<LoadedConfig> {
  const { deps } = workspace.context;
  return loadConfig({
    env: { ENGINE_CONFIG: workspace.path(CONFIG_FILE), ENGINE_HOME: workspace.path("local") },
    rows: await deps.rows(),
  });
}

async function plan(workspace: Workspace): Promise<Plan> {
  const loaded = await load(workspace);
  const planned = changesOf(workspace, loaded);
  if (planned.changes.length > 0) await checkServices(workspace.context, loaded.config);
  return planned;
}

/** Looks at nothing but this machine. @throws CliError for what is missing on it */
function changesOf(workspace: Workspace, { layout, secrets, config, state }: Loaded): Plan {
  const postgres = postgresOf({ workspace, config });
  if (layout === undefined || secrets === undefined) {
    const names = [...(postgres === undefined ? [] : ["postgres"]), ...MEMBERS.map(({ name }) => name)];
    return { changes: names.map((name): Change => ({ action: "create", subject: name, reason: "new" })), commands: [] };
  }
  const programs = programsOf({ workspace, layout, secrets, config });
  const running = runningOf(state);
  const changes: Change[] = programs.flatMap(({ name, hash }): Change[] => {
    const known = running.get(name);
    if (known === undefined) return [{ action: "start", subject: name, reason: "it does not run" }];
    if (known.hash === hash) return [];
    const reason =
      known.version === VERSION ? "its settings or program changed" : `version ${known.version} to ${VERSION}`;
    return [{ action: "restart", subject: name, reason }];
  });
  if (!isSupervised(state)) changes.unshift({ action: "start", subject: "supervisor", reason: "it does not run" });
  const commands = programs.map(({ name, command }) => `${command.join(" ")}  # ${name}`);
  return { changes, commands };
}

async function apply(workspace: Workspace): Promise<Applied> {
  const { random } = workspace.context.deps;
  const loaded = await load(workspace);
  const { config, state } = loaded;
  const layout = loaded.layout ?? (await chooseLayout(random));
  const secrets = loaded.secrets ?? makeSecrets(random);
  if (loaded.layout === undefined) await workspace.writeJson(LAYOUT_FILE, layout);
  if (loaded.secrets === undefined) await workspace.writeJson(SECRETS_FILE, secrets);
  const programs = programsOf({ workspace, layout, secrets, config });
  await checkPorts(layout, programs, state);
  await mkdir(workspace.path("local/logs"), { recursive: true, mode: 0o700 });
  await mkdir(workspace.path("local/objects"), { recursive: true, mode: 0o700 });
  postgresOf({ workspace, config })?.initialize({
    user: POSTGRES_USER,
    password: secrets.postgresPassword,
    passages: [workspace.path("local"), workspace.folder, dirname(workspace.folder)],
  });
  const generation = await tell(workspace, programs, { isRunning: true });
  await supervise(workspace, state);
  await settle(workspace, generation);
  const [url = ""] = edgeUrls(layout);
  if (secrets.isTokenShown) return { url, adminToken: undefined };
  await workspace.writeJson(SECRETS_FILE, { ...secrets, isTokenShown: true });
  return { url, adminToken: secrets.adminToken };
}

async function checkPorts(
  layout: Layout,
  programs: readonly ProgramSpec[],
  state: SupervisorState | undefined,
): Promise<void> {
  const running = runningOf(state);
  for (const { name } of programs) {
    const port = layout.ports[name] ?? 0;
    if (running.has(name) || (await isFree(port))) continue;
    throw new CliError(
      `port ${port} of ${name} is taken by another program: end that one, or give ${name} another port in ${LAYOUT_FILE}`,
    );
  }
}

/** Resolves to the generation that the supervisor is to reach. */
async function tell(
  workspace: Workspace,
  programs: readonly ProgramSpec[],
  { isRunning }: { isRunning: boolean },
): Promise<number> {
  const before = await workspace.readJson(DESIRED_FILE, desiredSchema);
  const generation = (before?.generation ?? 0) + 1;
  await workspace.writeJson(DESIRED_FILE, { format: 1, generation, isRunning, programs });
  return generation;
}

/** Starts a supervisor, unless one of this version runs. One of another version ends; what it watches goes on. */
async function supervise(workspace: Workspace, state: SupervisorState | undefined): Promise<void> {
  if (state !== undefined && isSupervised(state)) {
    if (state.supervisor.version === VERSION) return;
    await end(workspace.context, state);
  }
  const [file = process.execPath, ...before] = programCommand();
  const { child, begin } = launch({
    command: [file, ...before, "deploy", "supervise", "--name", workspace.name],
    env: { ...inherited(workspace.context.deps.env), ENGINE_HOME: workspace.home },
    log: workspace.path("local/logs/supervisor.log"),
  });
  child.unref();
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(new CliError(`cannot start the supervisor: ${error.message}`)));
  });
  begin();
}

async function end({ deps: { clock } }: CliContext, { supervisor }: SupervisorState): Promise<void> {
  signal(supervisor, "SIGTERM");
  for (const untilMs = clock.monotonicMs() + SUPERVISOR_STOP_MS; isAlive(supervisor); await sleep(clock, POLL_MS)) {
    if (clock.monotonicMs() > untilMs) signal(supervisor, "SIGKILL");
  }
}

/** Waits until everything runs as it should. @throws CliError with the end of a log */
async function settle(workspace: Workspace, generation: number): Promise<void> {
  const { clock } = workspace.context.deps;
  let untilMs = clock.monotonicMs() + STALL_TIMEOUT_MS;
  let seen = "";
  for (;;) {
    const state = await workspace.readJson(STATE_FILE, stateSchema);
    if (state !== undefined && isSupervised(state) && state.settled >= generation) return;
    const text = JSON.stringify(state);
    if (text !== seen) untilMs = clock.monotonicMs() + STALL_TIMEOUT_MS;
    seen = text;
    const failing = Object.entries(state?.failures ?? {}).find(
      ([name]) => (state?.processes[name]?.restarts ?? 0) >= MOST_RESTARTS,
    );
    if (failing !== undefined) throw await notUp(workspace, failing[0], "ends again and again");
    if (clock.monotonicMs() > untilMs) {
      const [waiting = "supervisor"] = Object.keys(state?.failures ?? {});
      throw await notUp(workspace, waiting, `does not serve after ${STALL_TIMEOUT_MS / 1_000} s`);
    }
    await sleep(clock, POLL_MS);
  }
}

async function notUp(workspace: Workspace, name: string, what: string): Promise<CliError> {
  const log = workspace.path(`local/logs/${name}.log`);
  const text = await readFile(log, "utf8").catch(() => "");
  return new CliError(`${name} ${what}; see ${log}, mend it and run \`engine deploy up\` again`, EXIT.failed, {
    detail: text.slice(-SHOWN_LOG_CHARS),
  });
}

async function status(workspace: Workspace): Promise<DeploymentStatus> {
  const loaded = await load(workspace);
  const { layout, secrets, config, state } = loaded;
  if (layout === undefined || secrets === undefined) {
    return { state: "not deployed", url: undefined, processes: [], drift: ["nothing was brought up yet"] };
  }
  const programs = programsOf({ workspace, layout, secrets, config });
  const running = runningOf(state);
  const [url = ""] = edgeUrls(layout);
  if (running.size === 0) return { state: "stopped", url: undefined, processes: [], drift: [] };
  const processes = await Promise.all(
    programs.map((program) => statusOf(workspace.context, program, running.get(program.name)?.pid)),
  );
  const drift = changesOf(workspace, loaded).changes.map(({ subject, reason }) => `${subject}: ${reason}`);
  const isHealthy = processes.every((one) => one.state === "ok") && isSupervised(state);
  return { state: isHealthy ? "healthy" : "degraded", url, processes, drift };
}

async function statusOf(
  context: CliContext,
  { name, probe }: ProgramSpec,
  processId: number | undefined,
): Promise<ProcessStatus> {
  const url = probe.kind === "http" ? new URL(probe.url).origin : undefined;
  const known = { name, processId, url };
  if (processId === undefined) return { ...known, state: "not running", version: undefined };
  if (url === undefined) return { ...known, state: "ok", version: undefined };
  try {
    const health = await readHealth(context, { url, origin: "the deployment" });
    return { ...known, state: health.status, version: health.version };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return { ...known, state: "does not answer", version: undefined };
  }
}

async function losses(workspace: Workspace, { isForced }: { isForced: boolean }): Promise<string[]> {
  const { config } = await load(workspace);
  const store = objectStoreSettings(config);
  const ends = `all processes of ${workspace.name} end`;
  if (!isForced) return [ends, `data, settings and the admin token stay in ${workspace.folder}`];
  const [lost, kept]: [string[], string[]] = [[], []];
  if (config.config.catalogUrl.kind === "postgres") kept.push("the catalog at catalog.url stays as it is");
  else lost.push("the catalog with all databases");
  if (store.kind === "s3") kept.push(`the objects in the bucket ${store.bucket} stay as they are`);
  else lost.push("all objects");
  lost.push("settings", "the admin token and logs");
  return [ends, `deleted with ${workspace.folder}: ${lost.join(", ")}`, ...kept];
}

async function destroy(workspace: Workspace): Promise<void> {
  const { clock } = workspace.context.deps;
  const before = await workspace.readJson(DESIRED_FILE, desiredSchema);
  if (before === undefined) return;
  await tell(workspace, before.programs, { isRunning: false });
  const state = await workspace.readJson(STATE_FILE, stateSchema);
  if (runningOf(state).size === 0 && !isSupervised(state)) return;
  await supervise(workspace, state);
  for (const untilMs = clock.monotonicMs() + STALL_TIMEOUT_MS; ; await sleep(clock, POLL_MS)) {
    const now = await workspace.readJson(STATE_FILE, stateSchema);
    if (runningOf(now).size === 0 && !isSupervised(now)) return;
    if (clock.monotonicMs() > untilMs) {
      const names = [...runningOf(now).keys()].join(", ");
      throw new CliError(
        `${names || "the supervisor"} did not end within ${STALL_TIMEOUT_MS / 1_000} s; run \`engine deploy destroy\` again`,
      );
    }
  }
}
