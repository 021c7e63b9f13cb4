import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ColumnSpec } from "../../src/format/types.ts";

/** DuckDB's own `COPY (… ORDER BY at) TO 'x.parquet'` in a process that lasts, on one thread as a merge has. */
export type CopySource =
  /** Its own table in memory, loaded from the file before the time counts. */
  { kind: "table"; path: string } | { kind: "parquet"; paths: readonly string[] } | { kind: "ndjson"; path: string };

export type CopyJob = { source: CopySource; columns: readonly ColumnSpec[]; target: string; rowGroupRows: number };
export type CopyReply = { ok: true; seconds: number; cpuSeconds: number } | { ok: false; reason: string };

export type Copier = {
  copy(job: CopyJob): Promise<{ seconds: number; cpuSeconds: number }>;
  stop(): Promise<void>;
};

const CHILD = fileURLToPath(new URL("./copy-child.ts", import.meta.url));

export function startCopier(): Copier {
  const child = fork(CHILD, [], { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = once(child, "exit");
  return {
    copy: (job) =>
      new Promise((resolve, reject) => {
        const fail = (code: number | null) => reject(new Error(`DuckDB ended with exit code ${code}`));
        child.once("exit", fail);
        child.once("message", (message) => {
          child.off("exit", fail);
          const reply = message as CopyReply;
          if (reply.ok) resolve(reply);
          else reject(new Error(`DuckDB: ${reply.reason}`));
        });
        child.send(job);
      }),
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
