import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { AUTH_OPTIONS } from "../../auth/options.ts";
import { valuesOf, type OptionValues } from "../../config/option.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { objectStoreSettings } from "../../config/object-store.ts";
import { distribution, programCommand } from "../../core/distribution.ts";
import { VERSION } from "../../core/version.ts";
import type { Workspace } from "../workspace.ts";
import { PostgresFolder } from "../../db/postgres/server-folder.ts";
import { MEMBERS, ROLES, type Layout, type Member, type Role, type Secrets } from "./layout.ts";
import { POSTGRES_SETTINGS, POSTGRES_USER, requirePostgresPrograms } from "./postgres.ts";
import type { ProgramSpec } from "./state.ts";

export const CONFIG_FILE = "engine.toml";
/** More than a drain takes by its own limit. */
const STOP_MARGIN_MS = 10_000;
const POSTGRES_STOP_MS = 60_000;

/** A program, without the hash of what it depends on. */
export type Description = Omit<ProgramSpec, "hash">;

/** Where the programs of a cluster on this machine are. */
export type Place = {
  /** The home of each server is `<name>` in it, the log of each program `logs/<name>.log`. */
  folder: string;
  ports: Layout["ports"];
};

export type LocalParts = { workspace: Workspace; layout: Layout; secrets: Secrets; config: LoadedConfig };

/** The deployment's own server; undefined where `engine.toml` names another one. @throws CliError */
export function postgresOf({
  workspace,
  config,
}: Pick<LocalParts, "workspace" | "config">): PostgresFolder | undefined {
  if (config.config.catalogUrl.kind === "postgres") return undefined;
  const programs = requirePostgresPrograms(workspace.context.deps.env["PATH"] ?? "");
  return new PostgresFolder(programs.folder, workspace.path("local/postgres"));
}

/** Every program of the deployment as it should run. @throws CliError */
export function programsOf(parts: LocalParts): ProgramSpec[] {
  const { workspace, layout, secrets, config } = parts;
  const place = { folder: workspace.path("local"), ports: layout.ports };
  const environment = inherited(workspace.context.deps.env);
  const postgres = postgresOf(parts);
  const servers = describeServers(MEMBERS, place, {
    program: programCommand(),
    env: {
      ...environment,
      ENGINE_CONFIG: workspace.path(CONFIG_FILE),
      ...adminAccess(valuesOf(AUTH_OPTIONS, config.config), secrets.adminToken),
      ENGINE_SECRET_KEY: secrets.secretKey,
      ...(postgres === undefined ? {} : { ENGINE_CATALOG_URL: postgresUrl(layout, secrets) }),
      ...(objectStoreSettings(config).kind === "local" ? { ENGINE_LOCAL_DATA: workspace.path("local/objects") } : {}),
    },
    stopTimeoutMs: config.config.drainTimeoutSecs * 1_000 + STOP_MARGIN_MS,
  });
  const stamp = programStamp(JSON.stringify(config.config));
  const hashed = servers.map((server): ProgramSpec => hashedSpec(server, stamp));
  return postgres === undefined ? hashed : [hashedSpec(describePostgres(postgres, place, environment), ""), ...hashed];
}

export type ServersOptions = {
  /** The words that start the engine. */
  program: readonly string[];
  /** What all servers have in their environment. */
  env: Readonly<Record<string, string>>;
  stopTimeoutMs: number;
};

/** The servers as they should run: each with its role, address and home, and edges with their peers. */
export function describeServers(
  members: readonly Member[],
  { folder, ports }: Place,
  { program, env, stopTimeoutMs }: ServersOptions,
): Description[] {
  const [executable = process.execPath, ...before] = program;
  return members.map(({ name, role }): Description => {
    const url = urlOf(name, ports);
    const peersOf = (peer: Role) => urlsOf(peer, members, ports).join(",");
    const peers =
      role === "edge" ? { ENGINE_QUERY_PEERS: peersOf("query"), ENGINE_INGEST_PEERS: peersOf("ingest") } : {};
    const own = {
      ENGINE_ROLES: role,
      ENGINE_HTTP_ADDR: new URL(url).host,
      // Only one of them could have the usual port.
      ENGINE_GRPC_ADDR: "off",
      ENGINE_HOME: join(folder, name),
    };
    return {
      name,
      rank: ROLES[role].rank,
      command: [executable, ...before, "server"],
      env: { ...env, ...peers, ...own },
      log: logOf(name, folder),
      probe: { kind: "http", url: `${url}/health` },
      stopSignal: "SIGTERM",
      stopTimeoutMs,
    };
  });
}

/** The PostgreSQL server of that folder as it should run; it comes before all servers. */
export function describePostgres(
  server: PostgresFolder,
  { folder, ports }: Place,
  env: Readonly<Record<string, string>>,
): Description {
  const port = portOf("postgres", ports);
  return {
    name: "postgres",
    rank: 0,
    command: server.server(port, POSTGRES_SETTINGS),
    env,
    log: logOf("postgres", folder),
    probe: { kind: "command", command: server.probe(port) },
    // Ends sessions, keeps what was committed, and ends.
    stopSignal: "SIGINT",
    stopTimeoutMs: POSTGRES_STOP_MS,
  };
}

/** The admin token is an API key, which is good with every backend, beside those of `engine.toml`. */
export function adminAccess(
  { securityApiKeys }: Pick<OptionValues<typeof AUTH_OPTIONS>, "securityApiKeys">,
  adminToken: string,
): Record<string, string> {
  const others = securityApiKeys.map(({ name, role, token }) =>
    name === undefined ? token : `${name}:${role}:${token}`,
  );
  return { ENGINE_SECURITY_API_KEYS: [`admin:admin:${adminToken}`, ...others].join(",") };
}

export function edgeUrls({ ports }: Pick<Layout, "ports">): string[] {
  return urlsOf("edge", MEMBERS, ports);
}

/** Addresses of the servers of a role. */
export function urlsOf(role: Role, members: readonly Member[], ports: Layout["ports"]): string[] {
  return members.filter((member) => member.role === role).map(({ name }) => urlOf(name, ports));
}

function urlOf(name: string, ports: Layout["ports"]): string {
  return `http://127.0.0.1:${portOf(name, ports)}`;
}

function portOf(name: string, ports: Layout["ports"]): number {
  const port = ports[name];
  if (port === undefined) throw new Error(`${name} has no port`);
  return port;
}

function logOf(name: string, folder: string): string {
  return join(folder, "logs", `${name}.log`);
}

function postgresUrl({ ports }: Layout, { postgresPassword }: Secrets): string {
  return `postgres://${POSTGRES_USER}:${postgresPassword}@127.0.0.1:${portOf("postgres", ports)}/postgres`;
}

/** Without settings of the engine that the shell may carry. */
export function inherited(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const names = ["PATH", "HOME", "TMPDIR", "TZ", "LANG"];
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

/** Another version, another build in its place, or other settings in the file. */
function programStamp(settings: string): string {
  const { mtimeMs, size } = statSync(distribution().program);
  return JSON.stringify([VERSION, mtimeMs, size, settings]);
}

function hashedSpec(program: Description, stamp: string): ProgramSpec {
  const hash = createHash("sha256").update(JSON.stringify(program)).update(stamp).digest("hex").slice(0, 32);
  return { ...program, hash };
}
