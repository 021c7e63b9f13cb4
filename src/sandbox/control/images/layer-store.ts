import type { RecordStore } from "../../../catalog/records.ts";
import { EngineError } from "../../../core/errors.ts";
import { heldValues, IS_HELD, jsonOf, type Hold } from "../../../fabric/job.ts";
import { leaseLost } from "../../../fabric/refusals.ts";
import { ObjectNotFound, objectKeys, type ObjectStore } from "../../../io/objectstore/objectstore.ts";
import { IMAGE_BUILD_KIND, imageBuildPayload } from "../../contract/images/build-job.ts";
import { MAX_PARTS, PART_BYTES, type ImageLayer } from "../../contract/images/image.ts";
import type { ImagePort } from "../../contract/images/image-port.ts";

export type LayerStoreOptions = {
  records: RecordStore;
  store: Pick<ObjectStore, "put" | "get" | "list" | "delete">;
  prefix: string;
};

/** Layers in the object store: each hold of a build writes under a key of its own. */
export class LayerStore implements ImagePort {
  readonly #options: LayerStoreOptions;

  constructor(options: LayerStoreOptions) {
    this.#options = options;
  }

  async read({ buildId, fence }: Pick<ImageLayer, "buildId" | "fence">, part: number): Promise<Uint8Array> {
    const { store, prefix } = this.#options;
    try {
      return await store.get(objectKeys.imagePart({ prefix, buildId, fence, part }));
    } catch (error) {
      if (!(error instanceof ObjectNotFound)) throw error;
      throw new EngineError("image_not_found", `the image of the build ${buildId} has no part ${part}`);
    }
  }

  /** Whether the node needs layers of that build: for a sandbox that it has, or for a build on top of it. */
  async isFor(nodeId: string, buildId: string): Promise<boolean> {
    const names = `%"${buildId}"%`;
    const rows = await this.#options.records.rows(
      "SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM sandboxes WHERE node_id = ? AND spec LIKE ?) OR EXISTS " +
        "(SELECT 1 FROM jobs WHERE holder = ? AND status = 'leased' AND kind = ? AND payload LIKE ?)",
      [nodeId, names, nodeId, IMAGE_BUILD_KIND, names],
    );
    return rows.length > 0;
  }

  async write(hold: Hold, part: number, bytes: Uint8Array): Promise<void> {
    if (bytes.byteLength > PART_BYTES || part >= MAX_PARTS)
      throw new EngineError("body_too_large", "the part is too large");
    const { records, store, prefix } = this.#options;
    const sql = `SELECT payload FROM jobs WHERE kind = ? AND ${IS_HELD}`;
    const [row] = await records.rows(sql, [IMAGE_BUILD_KIND, ...heldValues(hold)]);
    if (row === undefined) throw leaseLost(hold);
    const { buildId } = imageBuildPayload.parse(jsonOf(row, "payload"));
    await store.put(objectKeys.imagePart({ prefix, buildId, fence: hold.fence, part }), bytes);
  }

  /** Removes what a build has written, but for what is kept of it. Repeatable. */
  async remove(buildId: string, keep?: Pick<ImageLayer, "fence">): Promise<void> {
    const { store, prefix } = this.#options;
    const all = objectKeys.imageParts({ prefix, buildId });
    const kept = keep === undefined ? undefined : `${all}${keep.fence}/`;
    const keys: string[] = [];
    for await (const { key } of store.list(all)) if (kept === undefined || !key.startsWith(kept)) keys.push(key);
    if (keys.length > 0) await store.delete(keys);
  }
}
