import type { Snapshot } from "../catalog.ts";
import { headStrictlyIncreases, snapshotTimesNeverDecrease } from "../invariants.ts";
import type { Connection, Row } from "./connection.ts";

export function readHead(connection: Connection): Snapshot {
  const row = connection.get("SELECT id, committed_at_ms FROM snapshots ORDER BY id DESC LIMIT 1");
  if (row === undefined) throw new Error("the catalog has no snapshot");
  return toSnapshot(row);
}

export function toSnapshot(row: Row): Snapshot {
  return { id: Number(row["id"]), committedAtMs: Number(row["committed_at_ms"]) };
}

/** The snapshot that would follow the head. A clock that went back repeats the head's time. */
export function nextSnapshot(connection: Connection, nowMs: number): Snapshot {
  const head = readHead(connection);
  const next = { id: head.id + 1, committedAtMs: Math.max(nowMs, head.committedAtMs) };
  headStrictlyIncreases(head, next);
  snapshotTimesNeverDecrease(head, next);
  return next;
}

export function insertSnapshot(connection: Connection, { id, committedAtMs }: Snapshot): void {
  connection.run("INSERT INTO snapshots (id, committed_at_ms) VALUES (?, ?)", id, committedAtMs);
}
