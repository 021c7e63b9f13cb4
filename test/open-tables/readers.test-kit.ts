/** Clients of the Iceberg catalog in a process of their own, which is asked one thing after the other. */
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { cleanEnv } from "../support/engine.ts";

const INSTALL = fileURLToPath(new URL("../../.ci/install-iceberg-readers", import.meta.url));
const CLIENT = fileURLToPath(new URL("readers.py", import.meta.url));

/** The Python that has the clients; without one the tests that need it are skipped, which fails in CI. */
export function findReaders(): { python: string; isThere: boolean } {
  const { status, stdout, stderr } = spawnSync(INSTALL, { encoding: "utf8", timeout: 600_000 });
  if (status !== 0) {
    if (process.env["CI"] === "true") throw new Error(`PyIceberg is not installed: ${stderr}`);
    process.stderr.write(
      "skipped for lack of PyIceberg: apt-get install python3-venv, run .ci/install-iceberg-readers\n",
    );
  }
  return { python: stdout.trim(), isThere: status === 0 };
}

export type Ask = {
  client: "pyiceberg" | "duckdb";
  table?: string;
  sql?: string;
  snapshot?: number;
  where?: string;
  list?: true;
  files?: true;
  snapshots?: true;
  write?: true;
  /** For DuckDB: the table of that metadata file, not that of the catalog. */
  metadata?: string;
};

export type Said = { rows?: unknown[][]; error?: string; message?: string };

/** A program that answers one thing after the other. */
export type Client<A> = { ask(ask: A): Promise<Said>; close(): void };

export type Readers = Client<Ask>;

/** `settings` are what `readers.py` says of them. */
export function startReaders(python: string, url: string, token: string, settings: object = {}): Readers {
  return startClient(python, [CLIENT, url, token, JSON.stringify(settings)]);
}

/** A script that takes asks as lines of JSON, and answers them so. */
export function startClient<A>(
  python: string,
  args: readonly string[],
  variables: Record<string, string> = {},
): Client<A> {
  const env = { ...cleanEnv(), PYTHONDONTWRITEBYTECODE: "1", AWS_EC2_METADATA_DISABLED: "true", ...variables };
  const child = endsWithThisProcess(spawn(python, args, { env, stdio: ["pipe", "pipe", "pipe"] }));
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log = (log + text).slice(-LOG_CHARS)));
  // One that has ended does not read: the answer that is missing then says so.
  child.stdin.on("error", () => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(ask) {
      child.stdin.write(`${JSON.stringify(ask)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the client ended at ${JSON.stringify(ask)}: ${log}`);
      return JSON.parse(value) as Said;
    },
    close: () => void child.kill(),
  };
}

/** What is kept of what a client says of itself. */
const LOG_CHARS = 4_000;
