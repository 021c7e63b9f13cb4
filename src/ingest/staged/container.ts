import { crc32 } from "node:zlib";
import { copyBytes } from "../../core/buffer-pool.ts";

/**
 * The container of a staged object: a manifest (JSON) and parts (bytes), none of which can change unnoticed.
 *
 *     8 bytes   "ENGSTGE" and the version, 1
 *     u32       length of the manifest, little-endian like all numbers here
 *     u32       number of parts
 *     n × 8     length and CRC-32 of each part
 *     u32       CRC-32 of everything above and of the manifest
 *     …         the manifest
 *     …         the parts, in order; nothing follows
 *
 * Other versions have the same head, up to and with its CRC-32, so that one that is not known can be told from damage.
 *
 * Every byte is the magic, under a CRC-32, or one itself, and the length of the whole is told by the head: so truncation
 * and appended bytes show, as does every changed byte.
 */
const MAGIC = Buffer.from("ENGSTGE\u0001", "latin1");
const VERSION_AT = MAGIC.length - 1;
const FIXED_HEAD_BYTES = MAGIC.length + 8;
const PART_HEAD_BYTES = 8;
const CRC_BYTES = 4;
/** As many as a flush may have of bodies, extents and filters, and far more than that. */
const MAX_PARTS = 1_000_000;

/** The bytes are no staged object, or not as they were written; the message says what is wrong with them. */
export class DamagedObject extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = "DamagedObject";
  }
}

/** A newer version wrote the object, with something in it that this one does not know; it is as it was written. */
export class NewerObject extends Error {
  constructor(what: string) {
    super(`a newer version of this program wrote it, with ${what}: a committer of that version takes it`);
    this.name = "NewerObject";
  }
}

export type Container = { manifest: unknown; parts: Uint8Array[] };

/** One buffer with all of it. The manifest must be what JSON can hold. */
export function encodeContainer({ manifest, parts }: Container): Uint8Array<ArrayBuffer> {
  const text = Buffer.from(JSON.stringify(manifest));
  const headBytes = FIXED_HEAD_BYTES + parts.length * PART_HEAD_BYTES;
  const partsBytes = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const bytes = new Uint8Array(headBytes + CRC_BYTES + text.length + partsBytes);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint32(MAGIC.length, text.length, true);
  view.setUint32(MAGIC.length + 4, parts.length, true);
  let end = headBytes + CRC_BYTES;
  bytes.set(text, end);
  end += text.length;
  for (const [index, part] of parts.entries()) {
    const head = FIXED_HEAD_BYTES + index * PART_HEAD_BYTES;
    view.setUint32(head, part.byteLength, true);
    view.setUint32(head + 4, crc32(part), true);
    copyBytes(part, bytes, end);
    end += part.byteLength;
  }
  view.setUint32(headBytes, crc32(text, crc32(bytes.subarray(0, headBytes))), true);
  return bytes;
}

/** The manifest and the parts, which are views of `bytes`. Throws `DamagedObject` or `NewerObject`. */
export function decodeContainer(bytes: Uint8Array): Container {
  if (bytes.length < FIXED_HEAD_BYTES + CRC_BYTES) throw new DamagedObject(`it has only ${bytes.length} bytes`);
  if (!MAGIC.subarray(0, VERSION_AT).equals(bytes.subarray(0, VERSION_AT)))
    throw new DamagedObject("it does not start like a staged object");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const manifestBytes = view.getUint32(MAGIC.length, true);
  const partCount = view.getUint32(MAGIC.length + 4, true);
  const headBytes = FIXED_HEAD_BYTES + partCount * PART_HEAD_BYTES;
  const manifestStart = headBytes + CRC_BYTES;
  const partsStart = manifestStart + manifestBytes;
  if (partCount > MAX_PARTS || partsStart > bytes.length) throw new DamagedObject("its head or manifest is cut short");
  const manifest = bytes.subarray(manifestStart, partsStart);
  if (view.getUint32(headBytes, true) !== crc32(manifest, crc32(bytes.subarray(0, headBytes)))) {
    throw new DamagedObject("the checksum of its head and manifest does not match");
  }
  const [version, known] = [bytes[VERSION_AT], MAGIC[VERSION_AT]];
  if (version !== known) throw new NewerObject(`version ${version} of the container, where this one knows ${known}`);
  return { manifest: parseManifest(manifest), parts: partsOf(bytes, view, partCount, partsStart) };
}

function parseManifest(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8")) as unknown;
  } catch (cause) {
    throw new DamagedObject("its manifest is no JSON", { cause });
  }
}

function partsOf(bytes: Uint8Array, view: DataView, count: number, start: number): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let end = start;
  for (let index = 0; index < count; index++) {
    const head = FIXED_HEAD_BYTES + index * PART_HEAD_BYTES;
    const partBytes = view.getUint32(head, true);
    if (end + partBytes > bytes.length) throw new DamagedObject(`its part ${index} is cut short`);
    const part = bytes.subarray(end, end + partBytes);
    if (view.getUint32(head + 4, true) !== crc32(part)) {
      throw new DamagedObject(`the checksum of its part ${index} does not match`);
    }
    parts.push(part);
    end += partBytes;
  }
  if (end !== bytes.length) throw new DamagedObject(`${bytes.length - end} bytes follow its last part`);
  return parts;
}
