import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { AUTH_OPTIONS } from "../../auth/options.ts";
import { valuesOf, type OptionValues } from "../../config/option.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { objectStoreSettings } from "../../config/object-store.ts";
import { distribution, programCommand } from "../../core/distribution.ts";
import { VERSION } from "../../core/version.ts";
import type { Workspace } from "../workspace.ts";
import { PostgresFolder } from "../../db/postgres/server-folder.ts";
import { MEMBERS, ROLES, type Layout, type Role, type Secrets } from "./layout.ts";
import { POSTGRES_SETTINGS, POSTGRES_STOP_SIGNAL, POSTGRES_USER, requirePostgresPrograms } from "./postgres.ts";
import type { ProgramSpec } from "./state.ts";

export const CONFIG_FILE = "engine.toml";
/** More than a drain takes by its own limit. */
const STOP_MARGIN_MS = 10_000;
const POSTGRES_STOP_MS = 60_000;

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
  const environment = inherited(workspace.context.deps.env);
  const postgres = postgresOf(parts);
  const common = {
    ...environment,
    ENGINE_CONFIG: workspace.path(CONFIG_FILE),
    ...adminAccess(valuesOf(AUTH_OPTIONS, config.config), secrets.adminToken),
    ENGINE_SECRET_KEY: secrets.secretKey,
    ...(postgres === undefined ? {} : { ENGINE_CATALOG_URL: postgresUrl(layout, secrets) }),
    ...(objectStoreSettings(config).kind === "local" ? { ENGINE_LOCAL_DATA: workspace.path("local/objects") } : {}),
  };
  const stopTimeoutMs = config.config.drainTimeoutSecs * 1_000 + STOP_MARGIN_MS;
  const [executable = process.execPath, ...before] = programCommand();
  const peersOf = (role: Role) => peers(layout, role);
  const roles = MEMBERS.map(({ name, role }): Omit<ProgramSpec, "hash"> => {
    const address = `127.0.0.1:${layout.ports[name]}`;
    return {
      name,
      rank: ROLES[role].rank,
      command: [executable, ...before, "server"],
      env: { ...common, ...roleEnvironment({ role, address, home: workspace.path(`local/${name}`), peersOf }) },
      log: workspace.path(`local/logs/${name}.log`),
      probe: { kind: "http", url: `http://${address}/health` },
      stopSignal: "SIGTERM",
      stopTimeoutMs,
    };
  });
  const stamp = programStamp(JSON.stringify(config.config));
  const hashed = roles.map((program): ProgramSpec => hashedSpec(program, stamp));
  if (postgres === undefined) return hashed;
  const server: Omit<ProgramSpec, "hash"> = {
    name: "postgres",
    rank: 0,
    command: postgres.server(layout.ports["postgres"] ?? 0, POSTGRES_SETTINGS),
    env: environment,
    log: workspace.path("local/logs/postgres.log"),
    probe: { kind: "command", command: postgres.probe(layout.ports["postgres"] ?? 0) },
    stopSignal: POSTGRES_STOP_SIGNAL,
    stopTimeoutMs: POSTGRES_STOP_MS,
  };
  return [hashedSpec(server, ""), ...hashed];
}

/** Other backends than `env` take no static tokens: there the admin token is an API key, beside those of `engine.toml`. */
export function adminAccess(
  { authBackend, securityApiKeys }: Pick<OptionValues<typeof AUTH_OPTIONS>, "authBackend" | "securityApiKeys">,
  adminToken: string,
): Record<string, string> {
  if (authBackend === "env") return { ENGINE_AUTH_TOKENS: `${adminToken}:admin` };
  const others = securityApiKeys.map(({ name, role, token }) =>
    name === undefined ? token : `${name}:${role}:${token}`,
  );
  return { ENGINE_SECURITY_API_KEYS: [`admin:admin:${adminToken}`, ...others].join(",") };
}

type Place = {
  role: Role;
  /** On this machine. */
  address: string;
  home: string;
  /** Addresses of all servers of a role, with commas between them. */
  peersOf: (role: Role) => string;
};

/** What tells one server of a cluster on this machine from the others. */
export function roleEnvironment({ role, address, home, peersOf }: Place): Record<string, string> {
  const peers = role === "edge" ? { ENGINE_QUERY_PEERS: peersOf("query"), ENGINE_INGEST_PEERS: peersOf("ingest") } : {};
  // Without gRPC, whose usual port only one of them could have.
  return { ...peers, ENGINE_ROLES: role, ENGINE_HTTP_ADDR: address, ENGINE_GRPC_ADDR: "off", ENGINE_HOME: home };
}

export function edgeUrls(layout: Layout): string[] {
  return peers(layout, "edge").split(",");
}

function peers({ ports }: Layout, role: Role): string {
  return MEMBERS.filter((member) => member.role === role)
    .map(({ name }) => `http://127.0.0.1:${ports[name]}`)
    .join(",");
}

function postgresUrl({ ports }: Layout, { postgresPassword }: Secrets): string {
  return `postgres://${POSTGRES_USER}:${postgresPassword}@127.0.0.1:${ports["postgres"]}/postgres`;
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

function hashedSpec(program: Omit<ProgramSpec, "hash">, stamp: string): ProgramSpec {
  const hash = createHash("sha256").update(JSON.stringify(program)).update(stamp).digest("hex").slice(0, 32);
  return { ...program, hash };
}
