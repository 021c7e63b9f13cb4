import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "../../src/core/clock.ts";

/** A PostgreSQL of this machine's packages, on a folder of its own, as it comes: fsync on, every commit synced. */
export type PostgresServer = { port: number; pid: number; stop(): Promise<void> };

const BIN = "/usr/lib/postgresql/15/bin";
const START_WITHIN_MS = 30_000;
const POLL_MS = 50;

/** Undefined, with a line, where PostgreSQL is not installed. */
export async function startPostgres(): Promise<PostgresServer | undefined> {
  if (!existsSync(join(BIN, "postgres"))) {
    console.log(`postgres: skipped, ${BIN} does not exist (Debian: postgresql-15)`);
    return undefined;
  }
  const folder = await mkdtemp(join(tmpdir(), "engine-bench-pg-"));
  const prefix = await givenToPostgres(folder);
  const run = (program: string, ...args: string[]) => {
    const [command = "", ...rest] = [...prefix, join(BIN, program), ...args];
    return { command, args: rest };
  };
  const encoding = ["-E", "UTF8", "--locale=C"];
  const initdb = run("initdb", "-D", join(folder, "data"), "-U", "bench", "-A", "trust", ...encoding, "--no-sync");
  execFileSync(initdb.command, initdb.args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const port = await freePort();
  const settings = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=on", "-c", "log_min_messages=fatal"];
  const server = run("postgres", "-D", join(folder, "data"), "-k", folder, "-p", String(port), ...settings);
  const child = spawn(server.command, server.args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(child, "exit");
  await ready(run("pg_isready", "-h", "127.0.0.1", "-p", String(port), "-U", "bench", "-d", "postgres", "-q"));
  return {
    port,
    // `setpriv` becomes the server: the process stays the same.
    pid: Number(child.pid),
    stop: async () => {
      // Fast shutdown.
      child.kill("SIGINT");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** PostgreSQL refuses to run as root: the folder goes to the user `postgres`, and so does what runs there. */
async function givenToPostgres(folder: string): Promise<string[]> {
  if (process.getuid?.() !== 0) return [];
  const [user, group] = [idOf("-u"), idOf("-g")];
  await chown(folder, user, group);
  await chmod(folder, 0o700);
  return ["setpriv", `--reuid=${user}`, `--regid=${group}`, "--clear-groups"];
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

async function ready({ command, args }: { command: string; args: string[] }): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + START_WITHIN_MS;
  while (systemClock.monotonicMs() < deadlineMs) {
    const [code] = (await once(spawn(command, args, { stdio: "ignore", cwd: "/" }), "exit")) as [number | null];
    if (code === 0) return;
    await sleep(systemClock, POLL_MS);
  }
  throw new Error("postgres did not start");
}
