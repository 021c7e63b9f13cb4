import type { CallerKind } from "../../auth/caller.ts";
import type { Envelope } from "../../auth/sealing/envelope.ts";
import { scopeOfColumn, scopeToColumn } from "../../auth/stored-caller.ts";
import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../catalog/records.ts";
import type { StartedBy } from "./started-by.ts";

/** The table of flows without a browser. A flow is `pending` until the provider has decided; its secret goes then. */
export type DeviceRow = {
  codeHash: string;
  provider: string;
  label: string;
  startedBy: StartedBy;
  status: "pending" | DeviceEnd;
  /** Of one that failed: why. */
  detail: string | undefined;
  /** By the clock of the database. */
  isOver: boolean;
  credentialId: string | undefined;
  /** The least time between two questions to the provider. */
  intervalMs: number;
  sealed: Envelope;
};

export type DeviceEnd = "done" | "denied" | "expired" | "failed";

export type NewDeviceFlow = Pick<
  DeviceRow,
  "codeHash" | "provider" | "label" | "startedBy" | "intervalMs" | "sealed"
> & {
  ttlMs: number;
};

/** How long after its end one can be asked what became of a flow. */
const KEPT_MS = 86_400_000;
/** More than one question to the provider takes. */
const TURN_MS = 20_000;

export function insertion(flow: NewDeviceFlow): Statement {
  const { codeHash, provider, label, startedBy, intervalMs, ttlMs, sealed } = flow;
  const columns =
    "code_hash, provider, label, owner, started_by, started_kind, databases, interval_ms, next_poll_at_ms, " +
    "key_id, sealed_key, sealed_value, created_at_ms, expires_at_ms, status";
  const who = [startedBy.owner, startedBy.subject, startedBy.kind, scopeToColumn(startedBy.databases)];
  const times: RecordValue[] = [intervalMs, { nowPlusMs: intervalMs }];
  const secret = [sealed.keyId, sealed.sealedKey, sealed.sealedValue];
  return {
    sql: `INSERT INTO oauth_device_flows (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')`,
    values: [codeHash, provider, label, ...who, ...times, ...secret, NOW, { nowPlusMs: ttlMs }],
  };
}

/** Forgets those that ended long ago. */
export function cleaning(): Statement {
  return { sql: "DELETE FROM oauth_device_flows WHERE expires_at_ms < ?", values: [{ nowPlusMs: -KEPT_MS }] };
}

/** The right to ask the provider once: nobody else has it until the answer is written down, or its asker must be gone. */
export function turn({ codeHash }: DeviceRow): Statement {
  const sql =
    "UPDATE oauth_device_flows SET next_poll_at_ms = ? " +
    "WHERE code_hash = ? AND status = 'pending' AND next_poll_at_ms <= ? RETURNING code_hash";
  return { sql, values: [{ nowPlusMs: TURN_MS }, codeHash, NOW], mustReturn: 1 };
}

/** The next question comes after that time at the earliest, and so do those after it. */
export function postponement({ codeHash }: DeviceRow, intervalMs: number): Statement {
  const sql =
    "UPDATE oauth_device_flows SET interval_ms = ?, next_poll_at_ms = ? WHERE code_hash = ? AND status = 'pending'";
  return { sql, values: [intervalMs, { nowPlusMs: intervalMs }, codeHash] };
}

/** `detail` holds no secret. */
export function end(
  { codeHash }: DeviceRow,
  status: DeviceEnd,
  { credentialId, detail }: { credentialId?: string; detail?: string } = {},
): Statement {
  const sql =
    "UPDATE oauth_device_flows SET status = ?, credential_id = ?, detail = ?, sealed_key = '', sealed_value = '' " +
    "WHERE code_hash = ? AND status = 'pending' RETURNING code_hash";
  return { sql, values: [status, credentialId ?? null, detail ?? null, codeHash], mustReturn: 1 };
}

export async function findDeviceFlow(records: RecordStore, codeHash: string): Promise<DeviceRow | undefined> {
  const sql =
    "SELECT oauth_device_flows.*, CASE WHEN expires_at_ms > ? THEN 0 ELSE 1 END AS is_over " +
    "FROM oauth_device_flows WHERE code_hash = ?";
  const [row] = await records.rows(sql, [NOW, codeHash]);
  return row === undefined ? undefined : toDeviceRow(row);
}

function toDeviceRow(row: RecordRow): DeviceRow {
  const [credentialId, detail] = [row["credential_id"], row["detail"]];
  return {
    codeHash: String(row["code_hash"]),
    provider: String(row["provider"]),
    label: String(row["label"]),
    startedBy: {
      owner: String(row["owner"]),
      subject: String(row["started_by"]),
      kind: String(row["started_kind"]) as CallerKind,
      databases: scopeOfColumn(row["databases"]),
    },
    status: String(row["status"]) as DeviceRow["status"],
    detail: typeof detail === "string" ? detail : undefined,
    isOver: Number(row["is_over"]) === 1,
    credentialId: typeof credentialId === "string" ? credentialId : undefined,
    intervalMs: Number(row["interval_ms"]),
    sealed: {
      keyId: String(row["key_id"]),
      sealedKey: String(row["sealed_key"]),
      sealedValue: String(row["sealed_value"]),
    },
  };
}
