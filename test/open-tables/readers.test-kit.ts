/** Clients of the Iceberg catalog in a process of their own, which is asked one thing after the other. */
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
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
};

export type Said = { rows?: unknown[][]; error?: string; message?: string };

export type Readers = { ask(ask: Ask): Promise<Said>; close(): void };

/** `settings` are what `readers.py` says of them. */
export function startReaders(python: string, url: string, token: string, settings: object = {}): Readers {
  const env = { ...cleanEnv(), PYTHONDONTWRITEBYTECODE: "1", AWS_EC2_METADATA_DISABLED: "true" };
  const child = spawn(python, [CLIENT, url, token, JSON.stringify(settings)], {
    env,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(ask) {
      child.stdin.write(`${JSON.stringify(ask)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`the clients ended: ${JSON.stringify(ask)}`);
      return JSON.parse(value) as Said;
    },
    close: () => void child.kill(),
  };
}
