/**
 * Records of the version before records had owners, as statements for both databases, and whose they are afterwards.
 * The audit log says so of most; of the others, what else was kept.
 */
const ACTED = ["ann", "session"] as const;

let entries = 0;
function logged(action: string, target: string, [actor, kind]: readonly [string, string]): string {
  const values = `'${++entries}', 0, '${actor}', '${kind}', '${action}', '${target}', 'ok', '', '', '{}'`;
  return `INSERT INTO audit_log VALUES (${values})`;
}

function user(name: string, role: string): string {
  const values = `'${name}', '${name}', '${name}', '${role}', 'local', 0, 0`;
  return `INSERT INTO users (id, name, folded_name, role, source, created_at_ms, updated_at_ms) VALUES (${values})`;
}

function credential(id: string, by: string): string {
  const values = `'${id}', 'l', 'pat', '', '{}', NULL, 'ok', NULL, 1, 'k', 's', 's', '${by}', 0, 0, NULL`;
  return `INSERT INTO credentials VALUES (${values})`;
}

function worker(id: string, by: string): string {
  const values = `'${id}', '${id}', '${id}', 'p', '{}', 0, '${by}', 0`;
  const columns = "id, name, token_hash, preview, labels, drain, created_by, created_at_ms";
  return `INSERT INTO workers (${columns}) VALUES (${values})`;
}

function job(id: string, [subject, kind]: readonly [string, string], workerId = "NULL"): string {
  const columns =
    "id, kind, status, lane, priority, run_after_ms, payload, worker_id, subject, caller_kind, role, attempt, " +
    "max_attempts, backoff_ms, lease_ms, fence, cancel_requested, created_at_ms, updated_at_ms";
  const lane = '["x.k",null,null,null,0]';
  const values = `'${id}', 'x.k', 'queued', '${lane}', 0, 0, 'null', ${workerId}, '${subject}', '${kind}', 'write'`;
  return `INSERT INTO jobs (${columns}) VALUES (${values}, 0, 1, 0, 0, 0, 0, 0, 0)`;
}

const SCHEDULE =
  "INSERT INTO schedules VALUES ('s1', 'nightly', 'x.k', '{}', NULL, '{}', 'once', 0, 1, 5, NULL, NULL, 'ann', " +
  "'session', 'write', NULL, 0, 0)";
const FLOW =
  "INSERT INTO oauth_flows VALUES ('f1', 'b', 'google', '', 'l', 'ann', 'session', NULL, 'pending', NULL, NULL, 'k', " +
  "'s', 's', 0, 0)";
const DEVICE_FLOW =
  "INSERT INTO oauth_device_flows VALUES ('d1', 'google', 'l', 'anonymous', 'anonymous', NULL, 'pending', NULL, NULL, " +
  "0, 0, 'k', 's', 's', 0, 0)";

export const EARLIER_RECORDS: readonly string[] = [
  user("ann", "write"),
  user("root", "admin"),
  user("local", "write"),
  credential("c-ann", "ann"),
  logged("credential.create", "c-ann", ACTED),
  credential("c-nobody-signed-in", "anonymous"),
  logged("credential.create", "c-nobody-signed-in", ["anonymous", "anonymous"]),
  credential("c-user-called-local", "local"),
  logged("credential.create", "c-user-called-local", ["local", "session"]),
  credential("c-token", "token:ci"),
  credential("c-user", "ann"),
  credential("c-unknown", "gone"),
  worker("w-root", "root"),
  logged("worker.create", "w-root", ["root", "session"]),
  worker("w-ann", "ann"),
  logged("worker.create", "w-ann", ACTED),
  worker("w-local", "anonymous"),
  logged("worker.create", "w-local", ["anonymous", "anonymous"]),
  worker("w-token", "token:ci"),
  job("j-ann", ACTED),
  job("j-local", ["anonymous", "anonymous"]),
  job("j-engine", ["engine", "internal"]),
  job("j-worker", ["worker:w", "worker"], "'w-ann'"),
  job("j-issuer", ['https://issuer#a"b\\c', "oidc"]),
  SCHEDULE,
  FLOW,
  DEVICE_FLOW,
];

type Expected = { sql: string; rows: readonly Readonly<Record<string, string | null>>[] };

const lane = (owner: string) => JSON.stringify(["x.k", null, null, null, 0, owner]);

export const OWNED_AFTER: readonly Expected[] = [
  {
    sql: "SELECT id, owner FROM credentials ORDER BY id",
    rows: [
      { id: "c-ann", owner: "ann" },
      { id: "c-nobody-signed-in", owner: "local" },
      { id: "c-token", owner: "token:ci" },
      { id: "c-unknown", owner: "admins:" },
      { id: "c-user", owner: "ann" },
      { id: "c-user-called-local", owner: "user:local" },
    ],
  },
  {
    sql: "SELECT id, owner, admitted FROM workers ORDER BY id",
    rows: [
      { id: "w-ann", owner: "ann", admitted: "[]" },
      { id: "w-local", owner: "local", admitted: null },
      { id: "w-root", owner: "root", admitted: null },
      { id: "w-token", owner: "token:ci", admitted: "[]" },
    ],
  },
  {
    sql: "SELECT id, owner, lane FROM jobs ORDER BY id",
    rows: [
      { id: "j-ann", owner: "ann", lane: lane("ann") },
      { id: "j-engine", owner: "engine", lane: lane("engine") },
      { id: "j-issuer", owner: 'https://issuer#a"b\\c', lane: lane('https://issuer#a"b\\c') },
      { id: "j-local", owner: "local", lane: lane("local") },
      { id: "j-worker", owner: "ann", lane: lane("ann") },
    ],
  },
  {
    sql: "SELECT id, name, owner, kind FROM schedules",
    rows: [{ id: "s1", name: "nightly", owner: "ann", kind: "x.k" }],
  },
  { sql: "SELECT owner FROM oauth_flows", rows: [{ owner: "ann" }] },
  { sql: "SELECT owner FROM oauth_device_flows", rows: [{ owner: "local" }] },
];
