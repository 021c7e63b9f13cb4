import { z } from "zod";
import { CHECKSUM } from "../../../format/checksum.ts";

/**
 * What is there of a partial file, written beside it. The file has the length of the whole, and holes; the manifest is
 * replaced when bytes were added, so that bytes count from the moment that it names them.
 */
const shape = z.object({
  fileSizeBytes: z.int().positive(),
  /** From the start of the metadata to the end of the file. */
  footerBytes: z.int().positive(),
  /** Without regard to case; also those asked for that the extent does not have. */
  columns: z.array(z.string()),
  ranges: z.array(
    z.object({ offset: z.int().nonnegative(), sizeBytes: z.int().positive(), checksum: z.string().regex(CHECKSUM) }),
  ),
});

export type Manifest = z.infer<typeof shape>;
export type StoredRange = Manifest["ranges"][number];

/** Undefined for anything else than what `JSON.stringify` made of a manifest. */
export function parseManifest(text: string): Manifest | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  return shape.safeParse(json).data;
}
