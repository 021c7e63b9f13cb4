import type { AuditLog, Origin } from "../../../auth/audit.ts";
import { NOW, type RecordStore, type RecordValue, type Statement } from "../../../catalog/records.ts";
import { EngineError } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import type { Fabric } from "../../../fabric/fabric.ts";
import { textOf, type JobOwner } from "../../../fabric/job.ts";
import { FABRIC_LIMITS } from "../../../fabric/limits.ts";
import { mayReach, ownerFilter, ownerOf, type Asker } from "../../../auth/owner.ts";
import { invalidField } from "../refusals.ts";
import { knownImages } from "../room.ts";
import { HOST_IMAGE, isImageId } from "../../contract/images/image.ts";
import type { ImageBase, ImageBuildPayload } from "../../contract/images/build-job.ts";
import { usableImage } from "./choose.ts";
import { ENGINE, newestDefault, noDefaultBuilding, type DefaultImage } from "./default-images.ts";
import type { LayerStore } from "./layer-store.ts";
import { placeBuilds } from "./place-builds.ts";
import {
  BUILD_COLUMNS,
  buildNotFound,
  IMAGE_COLUMNS,
  imageNotFound,
  toBuild,
  toImage,
  UNFINISHED,
  type ImageBuild,
  type MachineImage,
} from "./records.ts";
import { settleBuilds } from "./settle.ts";
import { readTemplate } from "./template.ts";
import { PACKAGE_MANAGERS, type Template } from "../../contract/images/template.ts";

export type MachineImagesOptions = {
  records: RecordStore;
  fabric: Pick<Fabric, "prepare">;
  layers: LayerStore;
  audit: AuditLog;
  newId: IdSource;
  log: Log;
  limits: {
    /** Images and unfinished builds of a tenant. */
    maxPerTenant: number;
    pendingTimeoutMs: number;
    /**
     * From when an image is deleted until its bytes are: at least a minute, so that what is stored with it just before is
     * seen by then.
     */
    purgedAfterMs: number;
  };
  /** Where the request does not say. */
  defaults: { region: string; instanceType: string };
};

export type BuildRequest = {
  provider: string;
  region: string | undefined;
  instanceType: string | undefined;
  /** Undefined: the default one of the provider. */
  templateSource: string | undefined;
  variables: Readonly<Record<string, string>>;
};

type StoredBuild = {
  provider: string;
  region: string;
  instanceType: string;
  template: Template;
  base: ImageBase;
  owner: JobOwner;
  origin: Origin;
};

const PURGED_AT_ONCE = 10_000;
/** Builds on top of each other. */
const MAX_LAYERS = 100;
/** Condition that a column of JSON names the build of the row `gone`. */
const uses = (column: string) => `${column} LIKE '%"' || gone.build_id || '"%'`;
/** Who has too many may try again when some are gone. */
const RETRY_SECS = "60";
const BUILDS_KEPT_MS = 30 * 86_400_000;

/**
 * Images of tenants, and how they are built: records, and jobs for nodes. It runs nothing itself; what it writes may be
 * written by any process, and is looked at again by the duty of one (`look`).
 */
export class MachineImages {
  readonly #options: MachineImagesOptions;

  constructor(options: MachineImagesOptions) {
    this.#options = options;
  }

  /**
   * Stores a build, and gives it to a node where there is one. Rejects with `config_validation_error` for what is wrong
   * with the template, `image_not_found` for a base that the owner may not use, and `rate_limited`.
   */
  async build(request: BuildRequest, { owner, origin }: { owner: JobOwner; origin: Origin }): Promise<ImageBuild> {
    const { limits, defaults } = this.#options;
    const tenant = ownerOf(owner);
    const { provider, region = defaults.region, instanceType = defaults.instanceType, templateSource } = request;
    const template = readTemplate(templateSource, { provider, given: request.variables });
    const guard = {
      sql:
        "SELECT 1 AS fits WHERE (SELECT count(*) FROM machine_images WHERE tenant = ? AND deleted_at_ms IS NULL) + " +
        `(SELECT count(*) FROM image_builds WHERE tenant = ? AND ${UNFINISHED}) < CAST(? AS bigint)`,
      values: [tenant, tenant, limits.maxPerTenant],
      mustReturn: 1,
    };
    const base = await this.#baseOf(template, owner);
    const stored = await this.#store(guard, { provider, region, instanceType, template, base, owner, origin });
    if (stored !== undefined) return stored;
    const headers = { "Retry-After": RETRY_SECS };
    throw new EngineError("rate_limited", `a tenant has at most ${limits.maxPerTenant} images: delete some`, {
      headers,
    });
  }

  /**
   * The image of an agent provider for sandboxes that name none: built once from its default template, when it is first
   * asked for, and again with a release that has another one.
   */
  async defaultOf(provider: string, origin: Origin): Promise<DefaultImage> {
    const { records, defaults } = this.#options;
    const template = readTemplate(undefined, { provider, given: {} });
    const newest = await newestDefault(records, provider, template);
    if (newest !== undefined) return newest;
    const base = await this.#baseOf(template, ENGINE);
    await this.#store(noDefaultBuilding(provider), { provider, ...defaults, template, base, owner: ENGINE, origin });
    return {};
  }

  /** Stores a build, and gives it to a node where there is one; undefined where the guard is not met. */
  async #store(
    guard: Statement,
    { provider, region, instanceType, template, base, owner, origin }: StoredBuild,
  ): Promise<ImageBuild | undefined> {
    const { records, newId, audit } = this.#options;
    const id = newId();
    const payload: ImageBuildPayload = { buildId: id, base, template };
    checkSize(payload);
    const row: RecordValue[] = [
      id,
      ownerOf(owner),
      "queued",
      provider,
      region,
      instanceType,
      JSON.stringify(payload),
      NOW,
    ];
    const details = { provider, region, base: template.base };
    const outcome = await records.transact([
      guard,
      {
        sql:
          "INSERT INTO image_builds (id, tenant, status, provider, region, instance_type, request, created_at_ms) " +
          `VALUES (${row.map(() => "?").join(", ")}) RETURNING ${BUILD_COLUMNS}`,
        values: row,
        mustReturn: 1,
      },
      audit.statement({ origin, action: "image.build", target: id, outcome: "ok", details }),
    ]);
    if (!outcome.done) return undefined;
    const [stored] = outcome.rows[1] ?? [];
    if (stored === undefined) throw new Error("an image build was stored and not returned");
    await placeBuilds(this.#options, { id });
    return toBuild(stored);
  }

  /** Rejects with `build_not_found`. */
  async getBuild(id: string, asker: Asker): Promise<ImageBuild> {
    if (!isImageId(id)) throw buildNotFound(id);
    await this.#settle({ id });
    const [row] = await this.#options.records.rows(`SELECT ${BUILD_COLUMNS} FROM image_builds WHERE id = ?`, [id]);
    const build = row === undefined ? undefined : toBuild(row);
    if (build === undefined || !mayReach(asker, build.tenant)) throw buildNotFound(id);
    return build;
  }

  /** The newest first; those that the asker may use. */
  async list(
    filter: {
      region?: string | undefined;
      provider?: string | undefined;
      limit: number;
      /** The id of the last one of the page before. */
      before?: string | undefined;
    },
    asker: Asker,
  ): Promise<MachineImage[]> {
    await this.#settle({});
    const conditions = ["deleted_at_ms IS NULL"];
    const values: RecordValue[] = [];
    const and = (condition: string, value: string | undefined) => {
      if (value === undefined) return;
      conditions.push(condition);
      values.push(value);
    };
    const owner = ownerFilter(asker);
    and("(tenant = ? OR shared = 1)", owner);
    and("region = ?", filter.region);
    and("provider = ?", filter.provider);
    and("id < ?", filter.before);
    const sql = `SELECT ${IMAGE_COLUMNS} FROM machine_images WHERE ${conditions.join(" AND ")} ORDER BY id DESC LIMIT ?`;
    return (await this.#options.records.rows(sql, [...values, filter.limit])).map(toImage);
  }

  /** No new sandbox gets it; those that have it keep it. Rejects with `image_not_found`. */
  async remove(id: string, { asker, origin }: { asker: Asker; origin: Origin }): Promise<void> {
    const { records, audit } = this.#options;
    if (!isImageId(id)) throw imageNotFound(id);
    const own = ownedBy(asker);
    const { done } = await records.transact([
      {
        sql:
          "UPDATE machine_images SET status = 'deleted', deleted_at_ms = ? WHERE id = ? AND deleted_at_ms IS NULL " +
          `${own.sql}RETURNING id`,
        values: [NOW, id, ...own.values],
        mustReturn: 1,
      },
      audit.statement({ origin, action: "image.delete", target: id, outcome: "ok" }),
    ]);
    if (!done) throw imageNotFound(id);
  }

  /**
   * Says whether everybody may make sandboxes and images of it; who has done so keeps what was made. Rejects with
   * `image_not_found`.
   */
  async share(
    id: string,
    { shared, asker, origin }: { shared: boolean; asker: Asker; origin: Origin },
  ): Promise<MachineImage> {
    const { records, audit } = this.#options;
    if (!isImageId(id)) throw imageNotFound(id);
    const own = ownedBy(asker);
    const outcome = await records.transact([
      {
        sql:
          "UPDATE machine_images SET shared = ? WHERE id = ? AND deleted_at_ms IS NULL " +
          `${own.sql}RETURNING ${IMAGE_COLUMNS}`,
        values: [shared ? 1 : 0, id, ...own.values],
        mustReturn: 1,
      },
      audit.statement({
        origin,
        action: "image.share",
        target: id,
        outcome: "ok",
        details: { shared: String(shared) },
      }),
    ]);
    const [row] = outcome.done ? (outcome.rows[0] ?? []) : [];
    if (row === undefined) throw imageNotFound(id);
    return toImage(row);
  }

  /** What one process does for all of them, now and then. */
  async look(): Promise<void> {
    if ((await this.#settle({})) > 0) await placeBuilds(this.#options);
  }

  /** Removes the bytes of deleted images that nothing needs any more, and forgets old builds. */
  async tidy(): Promise<void> {
    const { records, layers, limits } = this.#options;
    const rows = await records.rows(
      "SELECT gone.id, gone.build_id FROM machine_images gone WHERE gone.deleted_at_ms <= ? " +
        `AND NOT EXISTS (SELECT 1 FROM machine_images m WHERE ${uses("m.manifest")} AND (m.deleted_at_ms IS NULL ` +
        "OR EXISTS (SELECT 1 FROM sandboxes WHERE sandboxes.image_id = m.id))) " +
        `AND NOT EXISTS (SELECT 1 FROM image_builds b WHERE b.${UNFINISHED} AND ${uses("b.request")}) ` +
        "LIMIT ?",
      [{ nowPlusMs: -limits.purgedAfterMs }, PURGED_AT_ONCE],
    );
    for (const row of rows) {
      await layers.remove(textOf(row, "build_id"));
      await records.write({ sql: "DELETE FROM machine_images WHERE id = ?", values: [textOf(row, "id")] });
    }
    await records.write({
      sql:
        "DELETE FROM image_builds WHERE completed_at_ms < ? " +
        "AND NOT EXISTS (SELECT 1 FROM machine_images WHERE machine_images.build_id = image_builds.id)",
      values: [{ nowPlusMs: -BUILDS_KEPT_MS }],
    });
  }

  #settle(which: { id?: string }): Promise<number> {
    const { limits } = this.#options;
    return settleBuilds({ ...this.#options, pendingTimeoutMs: limits.pendingTimeoutMs }, which);
  }

  async #baseOf(template: Template, owner: JobOwner): Promise<ImageBase> {
    const { records } = this.#options;
    const { base: name, packages } = template;
    const field = "template_source.base";
    const base: ImageBase = isImageId(name)
      ? await usableImage(records, { id: name, asker: owner, field })
      : { base: name, layers: [], environment: {} };
    if (!isImageId(name)) {
      const known = await knownImages(records);
      if (known !== undefined && !known.has(name))
        throw invalidField(field, `no node has it; there are ${namesOf(known)}`);
    }
    const used = PACKAGE_MANAGERS.find((manager) => packages[manager].length > 0);
    if (used !== undefined && base.base === HOST_IMAGE) {
      throw invalidField(
        `template_source.packages.${used}`,
        `images on ${HOST_IMAGE} have its /usr, which takes no packages`,
      );
    }
    return base;
  }
}

/** Condition in a WHERE, after others, that the asker may change the record; with its values. */
function ownedBy(asker: Asker): { sql: string; values: string[] } {
  const owner = ownerFilter(asker);
  return owner === undefined ? { sql: "", values: [] } : { sql: "AND tenant = ? ", values: [owner] };
}

/** What is stored must fit into a job, or no node would ever get it. */
function checkSize(payload: ImageBuildPayload): void {
  if (payload.base.layers.length >= MAX_LAYERS) {
    throw invalidField("template_source.base", `accepted are images of fewer than ${MAX_LAYERS} builds`);
  }
  if (Buffer.byteLength(JSON.stringify(payload)) <= FABRIC_LIMITS.payloadBytes) return;
  throw invalidField("template_source", "with what is known of its base, the template is too large");
}

function namesOf(known: ReadonlySet<string>): string {
  return [...known].toSorted().join(", ");
}
