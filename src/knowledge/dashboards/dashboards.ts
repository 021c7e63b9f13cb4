import type { AuditLog, Origin } from "../../auth/audit.ts";
import { mayUseDatabase, type Caller } from "../../auth/caller.ts";
import { databaseNotFound } from "../../auth/name-not-found.ts";
import { ownerOf } from "../../auth/owner.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import { matchesEtag } from "../../core/etags.ts";
import type { IdSource } from "../../core/ids.ts";
import type { RecordStore } from "../../db/records.ts";
import {
  changedDocument,
  documentOf,
  isSameDocument,
  queriesOf,
  type DashboardChange,
  type DashboardDocument,
  type NewDashboard,
} from "./document.ts";
import { DASHBOARD_LIMITS } from "./limits.ts";
import {
  DashboardStore,
  type Dashboard,
  type DashboardHead,
  type DashboardVersion,
  type StoredVersion,
} from "./store.ts";

export type DashboardsDeps = {
  catalog: Pick<Catalog, "databases">;
  records: RecordStore;
  newId: IdSource;
  audit: AuditLog;
};

/** Who changes a dashboard, and the versions (`If-Match`) that it may have then. */
export type Change = { caller: Caller; ifMatch: string | undefined };

/**
 * Dashboards are everybody's who may use all databases that the queries of their panels and variables run in, whoever made
 * them; to all others there are none, and no version that names such a database. One without queries is for all. The
 * rights are to databases by name: a dashboard stays when a database is dropped, and shows one that is made anew under the
 * name.
 *
 * Every change is a version. One that changes nothing makes none, so that a client which saves what it has read pushes no
 * earlier version out.
 */
export class Dashboards {
  readonly #deps: Omit<DashboardsDeps, "records">;
  readonly #store: DashboardStore;

  constructor(deps: DashboardsDeps) {
    this.#deps = deps;
    this.#store = new DashboardStore(deps.records);
  }

  /** By their ids, the last first: the newest, where the ids are this program's. */
  async list(
    filter: { name?: string | undefined; before?: string | undefined; limit: number },
    { databases: scope }: Caller,
  ): Promise<DashboardHead[]> {
    return await this.#store.list({ ...filter, scope });
  }

  /** Throws `not_found`, also for one that the caller may not see. */
  async get(id: string, caller: Caller): Promise<Dashboard> {
    const found = await this.#store.find(id);
    if (found !== undefined && mayUseAll(caller, found)) return found;
    throw new EngineError("not_found", `there is no dashboard ${id}`);
  }

  /** Throws `database_not_found` for a query of a database outside the caller's scope, `conflict` for an id that is taken. */
  async create({ id = this.#deps.newId(), ...content }: NewDashboard, caller: Caller): Promise<Dashboard> {
    const document = documentOf(content, this.#deps.newId);
    await this.#checkDatabases(caller, document);
    if ((await this.#store.count()) >= DASHBOARD_LIMITS.dashboards) {
      const most = DASHBOARD_LIMITS.dashboards;
      throw new EngineError("conflict", `there are ${most} dashboards, and there may be no more: delete some first`);
    }
    const made = await this.#store.add(id, document, ownerOf(caller));
    if (made !== undefined) return made;
    throw new EngineError("conflict", `there is a dashboard ${id} already`);
  }

  /** Throws `not_found`, `precondition_failed`, `database_not_found`, `body_too_large`. */
  async change(id: string, change: DashboardChange, how: Change): Promise<Dashboard> {
    return await this.#save(id, how, (before) =>
      Promise.resolve(changedDocument(before.document, change, this.#deps.newId)),
    );
  }

  /** What that version was becomes a new one. Throws `not_found`, `precondition_failed`. */
  async restore(id: string, version: number, how: Change): Promise<Dashboard> {
    return await this.#save(id, how, async () => (await this.#version(id, version, how.caller)).document);
  }

  /** The newest first; those that the caller may not see are left out. */
  async versions(id: string, caller: Caller): Promise<DashboardVersion[]> {
    await this.get(id, caller);
    return (await this.#store.versions(id)).filter((version) => mayUseAll(caller, version));
  }

  /** Throws `not_found`, also for one that the caller may not see. */
  async version(id: string, version: number, caller: Caller): Promise<StoredVersion> {
    await this.get(id, caller);
    return await this.#version(id, version, caller);
  }

  async #version(id: string, version: number, caller: Caller): Promise<StoredVersion> {
    const found = await this.#store.version(id, version);
    if (found !== undefined && mayUseAll(caller, found)) return found;
    throw new EngineError("not_found", `the dashboard ${id} has no version ${version}`);
  }

  /** Throws `database_not_found` as a query of such a database does, whether it exists or not. */
  async #checkDatabases(caller: Caller, document: DashboardDocument): Promise<void> {
    for (const { database } of queriesOf(document)) {
      if (mayUseDatabase(caller, database)) continue;
      throw await databaseNotFound(this.#deps.catalog, { caller, database }, { refused: true });
    }
  }

  /** With all its versions. Changes leave a trail of versions, which this ends: it is in the audit log. */
  async remove(id: string, { ifMatch, origin }: { ifMatch: string | undefined; origin: Origin & { caller: Caller } }) {
    await this.#unlessRaced(id, { caller: origin.caller, ifMatch }, async (found) => {
      const details = { name: found.name, version: found.version };
      const noted = this.#deps.audit.statement({
        origin,
        action: "dashboard.delete",
        target: id,
        outcome: "ok",
        details,
      });
      return (await this.#store.remove(found, noted)) ? true : undefined;
    });
  }

  async #save(
    id: string,
    how: Change,
    documentFrom: (before: Dashboard) => Promise<DashboardDocument>,
  ): Promise<Dashboard> {
    return await this.#unlessRaced(id, how, async (before) => {
      const document = await documentFrom(before);
      if (isSameDocument(document, before.document)) return before;
      await this.#checkDatabases(how.caller, document);
      return await this.#store.replace(before, document, ownerOf(how.caller));
    });
  }

  /**
   * Does something to the dashboard as it is. Where somebody else was quicker it is read and judged anew, since what it
   * is then may be nothing for the caller; with `If-Match` that ends in `precondition_failed`.
   */
  async #unlessRaced<T>(
    id: string,
    { caller, ifMatch }: Change,
    attempt: (before: Dashboard) => Promise<T | undefined>,
  ): Promise<T> {
    for (let i = 0; i < DASHBOARD_LIMITS.saveAttempts; i++) {
      const before = await this.get(id, caller);
      checkMatch(before, ifMatch);
      const outcome = await attempt(before);
      if (outcome !== undefined) return outcome;
    }
    throw new EngineError("conflict", `the dashboard ${id} is being changed by others: try again`);
  }
}

/** The entity tag of a dashboard: its version. */
export function etagOf({ version }: Pick<Dashboard, "version">): string {
  return `"${version}"`;
}

/** Throws `precondition_failed`. */
function checkMatch(dashboard: Dashboard, ifMatch: string | undefined): void {
  const tag = etagOf(dashboard);
  if (ifMatch === undefined || matchesEtag(ifMatch, tag)) return;
  throw new EngineError(
    "precondition_failed",
    `the dashboard ${dashboard.id} has changed since that version: it is at version ${dashboard.version}`,
    { headers: { ETag: tag } },
  );
}

function mayUseAll(caller: Caller, { databases }: { databases: readonly string[] }): boolean {
  return databases.every((name) => mayUseDatabase(caller, name));
}
