import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../catalog/records.ts";
import type { CallerKind } from "../../auth/caller.ts";
import { scopeOfColumn, scopeToColumn } from "../../auth/stored-caller.ts";
import type { Envelope } from "../../auth/sealing/envelope.ts";
import type { StartedBy } from "./started-by.ts";

/**
 * The table of flows. A flow is `pending` until an answer of the provider claims it, which only one does; then it is
 * `done` or `failed`. The secrets of a flow go when it is claimed: nothing may use them twice.
 */
export type FlowRow = {
  stateHash: string;
  browserHash: string;
  provider: string;
  /** What will read with the grant; undefined where that is no data source. */
  sourceType: string | undefined;
  label: string;
  startedBy: StartedBy;
  status: "pending" | "claimed" | "done" | "failed";
  /** By the clock of the database. Of a claimed one: when whoever claimed it must be gone. */
  isOver: boolean;
  credentialId: string | undefined;
  sealed: Envelope;
};

export type NewFlow = Omit<FlowRow, "status" | "isOver" | "credentialId">;

/** How long the owner of the account may take to decide. */
export const FLOW_TTL_MS = 600_000;
/** More than an exchange takes. */
const CLAIM_TTL_MS = 120_000;
/** How long after its end one can be asked what became of a flow. */
const KEPT_MS = 86_400_000;

export function insertion(flow: NewFlow): Statement {
  const { stateHash, browserHash, provider, sourceType, label, startedBy, sealed } = flow;
  const { owner, subject, kind, databases } = startedBy;
  const columns =
    "state_hash, browser_hash, provider, source_type, label, owner, started_by, started_kind, databases, " +
    "key_id, sealed_key, sealed_value, created_at_ms, expires_at_ms, status";
  const who = [owner, subject, kind, scopeToColumn(databases)];
  const { keyId, sealedKey, sealedValue } = sealed;
  const about = [stateHash, browserHash, provider, sourceType ?? "", label];
  const values: RecordValue[] = [...about, ...who, keyId, sealedKey, sealedValue, NOW, { nowPlusMs: FLOW_TTL_MS }];
  return {
    sql: `INSERT INTO oauth_flows (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')`,
    values,
  };
}

/** Forgets those that ended long ago. */
export function cleaning(): Statement {
  return { sql: "DELETE FROM oauth_flows WHERE expires_at_ms < ?", values: [{ nowPlusMs: -KEPT_MS }] };
}

/** Of all who claim a flow one succeeds, and none when its time is over. */
export function claim({ stateHash }: FlowRow): Statement {
  const sql =
    "UPDATE oauth_flows SET status = 'claimed', expires_at_ms = ?, sealed_key = '', sealed_value = '' " +
    "WHERE state_hash = ? AND status = 'pending' AND expires_at_ms > ? RETURNING state_hash";
  return { sql, values: [{ nowPlusMs: CLAIM_TTL_MS }, stateHash, NOW], mustReturn: 1 };
}

export function completion({ stateHash }: FlowRow, credentialId: string): Statement {
  const sql =
    "UPDATE oauth_flows SET status = 'done', credential_id = ? " +
    "WHERE state_hash = ? AND status = 'claimed' RETURNING state_hash";
  return { sql, values: [credentialId, stateHash], mustReturn: 1 };
}

export function failure({ stateHash }: FlowRow, detail: string): Statement {
  const sql =
    "UPDATE oauth_flows SET status = 'failed', detail = ? " +
    "WHERE state_hash = ? AND status = 'claimed' RETURNING state_hash";
  return { sql, values: [detail, stateHash], mustReturn: 1 };
}

export async function findFlow(records: RecordStore, stateHash: string): Promise<FlowRow | undefined> {
  const sql =
    "SELECT oauth_flows.*, CASE WHEN expires_at_ms > ? THEN 0 ELSE 1 END AS is_over FROM oauth_flows WHERE state_hash = ?";
  const [row] = await records.rows(sql, [NOW, stateHash]);
  return row === undefined ? undefined : toFlow(row);
}

function toFlow(row: RecordRow): FlowRow {
  const [credentialId, sourceType] = [row["credential_id"], String(row["source_type"])];
  return {
    stateHash: String(row["state_hash"]),
    browserHash: String(row["browser_hash"]),
    provider: String(row["provider"]),
    sourceType: sourceType === "" ? undefined : sourceType,
    label: String(row["label"]),
    startedBy: {
      owner: String(row["owner"]),
      subject: String(row["started_by"]),
      kind: String(row["started_kind"]) as CallerKind,
      databases: scopeOfColumn(row["databases"]),
    },
    status: String(row["status"]) as FlowRow["status"],
    isOver: Number(row["is_over"]) === 1,
    credentialId: typeof credentialId === "string" ? credentialId : undefined,
    sealed: {
      keyId: String(row["key_id"]),
      sealedKey: String(row["sealed_key"]),
      sealedValue: String(row["sealed_value"]),
    },
  };
}
