import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, globSync, mkdtempSync, readFileSync, rmSync, openSync, closeSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { sleep, systemClock } from "../../core/clock.ts";
import { systemRandom } from "../../core/random.ts";
import type { Catalog } from "../catalog.ts";
import { Connection, type Row } from "./connection.ts";
import { NotPrimary } from "./errors.ts";
import { openPostgresCatalog, type PostgresCatalogOptions } from "./postgres.ts";
import { parsePostgresUrl } from "./url.ts";

/** A PostgreSQL server of a test file, on a folder and a port of its own. */
export type TestServer = {
  port: number;
  /** The address of a database of that name, which need not exist. */
  url(database: string): string;
  /** Makes a database, empty or a copy of one that nobody is connected to, and gives its address. */
  createDatabase(template?: string): Promise<string>;
  /** Runs one statement in a database as the superuser. */
  query(url: string, text: string): Promise<Row[]>;
  /** Kills the server as a crash would, and starts it again on the same folder and port. */
  kill(): Promise<void>;
  /** Stops the server as an operator does: sessions are ended. */
  shutDown(): Promise<void>;
  start(): Promise<void>;
  /** Starts a standby that follows this server. */
  startStandby(): Promise<TestServer>;
  stop(): Promise<void>;
};

export type ServerSettings = Readonly<Record<string, string>>;

/** Where tests are about speed and not about what a power cut leaves. */
export const NO_FSYNC: ServerSettings = { fsync: "off", full_page_writes: "off" };

const START_WITHIN_MS = 30_000;
const POLL_MS = 20;
const USER = "tester";

/** The folder of the newest server programs of this machine; undefined where there are none. */
export function postgresPrograms(): string | undefined {
  const found = globSync("/usr/lib/postgresql/*/bin/initdb").toSorted((a, b) => versionIn(a) - versionIn(b));
  const newest = found.at(-1);
  if (newest !== undefined) return dirname(newest);
  if (process.env["CI"] === "true") throw new Error("PostgreSQL is not installed (Debian: postgresql)");
  return undefined;
}

function versionIn(path: string): number {
  return Number(/postgresql\/(\d+)/.exec(path)?.[1] ?? 0);
}

/** Starts a server, which owns its folder and the files. Throws with its log when it does not come up. */
export async function startTestServer(
  programs: string,
  settings: ServerSettings,
  files: readonly string[] = [],
): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "engine-pg-"));
  const server = new Server(programs, folder, await freePort(), settings);
  return await started(server, () => server.initialize(files));
}

async function started(server: Server, prepare: () => void): Promise<TestServer> {
  try {
    prepare();
    await server.start();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

class Server implements TestServer {
  readonly port: number;
  readonly #programs: string;
  readonly #folder: string;
  readonly #settings: ServerSettings;
  /** Words before a command: PostgreSQL refuses to run as root. */
  #prefix: string[] = [];
  #child: ChildProcess | undefined;
  #databases = 0;

  constructor(programs: string, folder: string, port: number, settings: ServerSettings) {
    this.#programs = programs;
    this.#folder = folder;
    this.port = port;
    this.#settings = settings;
  }

  initialize(files: readonly string[]): void {
    this.#own(files);
    this.#run("initdb", "-D", this.#data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync");
  }

  async startStandby(): Promise<TestServer> {
    const folder = mkdtempSync(join(tmpdir(), "engine-pg-"));
    const standby = new Server(this.#programs, folder, await freePort(), this.#settings);
    return await started(standby, () => standby.#copy(this.port));
  }

  #copy(port: number): void {
    this.#own([]);
    this.#run("pg_basebackup", "-D", this.#data, "-R", "-c", "fast", "-h", "127.0.0.1", "-p", String(port), "-U", USER);
  }

  #own(files: readonly string[]): void {
    if (process.getuid?.() !== 0) return;
    const [user, group] = [idOf("-u"), idOf("-g")];
    for (const path of [this.#folder, ...files]) chownSync(path, user, group);
    this.#prefix = ["setpriv", `--reuid=${user}`, `--regid=${group}`, "--clear-groups"];
  }

  #run(program: string, ...flags: string[]): void {
    const [command = "", ...args] = [...this.#prefix, join(this.#programs, program), ...flags];
    execFileSync(command, args, { cwd: this.#folder, stdio: ["ignore", "ignore", "inherit"] });
  }

  async start(): Promise<void> {
    const settings = { listen_addresses: "127.0.0.1", max_connections: "200", ...this.#settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const program = join(this.#programs, "postgres");
    const where = ["-D", this.#data, "-k", this.#folder, "-p", String(this.port)];
    const [command = "", ...args] = [...this.#prefix, program, ...where, ...flags];
    const log = openSync(this.#log, "a");
    const child = spawn(command, args, { cwd: this.#folder, stdio: ["ignore", log, log] });
    closeSync(log);
    this.#child = child;
    const deadlineMs = systemClock.monotonicMs() + START_WITHIN_MS;
    while (!(await this.#isReady())) {
      if (child.exitCode !== null || systemClock.monotonicMs() > deadlineMs) {
        throw new Error(`PostgreSQL did not start:\n${readFileSync(this.#log, "utf8")}`);
      }
      await sleep(systemClock, POLL_MS);
    }
  }

  url(database: string): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/${database}`;
  }

  async createDatabase(template = this.url("template0")): Promise<string> {
    const name = `test_${++this.#databases}`;
    const from = new URL(template).pathname.slice(1);
    await this.query(this.url("postgres"), `CREATE DATABASE ${name} TEMPLATE ${from}`);
    return this.url(name);
  }

  async query(url: string, text: string): Promise<Row[]> {
    const session = { clock: systemClock, connectTimeoutMs: START_WITHIN_MS, lockTimeoutMs: START_WITHIN_MS };
    const connection = await Connection.open(parsePostgresUrl(url), session);
    try {
      return await connection.query(text);
    } finally {
      await connection.close();
    }
  }

  async kill(): Promise<void> {
    await this.#end("SIGQUIT");
  }

  async shutDown(): Promise<void> {
    await this.#end("SIGINT");
  }

  async stop(): Promise<void> {
    await this.#end("SIGINT");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  async #isReady(): Promise<boolean> {
    try {
      await this.query(this.url("postgres"), "SELECT 1");
      return true;
    } catch (error) {
      return error instanceof NotPrimary;
    }
  }

  get #data(): string {
    return join(this.#folder, "data");
  }

  get #log(): string {
    return join(this.#folder, "log");
  }
}

function idOf(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("there is no port");
  return address.port;
}

/** Opens a catalog as a server does. */
export function openTestCatalog(url: string, options: Partial<PostgresCatalogOptions> = {}): Promise<Catalog> {
  return openPostgresCatalog({
    url,
    clock: systemClock,
    random: systemRandom,
    mode: "server",
    maxConnections: 8,
    acquireTimeoutMs: 10_000,
    ...options,
  });
}
