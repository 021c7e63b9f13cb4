import type { RecordStore } from "../../catalog/records.ts";
import { DEBIAN_IMAGE } from "../runtime/images.ts";
import { knownImages } from "../scheduler/room.ts";
import { DEFAULT_TEMPLATES } from "./default-templates.ts";
import { invalidField } from "../scheduler/refusals.ts";
import { isImageId, type BuiltImage } from "./image.ts";
import { builtImageOf } from "./records.ts";

/** A tenant's own image. Rejects with `config_validation_error` where it is none of theirs, or was deleted. */
export async function ownImage(
  records: RecordStore,
  { id, tenant, field }: { id: string; tenant: string; field: string },
): Promise<BuiltImage> {
  const sql = "SELECT id, manifest FROM machine_images WHERE id = ? AND tenant = ? AND deleted_at_ms IS NULL";
  const [row] = await records.rows(sql, [id, tenant]);
  if (row === undefined) throw invalidField(field, `there is no image ${id}`);
  return builtImageOf(row);
}

export type ChosenImage = { image: string | undefined; builtImage: BuiltImage | undefined };

export type ImageDefaults = {
  /** What the operator gives to agent providers. */
  named: Readonly<Record<string, string>>;
  /** The image of an agent provider, where there are such; rejects with `unavailable` until it is built. */
  built?: ((provider: string) => Promise<BuiltImage>) | undefined;
};

/**
 * The image that a new sandbox gets: what it asks for, else what the operator gives its agent provider, else what is
 * built for that where nodes have its base, else that of the node. Rejects with `config_validation_error` for one that is
 * not there.
 */
export async function chooseImage(
  records: RecordStore,
  { image, agentProvider }: { image: string | undefined; agentProvider: string },
  { tenant, defaults }: { tenant: string; defaults: ImageDefaults },
): Promise<ChosenImage> {
  if (image !== undefined) {
    return {
      image,
      builtImage: isImageId(image) ? await ownImage(records, { id: image, tenant, field: "image" }) : undefined,
    };
  }
  const { named, built } = defaults;
  const given = Object.hasOwn(named, agentProvider) ? named[agentProvider] : undefined;
  if (given === undefined && built !== undefined && DEFAULT_TEMPLATES.has(agentProvider)) {
    if ((await knownImages(records))?.has(DEBIAN_IMAGE) !== true) return { image: undefined, builtImage: undefined };
    const builtImage = await built(agentProvider);
    return { image: builtImage.id, builtImage };
  }
  if (given === undefined || !isImageId(given)) return { image: given, builtImage: undefined };
  // The operator's word: whosever it is.
  const sql = "SELECT id, manifest FROM machine_images WHERE id = ? AND deleted_at_ms IS NULL";
  const [row] = await records.rows(sql, [given]);
  if (row === undefined)
    throw invalidField("image", `the default image of ${agentProvider} is not there: name another`);
  return { image: given, builtImage: builtImageOf(row) };
}
