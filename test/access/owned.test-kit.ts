import type { Stranger, TestRequest, World } from "./world.test-kit.ts";

/**
 * What a route has to do with records that have owners. `owners.test.ts` tries each row as two tenants and an admin:
 * `names` is what a request names records by, and `lists` is what an answer tells of them.
 */
export type OwnedRoute = {
  /** By place, as `referencesOf` spells it: `path id`, `query before`, `body credentials`. */
  names?: Readonly<Record<string, Naming>>;
  /** What the answer lists. */
  lists?: Listing;
  /** Places that look as if they named a record and do not: why. */
  plain?: Readonly<Record<string, string>>;
};

/** A place of a request that names a record. */
export type Naming = {
  /** Makes a record of the tenant's, anew for each call; resolves to the id or label that the request has there. */
  make: (tenant: Tenant) => Promise<string>;
  /** The request of a tenant, with that id in its place; what else it names is to be the asker's own. */
  request: (id: string, asker: Tenant) => TestRequest | Promise<TestRequest>;
  /** Of the owner, and of an admin unless there is another for those. */
  answer: number;
  adminAnswer?: number;
  /** Of another tenant, which must be that of an id that nothing has; 404 by default. */
  stranger?: number;
  /** Such an id. */
  missing?: string;
  /** Whose token the request has: the tenant's (by default), or that of the tenant's worker. */
  by?: "worker";
};

/** An answer that lists records. */
export type Listing = {
  /** Makes a record of the tenant's; resolves to what the list shows of it, and only where it is listed. */
  make: (tenant: Tenant) => Promise<string>;
  request: (asker: Tenant) => TestRequest | Promise<TestRequest>;
  by?: "worker";
  /** Where an admin sees no more than others. */
  admin?: "nothing";
};

/** One who asks: two have the role write, and one is an admin. */
export type Tenant = Stranger & {
  world: World;
  /** Rejects unless it succeeds. */
  ask: (method: string, path: string, body?: unknown) => Promise<Record<string, unknown>>;
  /** A worker that the tenant made. */
  worker: Stranger & { id: string };
};

/** A name that nothing has yet. */
export function newName(): string {
  return `made-${++made}`;
}
let made = 0;

/** An id that nothing has. */
export const MISSING_ID = "01890a5d-ac96-774b-bcce-b302099a8057";
