import type { RecordStore } from "../../../catalog/records.ts";
import { mayUse, type Asker } from "../../../auth/owner.ts";
import { EngineError } from "../../../core/errors.ts";
import { textOf } from "../../../fabric/job.ts";
import { DEBIAN_IMAGE, isImageId, type BuiltImage } from "../../contract/images/image.ts";
import { knownImages } from "../room.ts";
import { couldNotBeBuilt, type DefaultImage } from "./default-images.ts";
import { DEFAULT_TEMPLATES } from "./default-templates.ts";
import { invalidField } from "../refusals.ts";
import { builtImageOf } from "./records.ts";

/**
 * An image for whoever may use it: its owner, admins, and everybody while it is shared. Rejects with `image_not_found`
 * for every other, there or not.
 */
export async function usableImage(
  records: RecordStore,
  { id, asker, field }: { id: string; asker: Asker; field: string },
): Promise<BuiltImage> {
  const sql = "SELECT id, tenant, shared, manifest FROM machine_images WHERE id = ? AND deleted_at_ms IS NULL";
  const [row] = await records.rows(sql, [id]);
  if (row !== undefined && mayUse(asker, { owner: textOf(row, "tenant"), shared: Number(row["shared"]) === 1 })) {
    return builtImageOf(row);
  }
  throw new EngineError("image_not_found", `${field}: there is no image ${id}`);
}

export type ChosenImage = {
  image: string | undefined;
  builtImage: BuiltImage | undefined;
  /** It is that of the agent provider, which is being built. */
  isAwaited?: true;
};

export type ImageDefaults = {
  /** What the operator gives to agent providers. */
  named: Readonly<Record<string, string>>;
  /** The image of an agent provider, where there are such. */
  built?: ((provider: string) => Promise<DefaultImage>) | undefined;
};

/**
 * The image that a new sandbox gets: what it asks for, else what the operator gives its agent provider, else what is
 * built for that where nodes have its base, else that of the node. Rejects with `image_not_found` for one that the asker
 * may not use, `config_validation_error` for a default that is not there, and `unavailable` for one that could not be
 * built.
 */
export async function chooseImage(
  records: RecordStore,
  { image, agentProvider }: { image: string | undefined; agentProvider: string },
  { asker, defaults }: { asker: Asker; defaults: ImageDefaults },
): Promise<ChosenImage> {
  if (image !== undefined) {
    return {
      image,
      builtImage: isImageId(image) ? await usableImage(records, { id: image, asker, field: "image" }) : undefined,
    };
  }
  const { named, built } = defaults;
  const given = Object.hasOwn(named, agentProvider) ? named[agentProvider] : undefined;
  if (given === undefined && built !== undefined && DEFAULT_TEMPLATES.has(agentProvider)) {
    if ((await knownImages(records))?.has(DEBIAN_IMAGE) !== true) return { image: undefined, builtImage: undefined };
    const { image: builtImage, failure } = await built(agentProvider);
    if (failure !== undefined) throw couldNotBeBuilt(agentProvider, failure);
    if (builtImage === undefined) return { image: undefined, builtImage: undefined, isAwaited: true };
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
