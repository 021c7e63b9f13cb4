import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, globSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

/** The folder of the newest server programs of this machine (Debian's place for them); undefined where there are none. */
export function postgresPrograms(): string | undefined {
  const found = globSync("/usr/lib/postgresql/*/bin/initdb").toSorted((a, b) => versionIn(a) - versionIn(b));
  const newest = found.at(-1);
  return newest && dirname(newest);
}

function versionIn(path: string): number {
  return Number(/postgresql\/(\d+)/.exec(path)?.[1] ?? 0);
}

/** A folder with the data of one server, and the commands that work on it: the one place that knows how they are run. */
export class PostgresFolder {
  readonly path: string;
  readonly #programs: string;
  /** Words before a command: PostgreSQL refuses to run as root. Debian's package makes a user for it. */
  readonly #prefix: readonly string[];

  /** The folder, which must exist, and `files` go to the user that the server runs as. */
  constructor(programs: string, path: string, files: readonly string[] = []) {
    this.path = path;
    this.#programs = programs;
    if (process.getuid?.() === 0) {
      const [user, group] = [idOf("-u"), idOf("-g")];
      for (const own of [path, ...files]) chownSync(own, user, group);
      this.#prefix = ["setpriv", `--reuid=${user}`, `--regid=${group}`, "--clear-groups"];
    } else this.#prefix = [];
  }

  get data(): string {
    return join(this.path, "data");
  }

  /** Makes the data of a new server, whose superuser has that name, in UTF-8 whatever the locale; not where there is one. */
  initialize(user: string): void {
    if (existsSync(this.data)) return;
    this.run("initdb", "-D", this.data, "-U", user, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync");
  }

  /** The command of a server on that port of the loopback interface. `setpriv` becomes it: the process stays the same. */
  server(port: number, settings: Readonly<Record<string, string>>): [string, ...string[]] {
    const all = { listen_addresses: "127.0.0.1", ...settings };
    const flags = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    return this.#command("postgres", ["-D", this.data, "-k", this.path, "-p", String(port), ...flags]);
  }

  /** Runs a program to its end; throws when it fails. */
  run(program: string, ...flags: string[]): void {
    const [command, ...args] = this.#command(program, flags);
    execFileSync(command, args, { cwd: this.path, stdio: ["ignore", "ignore", "inherit"] });
  }

  #command(program: string, flags: readonly string[]): [string, ...string[]] {
    const [command, ...args] = [...this.#prefix, join(this.#programs, program), ...flags];
    return [command ?? "", ...args];
  }
}

/** Makes a folder for a server inside of another one, unless there is one. */
export function makePostgresFolder(programs: string, path: string): PostgresFolder {
  mkdirSync(path, { recursive: true });
  const folder = new PostgresFolder(programs, path);
  // The server's user has to come through a folder that was made for this one alone.
  if (process.getuid?.() === 0) chmodSync(dirname(path), 0o711);
  return folder;
}

function idOf(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
}
