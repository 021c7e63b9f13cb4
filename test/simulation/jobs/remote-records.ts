import type { RecordStore, Statement } from "../../../src/db/records.ts";
import type { Machine } from "../machine.ts";
import { unavailable, type Network } from "../network.ts";
import type { Scheduler } from "../scheduler.ts";

export type RemoteRecordsPorts = {
  records: RecordStore;
  network: Network;
  scheduler: Scheduler;
  /** Jobs that a statement may find locked by others; empty where the database has its own locks. */
  lockable: () => readonly string[];
  /** Called when something may have changed. */
  look: () => Promise<void>;
};

/**
 * The records as one node has them. Each statement travels, alone: others are done between any two of a verb. Its answer
 * may be lost, and then the driver sends a write again, while the first may still be under way.
 */
export function remoteRecords(ports: RemoteRecordsPorts, machine: Machine): RecordStore {
  const { records, network, scheduler, look } = ports;
  const call = <T>(label: string, isWrite: boolean, effect: () => Promise<T>): Promise<T> =>
    network.call(machine, {
      label,
      isWrite,
      repeats: true,
      ...(scheduler.chance(0.5) ? { refusal: unavailable } : {}),
      async effect() {
        try {
          return await effect();
        } finally {
          if (isWrite) await look();
        }
      },
    });
  return {
    rows: (sql, values) => call("read", false, () => records.rows(sql, values)),
    write: (statement) =>
      call(verbOf(statement), true, () => records.write({ ...statement, sql: passLocked(ports, statement.sql) })),
    transact: (statements) => call("transact", true, () => records.transact(statements)),
  };
}

/** In a database with many writers a claim or a sweep passes over rows that another statement is changing: some here. */
function passLocked({ scheduler, lockable }: RemoteRecordsPorts, sql: string): string {
  if (!sql.includes("SKIP LOCKED") || !scheduler.chance(0.3)) return sql;
  const locked = lockable().filter(() => scheduler.chance(0.3));
  if (locked.length === 0) return sql;
  const ids = locked.map((id) => `'${id}'`).join(", ");
  return sql.replace(/status = '(queued|leased)' AND /, (status) => `${status}id NOT IN (${ids}) AND `);
}

/** For the trace. */
function verbOf({ sql }: Pick<Statement, "sql">): string {
  if (sql.startsWith("INSERT")) return "insert";
  if (sql.startsWith("DELETE")) return "forget";
  return /^WITH (\w+)/.exec(sql)?.[1] ?? /SET (\w+)/.exec(sql)?.[1] ?? "write";
}
