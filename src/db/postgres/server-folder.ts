import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf, StartupError } from "../../core/errors.ts";

/** Words before a command: PostgreSQL refuses to run as root, and Debian's package makes a user for it. */
type RunAs = { words: readonly string[]; uid: number; gid: number } | undefined;

function runAs(): RunAs {
  if (process.getuid?.() !== 0) return undefined;
  try {
    const [uid, gid] = [idOfPostgres("-u"), idOfPostgres("-g")];
    return { words: ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, "--clear-groups"], uid, gid };
  } catch {
    throw new StartupError("PostgreSQL does not run as root, and there is no user postgres: run as a user of your own");
  }
}

function idOfPostgres(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
}

export type NewServer = {
  /** The superuser. */
  user: string;
  /** Undefined: whoever reaches the server may be anybody. */
  password?: string;
  /** Whether the data is on disk when it is made; unless given, it is. */
  isSynced?: boolean;
  /** As root: folders above, through which the server's user has to come, and in which it sees nothing. */
  passages?: readonly string[];
};

/** A folder with the data of one server, and the commands that work on it: the one place that knows how they are run. */
export class PostgresFolder {
  readonly path: string;
  readonly #programs: string;
  readonly #as: RunAs;

  /** @throws StartupError where nobody is there that PostgreSQL would run as */
  constructor(programs: string, path: string) {
    this.path = path;
    this.#programs = programs;
    this.#as = runAs();
  }

  get data(): string {
    return join(this.path, "data");
  }

  /** Gives files to the user that the server runs as. */
  handOver(files: readonly string[]): void {
    if (this.#as === undefined) return;
    for (const path of files) chownSync(path, this.#as.uid, this.#as.gid);
  }

  /** Makes the data of a new server, in UTF-8 whatever the locale; all of it or nothing, and not where there is some. @throws StartupError */
  initialize({ user, password, isSynced = true, passages = [] }: NewServer): void {
    if (existsSync(this.data)) return;
    const [made, secret] = [join(this.path, "data.new"), join(this.path, "password")];
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    rmSync(made, { recursive: true, force: true });
    this.handOver([this.path]);
    this.#pass(passages);
    try {
      if (password !== undefined) {
        writeFileSync(secret, password, { mode: 0o600 });
        this.handOver([secret]);
      }
      const access = password === undefined ? ["-A", "trust"] : ["-A", "scram-sha-256", "--pwfile", secret];
      const more = isSynced ? [] : ["--no-sync"];
      this.run("initdb", "-D", made, "-U", user, ...access, "-E", "UTF8", "--locale=C", ...more);
      renameSync(made, this.data);
    } catch (error) {
      throw new StartupError(`initdb failed in ${this.path}: ${messageOf(error).slice(0, 1_000)}`, 1, error);
    } finally {
      rmSync(secret, { force: true });
    }
  }

  #pass(passages: readonly string[]): void {
    if (this.#as === undefined) return;
    for (const above of passages) chmodSync(above, 0o711);
    const [file = "", ...words] = this.#as.words;
    try {
      execFileSync(file, [...words, "test", "-x", this.path], { cwd: "/", stdio: "ignore" });
    } catch (error) {
      throw new StartupError(
        `the user postgres cannot reach ${this.path}: run as a user of your own, or choose a folder that others may pass through (mode 0711)`,
        1,
        error,
      );
    }
  }

  /** The command of a server on that port of the loopback interface. `setpriv` becomes it: the process stays the same. */
  server(port: number, settings: Readonly<Record<string, string>>): [string, ...string[]] {
    // No socket: its path would be too long in a deep folder.
    const all = { listen_addresses: "127.0.0.1", ...settings, unix_socket_directories: "" };
    const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    return this.#command("postgres", ["-D", this.data, "-p", String(port), ...flags]);
  }

  /** A command that ends with 0 when the server on that port takes sessions. */
  probe(port: number): [string, ...string[]] {
    return [join(this.#programs, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", String(port)];
  }

  /** Runs a program to its end. @throws Error when it fails, with what it said */
  run(program: string, ...flags: string[]): void {
    const [command, ...args] = this.#command(program, flags);
    execFileSync(command, args, { cwd: this.path, stdio: ["ignore", "ignore", "pipe"] });
  }

  #command(program: string, flags: readonly string[]): [string, ...string[]] {
    const [command = "", ...args] = [...(this.#as?.words ?? []), join(this.#programs, program), ...flags];
    return [command, ...args];
  }
}
