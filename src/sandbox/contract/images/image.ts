/** Images that were built from templates: a base that nodes have, and on it layers from the object store. */

/** Images that a node can make by itself. */
export const HOST_IMAGE = "host";
export const DEBIAN_IMAGE = "debian";

/** What one build changed: an archive (`layer-pack.ts`), in parts of the object store that are numbered from 0. */
export type ImageLayer = {
  /** Of the build that made it. */
  buildId: string;
  /** Of the hold under which it was written: another attempt writes elsewhere. */
  fence: number;
  parts: number;
  /** Of the archive as it is stored, in hexadecimal. */
  sha256: string;
  /** As stored. */
  sizeBytes: number;
  /** What its files take, at most. */
  unpackedBytes: number;
};

export type BuiltImage = {
  id: string;
  /** Name of the image that is under the first layer. */
  base: string;
  /** The lowest first. */
  layers: readonly ImageLayer[];
  /** Of every command in machines that are made from it. */
  environment: Readonly<Record<string, string>>;
};

/** What a sandbox may have as its image, by its form: names of nodes' own images are no UUIDs. */
export function isImageId(image: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(image);
}

/** Bytes of a part of an archive, but for the last. */
export const PART_BYTES = 4 * 1024 * 1024;
/** Archives are no longer than this many parts. */
export const MAX_PARTS = 16_384;
/** Entries of one layer. */
export const MAX_ENTRIES = 2_000_000;
