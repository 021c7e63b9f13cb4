import type { FlushOutcome, Snapshot } from "../catalog.ts";
import { checkSteps, stepsThatFit, type SourcePosition, type SourceStep } from "../input-positions.ts";
import type { Connection } from "../../db/sqlite/connection.ts";

/** What a flush gets whose sources are not where it begins; undefined when they are. Throws for a step that cannot be. */
export function movedSources(connection: Connection, steps: readonly SourceStep[]): FlushOutcome | undefined {
  checkSteps(steps);
  const names = [...new Set(steps.map(({ name }) => name))];
  const positions = names.map((name) => findPosition(connection, name));
  if (stepsThatFit(steps, positions).every(Boolean)) return undefined;
  return { kind: "position_conflict", positions };
}

function findPosition(connection: Connection, name: string): SourcePosition {
  const row = connection.get("SELECT position FROM input_positions WHERE source = ?", name);
  return { name, position: row === undefined ? undefined : String(row["position"]) };
}

const ADVANCE =
  "INSERT INTO input_positions (source, position, snapshot_id, moved_at_ms) VALUES (?, ?, ?, ?) " +
  "ON CONFLICT (source) DO UPDATE " +
  "SET position = excluded.position, snapshot_id = excluded.snapshot_id, moved_at_ms = excluded.moved_at_ms";

export function advancePositions(connection: Connection, steps: readonly SourceStep[], snapshot: Snapshot): void {
  for (const { name, to } of steps) connection.run(ADVANCE, name, to, snapshot.id, snapshot.committedAtMs);
}
