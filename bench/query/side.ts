import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { startBenchServer } from "../support/server.ts";
import type { QueryData } from "./data.ts";
import { QueryClient } from "./query-client.ts";
import type { BenchQuery } from "./queries.ts";
import type { SeededHome } from "./seed.ts";

/** Something that answers the queries. It is started and stopped as often as a cold process is wanted. */
export type Side = {
  name: string;
  start(): Promise<RunningSide>;
};

export type RunningSide = {
  pid: number;
  /** Milliseconds until the whole answer was there. */
  time(query: BenchQuery): Promise<number>;
  /** The answer's rows, as objects. */
  rows(query: BenchQuery): Promise<Row[]>;
  stop(): Promise<void>;
};

export type Row = Readonly<Record<string, unknown>>;

/** The engine over HTTP; a time is from sending the request to the last byte of the answer. */
export function engineSide(name: string, home: SeededHome, env: Readonly<Record<string, string>> = {}): Side {
  return {
    name,
    start: async () => {
      const server = await startBenchServer({ home: home.home, env });
      const client = new QueryClient(server.url);
      return {
        pid: server.pid,
        time: async ({ sql }) => (await client.run(sql)).ms,
        rows: async ({ sql }) => rowsOf((await client.run(sql, { keep: true })).body),
        stop: async () => {
          client.close();
          await server.stop();
        },
      };
    },
  };
}

export type LibraryName = "raw" | "table" | "chdb";

/** What the child of a library is told first, and then. */
export type LibrarySetup = {
  library: LibraryName;
  /** Where it keeps its own tables, from one start to the next. */
  folder: string;
  ndjson: Readonly<Record<string, string>>;
  /** Parquet extents by table, for `raw`. */
  files: Readonly<Record<string, readonly string[]>>;
  threads: number;
};
export type LibraryJob = { sql: string; keep: boolean };
export type LibraryReply = { ok: true; ms: number; ndjson: string } | { ok: false; reason: string };

const CHILD = fileURLToPath(new URL("./library-child.ts", import.meta.url));

export const LIBRARY_TITLES: Readonly<Record<LibraryName, string>> = {
  raw: "DuckDB, same extents",
  table: "DuckDB, own table",
  chdb: "chDB, MergeTree",
};

/** A library in a process of its own, which takes the times: what the process tells us about them costs it nothing. */
export function librarySide(
  library: LibraryName,
  { folder, data, files, threads }: { folder: string; data: QueryData; files: SeededHome["files"]; threads: number },
): Side {
  const ndjson = Object.fromEntries(Object.keys(files).map((table) => [table, data.pathOf(table)]));
  return {
    name: LIBRARY_TITLES[library],
    start: async () => {
      const child = fork(CHILD, [], { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
      const ended = once(child, "exit");
      const ask = (message: LibrarySetup | LibraryJob) =>
        new Promise<{ ms: number; ndjson: string }>((resolve, reject) => {
          const fail = () => reject(new Error(`${library} ended`));
          child.once("exit", fail);
          child.once("message", (message) => {
            child.off("exit", fail);
            const reply = message as LibraryReply;
            if (reply.ok) resolve(reply);
            else reject(new Error(`${library}: ${reply.reason}`));
          });
          child.send(message);
        });
      await ask({ library, folder, ndjson, files, threads });
      const sqlOf = (query: BenchQuery) => (library === "chdb" ? query.chdb : query.sql);
      return {
        pid: Number(child.pid),
        time: async (query) => (await ask({ sql: sqlOf(query), keep: false })).ms,
        rows: async (query) => rowsOf((await ask({ sql: sqlOf(query), keep: true })).ndjson),
        stop: async () => {
          if (child.connected) child.disconnect();
          await ended;
        },
      };
    },
  };
}

/** Of an answer in NDJSON. */
export function rowsOf(ndjson: string): Row[] {
  return ndjson
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row);
}
