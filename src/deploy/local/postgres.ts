import { execFileSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  existsSync,
  globSync,
  mkdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { messageOf } from "../../core/errors.ts";
import { CliError } from "../../client/failure.ts";
import { OLDEST_POSTGRES } from "../../db/postgres/server-check.ts";

/** A PostgreSQL server of this machine's programs, with its data in a folder of the deployment. */

export const POSTGRES_USER = "engine";

export type PostgresPrograms = { folder: string; major: number };

/** The newest server programs of PATH and of Debian's place for them; undefined where there are none. */
export function findPostgresPrograms(path: string): PostgresPrograms | undefined {
  const folders = [...path.split(delimiter), ...globSync("/usr/lib/postgresql/*/bin")];
  const complete = folders.filter((folder) =>
    ["initdb", "postgres", "pg_isready"].every((name) => mayRun(folder, name)),
  );
  const known = [...new Set(complete)].map((folder) => ({ folder, major: majorOf(folder) }));
  return known.toSorted((a, b) => a.major - b.major).at(-1);
}

function mayRun(folder: string, name: string): boolean {
  if (folder === "") return false;
  try {
    accessSync(join(folder, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function majorOf(folder: string): number {
  try {
    const text = execFileSync(join(folder, "postgres"), ["--version"], { encoding: "utf8", timeout: 10_000 });
    return Number(/\) (\d+)/.exec(text)?.[1] ?? 0);
  } catch {
    // Something else by that name.
    return 0;
  }
}

/** @throws CliError that says what to install */
export function requirePostgresPrograms(path: string): PostgresPrograms {
  const found = findPostgresPrograms(path);
  const otherwise = "or name a server by ENGINE_CATALOG_URL when the deployment is made (`engine deploy init`)";
  if (found === undefined) {
    throw new CliError(
      `no PostgreSQL was found in PATH or /usr/lib/postgresql: install it (Debian: apt-get install postgresql), ${otherwise}`,
    );
  }
  if (found.major >= OLDEST_POSTGRES) return found;
  throw new CliError(
    `PostgreSQL in ${found.folder} is of version ${found.major}: install version ${OLDEST_POSTGRES} or newer, ${otherwise}`,
  );
}

/** Words before a command: PostgreSQL refuses to run as root, and Debian's package makes a user for it. */
type RunAs = { words: readonly string[]; uid: number; gid: number } | undefined;

function runAs(): RunAs {
  if (process.getuid?.() !== 0) return undefined;
  try {
    const [uid, gid] = [idOfPostgres("-u"), idOfPostgres("-g")];
    return { words: ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"], uid, gid };
  } catch {
    throw new CliError("PostgreSQL does not run as root, and there is no user postgres: deploy as a user of your own");
  }
}

function idOfPostgres(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
}

export class PostgresServer {
  readonly folder: string;
  readonly #programs: string;
  readonly #as: RunAs;

  /** @param folder `local/postgres` of a workspace */
  constructor(programs: string, folder: string) {
    this.folder = folder;
    this.#programs = programs;
    this.#as = runAs();
  }

  get #data(): string {
    return join(this.folder, "data");
  }

  /** Makes the data of a new server, in UTF-8 whatever the locale, unless there is one. @throws CliError */
  initialize(password: string): void {
    if (existsSync(this.#data)) return;
    const [made, secret] = [join(this.folder, "data.new"), join(this.folder, "password")];
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    rmSync(made, { recursive: true, force: true });
    writeFileSync(secret, password, { mode: 0o600 });
    if (this.#as !== undefined) this.#handOver([this.folder, secret], this.#as);
    const auth = ["-A", "scram-sha-256", "--pwfile", secret];
    try {
      const [file, ...args] = this.#command("initdb", [
        "-D",
        made,
        "-U",
        POSTGRES_USER,
        ...auth,
        "-E",
        "UTF8",
        "--locale=C",
      ]);
      execFileSync(file, args, { cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
      renameSync(made, this.#data);
    } catch (error) {
      throw new CliError(`initdb failed in ${this.folder}: ${messageOf(error).slice(0, 1_000)}`, 1, { cause: error });
    } finally {
      rmSync(secret, { force: true });
    }
  }

  /** As root: the files go to the server's user, who may pass through the folders above them, and see nothing there. */
  #handOver(files: readonly string[], { words: [file = "", ...words], uid, gid }: NonNullable<RunAs>): void {
    for (const path of files) chownSync(path, uid, gid);
    const local = dirname(this.folder);
    for (const above of [local, dirname(local), dirname(dirname(local))]) chmodSync(above, 0o711);
    try {
      execFileSync(file, [...words, "test", "-x", this.folder], { cwd: "/", stdio: "ignore" });
    } catch (error) {
      throw new CliError(
        `the user postgres cannot reach ${this.folder}: deploy as a user of your own, or set ENGINE_HOME to a folder that others may pass through (mode 0711)`,
        1,
        { cause: error },
      );
    }
  }

  /** `setpriv` becomes the server: the process stays the same. */
  command(port: number): [string, ...string[]] {
    const settings = ["listen_addresses=127.0.0.1", "max_connections=300"].flatMap((one) => ["-c", one]);
    // No socket: its path would be too long in a deep folder.
    const sockets = ["-c", "unix_socket_directories="];
    return this.#command("postgres", ["-D", this.#data, "-p", String(port), ...settings, ...sockets]);
  }

  probe(port: number): [string, ...string[]] {
    return [join(this.#programs, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", String(port)];
  }

  #command(program: string, flags: readonly string[]): [string, ...string[]] {
    const [command = "", ...args] = [...(this.#as?.words ?? []), join(this.#programs, program), ...flags];
    return [command, ...args];
  }
}
