import { fileURLToPath } from "node:url";

/** The catalogs that earlier commits of this repository wrote: `catalogs/README.md` says how they were made. */
export type Earlier = {
  commit: string;
  /** How many migrations its catalogs have seen. */
  schema: { sqlite: number; postgres?: number };
  /** Parts of the engine that it has. */
  has: readonly Part[];
};

export type Part =
  | "time travel"
  | "staged writes"
  | "merges"
  | "cluster columns"
  | "users"
  | "jobs"
  | "workspaces"
  | "sandboxes"
  | "deletion";
export type Driver = "sqlite" | "postgres";

const CLUSTER = ["time travel", "staged writes", "merges"] as const;
const JOBS = [...CLUSTER, "cluster columns", "users", "jobs"] as const;
const SANDBOXES = [...JOBS, "workspaces", "sandboxes"] as const;

export const EARLIER: readonly Earlier[] = [
  { commit: "a4987d1", schema: { sqlite: 1 }, has: [] },
  { commit: "b3e0029", schema: { sqlite: 5, postgres: 1 }, has: CLUSTER },
  { commit: "e59372d", schema: { sqlite: 8, postgres: 4 }, has: JOBS },
  { commit: "4c31bb5", schema: { sqlite: 10, postgres: 6 }, has: SANDBOXES },
  { commit: "8179e63", schema: { sqlite: 11, postgres: 7 }, has: SANDBOXES },
  { commit: "2a02532", schema: { sqlite: 14, postgres: 11 }, has: [...SANDBOXES, "deletion"] },
  { commit: "f9c0211", schema: { sqlite: 17, postgres: 14 }, has: [...SANDBOXES, "deletion"] },
];

/** What the earlier version itself said of its catalog before it stopped. */
export type Facts = {
  commit: string;
  driver: Driver;
  schema: number;
  /** Answers to queries, as text: NDJSON. */
  answers: { sql: string; database: string; answer: string }[];
  /** Records of lists, by the path of the list: those fields of each that do not change by themselves. */
  lists: Record<string, Record<string, unknown>[]>;
  /** A token that it made; empty where it knew none. */
  token: string;
  /** Rows of the table `late` that were staged and not committed. */
  stagedRows: number;
};

export const PASSWORDS = { root: "correct horse", ann: "battery staple" };

const FOREVER_SECS = "315360000";

/** Settings of the earlier version and of today's alike: nothing is swept, however old the catalog is. */
export function settings(has: readonly Part[]): Record<string, string> {
  return {
    ...(has.includes("merges") && { ENGINE_PHYSICAL_GC_GRACE_SECS: FOREVER_SECS }),
    ...(has.includes("jobs") && {
      ENGINE_AUTH_BACKEND: "session",
      ENGINE_ADMIN_USER: "root",
      ENGINE_ADMIN_PASSWORD: PASSWORDS.root,
      ENGINE_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
      ENGINE_FABRIC_RETENTION_SECS: FOREVER_SECS,
    }),
    ...(has.includes("sandboxes") && { ENGINE_SANDBOX_RUNTIME: "off" }),
  };
}

/** Of each list, the fields that do not change by themselves. */
export const LISTS: readonly { path: string; part: Part; fields: readonly string[] }[] = [
  { path: "/v1/admin/users", part: "users", fields: ["username", "role"] },
  { path: "/v1/auth/tokens", part: "users", fields: ["id", "name", "role", "databases"] },
  { path: "/v1/credentials", part: "jobs", fields: ["id", "label", "kind", "preview", "shared"] },
  { path: "/v1/jobs", part: "jobs", fields: ["id", "kind", "status", "database"] },
  { path: "/v1/schedules", part: "jobs", fields: ["id", "name", "kind", "enabled", "timing"] },
  { path: "/v1/workers", part: "jobs", fields: ["id", "name", "capabilities"] },
  { path: "/api/v1/workspaces", part: "workspaces", fields: ["id", "name", "labels"] },
  { path: "/api/v1/sandboxes", part: "sandboxes", fields: ["id", "name", "labels", "status"] },
];

/** The archive of a catalog: the engine's home, and in `facts.json` what the earlier version said of it. */
export function fixture(commit: string, driver: Driver): string {
  return fileURLToPath(new URL(`catalogs/${commit}-${driver}.tar.gz`, import.meta.url));
}
