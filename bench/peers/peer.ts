import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Answers } from "../support/answers.ts";
import type { DataFile } from "../support/data-file.ts";

/** Something that a file can be loaded into, durably. */
export type Peer = {
  name: string;
  pid: number;
  /** Loads the file into a fresh table of that name. */
  load(file: DataFile, table: string): Promise<PeerRun>;
  stop(): Promise<void>;
};

export type PeerRun = {
  wallSeconds: number;
  /** User and system, of all threads of the peer's process, until the load was done. */
  cpuSeconds: number;
  /** The same with what it did in the `settleMs` after that. */
  settledCpuSeconds: number;
  diskBytes: number;
  answers: Answers;
  /** Until all rows were seen, where they are not when they are acknowledged. */
  visibleMs?: number;
};

/** What the child of a peer in process is asked, and answers; or says why it cannot. */
export type PeerJob = { file: DataFile; table: string; settleMs: number };
export type PeerReply = { ok: true; run: PeerRun } | { ok: false; reason: string };

/** A library as the process of its peer needs it. */
export type Library = {
  /** What must be there before the time starts (a declared table). */
  prepare(job: PeerJob): Promise<void>;
  /** The load; what it stored is durable when the promise resolves. */
  load(job: PeerJob): Promise<void>;
  answers(job: PeerJob): Promise<Answers>;
  close(): Promise<void>;
};

const CHILD = fileURLToPath(new URL("./peer-child.ts", import.meta.url));

/** DuckDB into a Parquet file, the same without declared columns, DuckDB into a table of its own, ClickHouse. */
export type PeerName = "duckdb" | "duckdb-auto" | "duckdb-table" | "chdb";

/** A peer that is a library, in a process of its own: its CPU is what the kernel counts for that process. */
export function startInProcessPeer(name: PeerName, folder: string, settleMs: number): Peer {
  const child = fork(CHILD, [name, folder], { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = once(child, "exit");
  return {
    name,
    pid: child.pid ?? Number.NaN,
    load: (file, table) =>
      new Promise((resolve, reject) => {
        const fail = (code: number | null) => reject(new Error(`${name} ended with exit code ${code}`));
        child.once("exit", fail);
        child.once("message", (message) => {
          child.off("exit", fail);
          const reply = message as PeerReply;
          if (reply.ok) resolve(reply.run);
          else reject(new Error(`${name}: ${reply.reason}`));
        });
        child.send({ file, table, settleMs } satisfies PeerJob);
      }),
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
