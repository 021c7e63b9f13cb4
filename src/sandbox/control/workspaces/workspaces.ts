import type { AuditAction, AuditLog, Origin } from "../../../auth/audit.ts";
import { NOW, type RecordRow, type RecordStore, type RecordValue, type Statement } from "../../../catalog/records.ts";
import { EngineError } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import { checkProvider } from "../requests/create-request.ts";
import type { CredentialDirectory } from "../credentials/directory.ts";
import { checkRepositories, type RepositoryRules } from "../requests/check-repositories.ts";
import { mayReach, ownerFilter, ownerOf, type Asker } from "../../../auth/owner.ts";
import { labelInColumn, labelsToColumn, type Sandbox } from "../scheduler/sandbox.ts";
import type { NewSandbox } from "../scheduler/create.ts";
import type { EnvSealing } from "../scheduler/sealed-env.ts";
import type { WorkspaceChange, WorkspaceContent } from "./fields.ts";
import { toSandboxSpec, withCredentialIds } from "./spec.ts";
import { specToWorkspaceColumn, toWorkspace, WORKSPACE_COLUMNS, type Workspace } from "./workspace.ts";

export type WorkspacesOptions = {
  records: RecordStore;
  audit: AuditLog;
  newId: IdSource;
  /** Undefined where the operator set no key. */
  envSealing: EnvSealing | undefined;
  /** How sandboxes are made. */
  sandboxes: { create(asked: NewSandbox): Promise<Sandbox> };
  repositories: RepositoryRules;
  /** Where those are that are named by their label. */
  credentials: CredentialDirectory;
  /** Workspaces that a tenant has at once. */
  maxPerTenant: number;
};

export type WorkspaceFilter = {
  /** A part of its name. */
  name?: string | undefined;
  /** All of them. */
  labels?: readonly (readonly [name: string, value: string])[];
  limit: number;
  /** The id of the last one of the page before. */
  before?: string | undefined;
};

/** One who has too many may try again when some are gone; nobody knows when that is. */
const RETRY_SECS = "10";

/**
 * Definitions of environments, which belong to the caller who made them, and are launched into sandboxes. A sandbox keeps
 * what it was launched with: it does not change with its workspace, nor go with it.
 */
export class Workspaces {
  readonly #options: WorkspacesOptions;

  constructor(options: WorkspacesOptions) {
    this.#options = options;
  }

  /**
   * Rejects with `agent_provider_not_found`, `config_validation_error` for repositories that no node may clone, and
   * `rate_limited` for a tenant that has `maxPerTenant`.
   */
  async create(content: WorkspaceContent, { caller, origin }: By): Promise<Workspace> {
    const { newId, records, maxPerTenant } = this.#options;
    this.#check(content.spec);
    const id = newId();
    const values = [
      id,
      ownerOf(caller),
      content.name,
      content.description ?? null,
      this.#column(id, content.spec),
      labelsToColumn(content.labels),
      1,
      NOW,
      NOW,
    ];
    const insertion = {
      sql:
        `INSERT INTO workspaces (${WORKSPACE_COLUMNS}) VALUES (${values.map(() => "?").join(", ")}) ` +
        `RETURNING ${WORKSPACE_COLUMNS}`,
      values,
      mustReturn: 1,
    };
    const entry = this.#entry("workspace.create", id, origin);
    const outcome = await records.transact([countGuard(ownerOf(caller), maxPerTenant), insertion, entry]);
    if (!outcome.done) throw tooMany(maxPerTenant);
    return this.#one(outcome.rows[1], id);
  }

  /** The workspace, for its owner and for admins. Rejects with `workspace_not_found`. */
  async get(id: string, asker: Asker): Promise<Workspace> {
    const sql = `SELECT ${WORKSPACE_COLUMNS} FROM workspaces WHERE id = ?`;
    const found = this.#one(id.includes("\0") ? [] : await this.#options.records.rows(sql, [id]), id);
    if (!mayReach(asker, found.tenant)) throw notFound(id);
    return found;
  }

  /** Newest first; those that the asker may see. */
  async list(filter: WorkspaceFilter, asker: Asker): Promise<Workspace[]> {
    // No name has one, and PostgreSQL takes no text with it.
    if (filter.name?.includes("\0") === true) return [];
    const conditions = ["1 = 1"];
    const values: RecordValue[] = [];
    const and = (condition: string, given: RecordValue) => {
      conditions.push(condition);
      values.push(given);
    };
    const owner = ownerFilter(asker);
    if (owner !== undefined) and("tenant = ?", owner);
    if (filter.before !== undefined) and("id < ?", filter.before);
    // Both databases know no other search that minds upper and lower case.
    if (filter.name !== undefined && filter.name !== "") and("replace(name, ?, '') <> name", filter.name);
    for (const label of filter.labels ?? []) and("replace(labels, ?, '') <> labels", labelInColumn(label));
    const where = `WHERE ${conditions.join(" AND ")} ORDER BY id DESC LIMIT ?`;
    const sql = `SELECT ${WORKSPACE_COLUMNS} FROM workspaces ${where}`;
    const rows = await this.#options.records.rows(sql, [...values, filter.limit]);
    return rows.map((row) => toWorkspace(this.#options.envSealing, row));
  }

  /** Changes what is given. Rejects as `get` and `create` do. */
  async change(id: string, { name, description, spec, labels }: WorkspaceChange, by: By): Promise<Workspace> {
    await this.get(id, by.caller);
    if (spec !== undefined) this.#check(spec);
    const changes: [column: string, value: RecordValue][] = [
      ...(name === undefined ? [] : [["name", name] as [string, RecordValue]]),
      ...(description === undefined ? [] : [["description", description] as [string, RecordValue]]),
      ...(spec === undefined ? [] : [["spec", this.#column(id, spec)] as [string, RecordValue]]),
      ...(labels === undefined ? [] : [["labels", labelsToColumn(labels)] as [string, RecordValue]]),
      ["updated_at_ms", NOW],
    ];
    const update = {
      sql:
        `UPDATE workspaces SET ${changes.map(([column]) => `${column} = ?`).join(", ")}, version = version + 1 ` +
        `WHERE id = ? RETURNING ${WORKSPACE_COLUMNS}`,
      values: [...changes.map(([, value]) => value), id],
      mustReturn: 1,
    };
    const outcome = await this.#options.records.transact([update, this.#entry("workspace.update", id, by.origin)]);
    return this.#one(outcome.done ? outcome.rows[0] : [], id);
  }

  /** Its sandboxes stay. */
  async remove(id: string, by: By): Promise<void> {
    await this.get(id, by.caller);
    const removal = { sql: "DELETE FROM workspaces WHERE id = ? RETURNING id", values: [id], mustReturn: 1 };
    const outcome = await this.#options.records.transact([removal, this.#entry("workspace.delete", id, by.origin)]);
    if (!outcome.done) throw notFound(id);
  }

  /**
   * Makes a sandbox of the caller's from the workspace as it is now, with these labels beside its own. Rejects as `get`
   * and `Sandboxes.create` do, as `withCredentialIds`, and with `unavailable` where its variables cannot be opened.
   */
  async launch(id: string, own: LaunchedAs, by: By): Promise<Sandbox> {
    const { tenant: author, spec, labels, closedEnv } = await this.get(id, by.caller);
    if (closedEnv !== undefined) throw new EngineError("unavailable", `its variables cannot be opened: ${closedEnv}`);
    const owner = by.caller;
    const whole = await withCredentialIds(spec, { directory: this.#options.credentials, owner });
    return await this.#options.sandboxes.create({
      spec: toSandboxSpec(whole, { name: own.name, labels: { ...labels, ...own.labels } }),
      owner,
      author,
      origin: by.origin,
      workspaceId: id,
    });
  }

  /** Ids of the sandboxes that were launched from it and are still there, newest first; those that the asker may see. */
  async sandboxes(
    id: string,
    { limit, before }: { limit: number; before?: string | undefined },
    asker: Asker,
  ): Promise<{ id: string }[]> {
    await this.get(id, asker);
    const owner = ownerFilter(asker);
    const own = owner === undefined ? "" : " AND tenant = ?";
    const older = before === undefined ? "" : " AND id < ?";
    const rows = await this.#options.records.rows(
      `SELECT id FROM sandboxes WHERE workspace_id = ? AND deleted_at_ms IS NULL${own}${older} ORDER BY id DESC LIMIT ?`,
      [id, ...(owner === undefined ? [] : [owner]), ...(before === undefined ? [] : [before]), limit],
    );
    return rows.map((row) => ({ id: String(row["id"]) }));
  }

  #check(spec: WorkspaceContent["spec"]): void {
    const made = toSandboxSpec(spec, { name: undefined, labels: {} });
    checkProvider(made);
    checkRepositories(made, this.#options.repositories, {
      repositories: "spec.repositories",
      skills: "spec.skills",
    });
  }

  #column(id: string, spec: WorkspaceContent["spec"]): string {
    return specToWorkspaceColumn(this.#options.envSealing, id, spec);
  }

  #one(rows: readonly RecordRow[] | undefined, id: string): Workspace {
    const [row] = rows ?? [];
    if (row === undefined) throw notFound(id);
    return toWorkspace(this.#options.envSealing, row);
  }

  #entry(action: AuditAction, target: string, origin: Origin): Statement {
    return this.#options.audit.statement({ origin, action, target, outcome: "ok", details: {} });
  }
}

/** What is said of one sandbox alone. */
type LaunchedAs = { name?: string | undefined; labels?: WorkspaceContent["labels"] | undefined };

/** Who does it, and from where. */
export type By = { caller: NewSandbox["owner"]; origin: Origin };

function countGuard(tenant: string, max: number): Statement {
  return {
    sql: "SELECT 1 AS fits WHERE (SELECT count(*) FROM workspaces WHERE tenant = ?) < CAST(? AS bigint)",
    values: [tenant, max],
    mustReturn: 1,
  };
}

function tooMany(max: number): EngineError {
  const headers = { "Retry-After": RETRY_SECS };
  return new EngineError("rate_limited", `a tenant has at most ${max} workspaces: delete some`, { headers });
}

function notFound(id: string): EngineError {
  return new EngineError("workspace_not_found", `there is no workspace ${id}`);
}
