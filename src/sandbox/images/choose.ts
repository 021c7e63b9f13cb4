import type { RecordStore } from "../../catalog/records.ts";
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

/**
 * The image that a new sandbox gets: what it asks for, else what the operator gives its agent provider, else that of the
 * node. Rejects with `config_validation_error` for one that is not there.
 */
export async function chooseImage(
  records: RecordStore,
  { image, agentProvider }: { image: string | undefined; agentProvider: string },
  { tenant, defaults }: { tenant: string; defaults: Readonly<Record<string, string>> },
): Promise<ChosenImage> {
  if (image !== undefined) {
    return {
      image,
      builtImage: isImageId(image) ? await ownImage(records, { id: image, tenant, field: "image" }) : undefined,
    };
  }
  const given = Object.hasOwn(defaults, agentProvider) ? defaults[agentProvider] : undefined;
  if (given === undefined || !isImageId(given)) return { image: given, builtImage: undefined };
  // The operator's word: whosever it is.
  const sql = "SELECT id, manifest FROM machine_images WHERE id = ? AND deleted_at_ms IS NULL";
  const [row] = await records.rows(sql, [given]);
  if (row === undefined)
    throw invalidField("image", `the default image of ${agentProvider} is not there: name another`);
  return { image: given, builtImage: builtImageOf(row) };
}
