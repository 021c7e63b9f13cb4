import { CALLER_ROLES, type CallerRole } from "../config/kinds.ts";
import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";

/** Who sends a request, and what they may do. Every protocol turns what it got into one of these before anything else. */
export type Caller = {
  /** The user's name, or what stands for one: the name of a token, the subject of an issuer. For logs and admission. */
  readonly subject: string;
  readonly kind: CallerKind;
  readonly role: CallerRole;
  /** The databases that the caller may see, by folded name; undefined is all of them. */
  readonly databases: Scope;
  /** Of a user of the catalog. */
  readonly userId?: string;
  /** Of one who signed in: what signing out ends. */
  readonly sessionId?: string;
  /** Of a browser that signed in, whoever vouches for it: see `web/web-sessions.ts`. */
  readonly webSessionId?: string;
  /** Of one who shows a token that a caller made. */
  readonly tokenId?: string;
  /** Whose records it makes and reaches, where its subject does not say so: a worker's, a stored job's. See `ownerOf`. */
  readonly owner?: string;
};

/**
 * - `anonymous`: authentication is off.
 * - `static`: a token of the configuration.
 * - `session`: signed in with a password, or with an identity provider's token that was exchanged.
 * - `api_token`: a long-lived token that a caller made.
 * - `idp`, `oidc`: a token that an issuer signed.
 * - `internal`: this program, calling itself.
 * - `worker`: a node with a worker's token, which opens the routes for workers and no other.
 */
export type CallerKind = "anonymous" | "static" | "session" | "api_token" | "idp" | "oidc" | "internal" | "worker";

export type Scope = readonly string[] | undefined;

/** Everyone, while authentication is off. */
export const ANONYMOUS: Caller = { subject: "anonymous", kind: "anonymous", role: "admin", databases: undefined };

/** A program that a run of the agent started, for a route that judges the run's token itself: by itself it has no rights. */
export const RUN_CALLER: Caller = { subject: "agent-run", kind: "internal", role: "read", databases: [] };

/** A node that claims jobs, as the operator who made its token described it. */
export type WorkerIdentity = {
  readonly id: string;
  readonly name: string;
  /** Kinds of jobs that it may claim; undefined for all that workers may. */
  readonly capabilities: readonly string[] | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** It is to take no further jobs. */
  readonly drain: boolean;
  /** Who made it: see `owner.ts`. It may have that one's jobs. */
  readonly owner: string;
  /** Kinds of which an admin lets it have everybody's jobs; undefined for all of its capabilities. */
  readonly admitted: readonly string[] | undefined;
};

/** A worker as one who acts: in the audit log, and as the owner of jobs that it enqueues for itself. */
export function callerOfWorker({ name, owner }: Pick<WorkerIdentity, "name" | "owner">): Caller {
  return { subject: `worker:${name}`, kind: "worker", role: "read", databases: undefined, owner };
}

export function isCallerRole(text: unknown): text is CallerRole {
  return CALLER_ROLES.some((role) => role === text);
}

export function roleIncludes(role: CallerRole, needed: CallerRole): boolean {
  return CALLER_ROLES.indexOf(role) >= CALLER_ROLES.indexOf(needed);
}

/** The lower of two roles. */
export function lowerRole(a: CallerRole, b: CallerRole): CallerRole {
  return roleIncludes(a, b) ? b : a;
}

export function mayUseDatabase({ databases }: Pick<Caller, "databases">, name: string): boolean {
  return databases === undefined || databases.includes(foldName(name));
}

/** Throws `forbidden` for a database outside the caller's scope, and the same whether there is such a database or not. */
export function checkMayUse(caller: Pick<Caller, "databases">, database: string): void {
  if (mayUseDatabase(caller, database)) return;
  throw new EngineError("forbidden", `the token is limited to other databases than ${JSON.stringify(database)}`);
}

/** Whether everything that `inner` allows `outer` allows too. */
export function scopeIncludes(outer: Scope, inner: Scope): boolean {
  if (outer === undefined) return true;
  return inner !== undefined && inner.every((name) => outer.includes(name));
}

/** Folded, each name once. */
export function scopeOf(names: readonly string[]): Scope {
  return [...new Set(names.map(foldName))];
}
