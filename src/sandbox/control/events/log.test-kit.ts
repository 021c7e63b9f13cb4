import type { RecordStore } from "../../../catalog/records.ts";
import { changeStatements } from "../scheduler/change.ts";
import { SANDBOX_COLUMNS, toSandbox } from "../scheduler/sandbox.ts";
import { specOf } from "../../contract/spec.test-kit.ts";
import type { NewSandboxEvent } from "../../contract/event.ts";

const SPEC = specOf({ agentProvider: "codex" });

type RowOptions = {
  tenant?: string;
  state?: string;
  nodeId?: string;
  ports?: readonly { port: number }[];
  workingDirectory?: string;
};

/** A sandbox that only its record knows. */
export async function addSandboxRow(
  records: RecordStore,
  id: string,
  { tenant = "t", state = "running", nodeId = "n", ports = [], workingDirectory }: RowOptions = {},
): Promise<void> {
  const columns: Record<string, string | number> = {
    id,
    tenant,
    agent_provider: "codex",
    persistence: "ephemeral",
    spec: JSON.stringify({ ...SPEC, ports, workingDirectory }),
    labels: "{}",
    subject: tenant,
    caller_kind: "static",
    role: "write",
    state,
    wanted: "running",
    version: 1,
    node_id: nodeId,
    cpu_millis: 1_000,
    memory_mb: 64,
    disk_mb: 64,
    recorded_fence: 0,
    recorded_batch: 0,
    first_seq: 1,
    last_seq: 0,
    created_at_ms: 1,
    updated_at_ms: 1,
    state_since_ms: 1,
  };
  const names = Object.keys(columns);
  await records.transact([
    {
      sql: `INSERT INTO sandboxes (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
      values: Object.values(columns),
    },
  ]);
}

/** Writes events as the control plane does. */
export async function appendEvents(
  records: RecordStore,
  id: string,
  events: readonly NewSandboxEvent[],
  eventsQuotaBytes = 64 * 1024 * 1024,
): Promise<void> {
  const [row] = await records.rows(`SELECT ${SANDBOX_COLUMNS} FROM sandboxes WHERE id = ?`, [id]);
  if (row === undefined) throw new Error(`there is no sandbox ${id}`);
  const stored = events.map(({ atMs, ...event }) => ({ ...event, at: atMs }));
  const outcome = await records.transact(changeStatements(toSandbox(row), { events: stored }, { eventsQuotaBytes }));
  if (!outcome.done) throw new Error("the events were not written");
}

export function line(text: string, atMs = 1_700_000_000_000): NewSandboxEvent {
  return { type: "log_line", atMs, data: { line: text, stream: "stdout" } };
}
