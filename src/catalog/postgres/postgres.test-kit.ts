import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, openSync, closeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "../../core/clock.ts";
import { systemRandom } from "../../core/random.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import { Connection, type Row } from "../../db/postgres/connection.ts";
import { NotPrimary } from "../../db/postgres/errors.ts";
import type { PostgresOptions } from "../../db/postgres/open.ts";
import { MIGRATIONS } from "../migrations.test-kit.ts";
import { openPostgresCatalog } from "./postgres.ts";
import { PostgresFolder } from "./postgres-folder.test-kit.ts";
import { parsePostgresUrl } from "../../db/postgres/url.ts";
import { freePort } from "../../core/waiting.test-kit.ts";

/** A PostgreSQL server of a test file, on a folder and a port of its own. */
export type TestServer = {
  port: number;
  /** Of the server's first process. */
  readonly pid: number;
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
  /** Makes a primary of a standby, which takes writes when it returns. */
  promote(): void;
  stop(): Promise<void>;
};

export type ServerSettings = Readonly<Record<string, string>>;

/** Where tests are about speed and not about what a power cut leaves. */
export const NO_FSYNC: ServerSettings = { fsync: "off", full_page_writes: "off" };

const START_WITHIN_MS = 30_000;
const POLL_MS = 20;
const SUPERUSER = "tester";

/** Starts a server, which owns its folder and the files. Throws with its log when it does not come up. */
export async function startTestServer(
  programs: string,
  settings: ServerSettings,
  files: readonly string[] = [],
  superuser = SUPERUSER,
): Promise<TestServer> {
  const server = new Server({ programs, settings, superuser }, files, await freePort());
  return await started(server, () => server.initialize());
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

type ServerOptions = { programs: string; settings: ServerSettings; superuser: string };

class Server implements TestServer {
  readonly port: number;
  readonly #options: ServerOptions;
  readonly #folder: PostgresFolder;
  #child: ChildProcess | undefined;
  #databases = 0;

  constructor(options: ServerOptions, files: readonly string[], port: number) {
    this.#options = options;
    this.#folder = new PostgresFolder(options.programs, mkdtempSync(join(tmpdir(), "engine-pg-")), files);
    this.port = port;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  initialize(): void {
    this.#folder.initialize(this.#options.superuser);
  }

  async startStandby(): Promise<TestServer> {
    const standby = new Server(this.#options, [], await freePort());
    return await started(standby, () => standby.#copy(this.port));
  }

  promote(): void {
    this.#folder.run("pg_ctl", "promote", "-D", this.#folder.data);
  }

  #copy(port: number): void {
    const from = ["-h", "127.0.0.1", "-p", String(port), "-U", this.#options.superuser];
    this.#folder.run("pg_basebackup", "-D", this.#folder.data, "-R", "-c", "fast", ...from);
  }

  async start(): Promise<void> {
    const [command, ...args] = this.#folder.server(this.port, { max_connections: "200", ...this.#options.settings });
    const log = openSync(this.#log, "a");
    const child = spawn(command, args, { cwd: this.#folder.path, stdio: ["ignore", log, log] });
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
    return `postgres://${this.#options.superuser}@127.0.0.1:${this.port}/${database}`;
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
    rmSync(this.#folder.path, { recursive: true, force: true });
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

  get #log(): string {
    return join(this.#folder.path, "log");
  }
}

/** Opens a catalog as a server does. */
export function openTestCatalog(url: string, options: Partial<PostgresOptions> = {}): Promise<CatalogDatabase> {
  return openPostgresCatalog({
    url,
    clock: systemClock,
    random: systemRandom,
    mode: "server",
    maxConnections: 8,
    acquireTimeoutMs: 10_000,
    migrations: MIGRATIONS,
    ...options,
  });
}
