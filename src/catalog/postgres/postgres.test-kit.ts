import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
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
import { PostgresFolder } from "../../db/postgres/server-folder.ts";
import { parsePostgresUrl } from "../../db/postgres/url.ts";
import { askForSharedServer } from "../../core/shared-servers.test-kit.ts";
import { endsWithThisProcess } from "../../core/child-processes.test-kit.ts";
import { freePort } from "../../core/waiting.test-kit.ts";

/** Databases of a test file, on a PostgreSQL server that others may use too. */
export type TestDatabases = {
  port: number;
  /** The address of a database of that name, which need not exist. */
  url(database: string): string;
  /** Makes a database, empty or a copy of one that nobody is connected to, and gives its address. */
  createDatabase(template?: string): Promise<string>;
  /** Runs one statement in a database as the superuser. */
  query(url: string, text: string): Promise<Row[]>;
  /** Removes what was made. */
  stop(): Promise<void>;
};

/** A PostgreSQL server of a test file, on a folder and a port of its own. */
export type TestServer = TestDatabases & {
  /** Of the server's first process. */
  readonly pid: number;
  /** Kills the server as a crash would, and starts it again on the same folder and port. */
  kill(): Promise<void>;
  /** Stops the server as an operator does: sessions are ended. */
  shutDown(): Promise<void>;
  start(): Promise<void>;
  /** Starts a standby that follows this server. */
  startStandby(): Promise<TestServer>;
  /** Makes a primary of a standby, which takes writes when it returns. */
  promote(): void;
};

export type ServerSettings = Readonly<Record<string, string>>;

/** Where tests are about speed and not about what a power cut leaves. */
export const NO_FSYNC: ServerSettings = { fsync: "off", full_page_writes: "off" };

const START_WITHIN_MS = 30_000;
const POLL_MS = 20;
/** The first version that can copy a database in another way than by its files, which takes twice the time. */
const FIRST_WITH_STRATEGIES = 150_000;
/** Databases that are dropped together. */
const AT_ONCE = 25;
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

/**
 * Databases on the one server of the test run, for files that leave it as it is. Those that kill it, or set it up in
 * another way, start their own.
 */
export async function sharedTestServer(): Promise<TestDatabases> {
  const { port } = await askForSharedServer("postgres");
  return new Databases(port, SUPERUSER, `shared_${randomBytes(6).toString("hex")}_`);
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

class Databases implements TestDatabases {
  readonly port: number;
  readonly #superuser: string;
  /** What the names of its databases begin with, to tell them from those of other files. */
  readonly #prefix: string;
  readonly #names: string[] = [];
  #made = 0;
  #strategy: string | undefined;

  constructor(port: number, superuser: string, prefix: string) {
    this.port = port;
    this.#superuser = superuser;
    this.#prefix = prefix;
  }

  url(database: string): string {
    return `postgres://${this.#superuser}@127.0.0.1:${this.port}/${database}`;
  }

  async createDatabase(template = this.url("template0")): Promise<string> {
    const name = `${this.#prefix}${++this.#made}`;
    this.#names.push(name);
    this.#strategy ??= await this.#fastestStrategy();
    const words = ["CREATE DATABASE", name, "TEMPLATE", nameIn(template), this.#strategy];
    await this.query(this.url("postgres"), words.join(" "));
    return this.url(name);
  }

  async #fastestStrategy(): Promise<string> {
    const [row] = await this.query(this.url("postgres"), "SHOW server_version_num");
    return Number(row?.["server_version_num"]) < FIRST_WITH_STRATEGIES ? "" : "STRATEGY file_copy";
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

  async stop(): Promise<void> {
    // Many at once, which wait for one checkpoint together; a session that a test has left open ends with its database.
    for (let names = this.#names.splice(0, AT_ONCE); names.length > 0; names = this.#names.splice(0, AT_ONCE)) {
      await Promise.all(
        names.map((name) => this.query(this.url("postgres"), `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
      );
    }
  }
}

function nameIn(url: string): string {
  return new URL(url).pathname.slice(1);
}

class Server extends Databases implements TestServer {
  readonly #options: ServerOptions;
  readonly #folder: PostgresFolder;
  #child: ChildProcess | undefined;

  constructor(options: ServerOptions, files: readonly string[], port: number) {
    super(port, options.superuser, "test_");
    this.#options = options;
    this.#folder = new PostgresFolder(options.programs, mkdtempSync(join(tmpdir(), "engine-pg-")));
    this.#folder.handOver([this.#folder.path, ...files]);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  initialize(): void {
    this.#folder.initialize({ user: this.#options.superuser, isSynced: false });
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
    const child = endsWithThisProcess(spawn(command, args, { cwd: this.#folder.path, stdio: ["ignore", log, log] }));
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

  async kill(): Promise<void> {
    await this.#end("SIGQUIT");
  }

  async shutDown(): Promise<void> {
    await this.#end("SIGINT");
  }

  override async stop(): Promise<void> {
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
